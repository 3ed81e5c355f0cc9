// The ranking, once for people and once, in full, for machines.
#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "plan/dimensions.h"
#include "report/train_report.h"

namespace scalecalc {
namespace {

/// What a column says is worth its place only where rows differ.
template <class Value>
bool differs(const TrainAnswer& answer, Value value) {
  return std::any_of(answer.plans.begin(), answer.plans.end(),
                     [&](const RankedPlan& plan) { return value(plan) != value(answer.plans.front()); });
}

Cell dimension_cell(const LayoutDimension& dimension, const Layout& layout) {
  const std::int64_t value = dimension.value(layout);
  return dimension.kind == DimensionKind::kWord ? Cell(value_text(dimension, value)) : cell_of(value);
}

double batch_tokens(const TrainAnswer& answer, const Plan& plan) {
  return plan.batch_seqs * static_cast<double>(answer.workload.seq);
}

/// A machine column and where its value comes from.
struct MachineColumn {
  const char* key;
  Cell (*value)(const TrainAnswer&, const RankedPlan&);
};

template <double PlanFigures::*Field>
Cell plan_figure(const TrainAnswer&, const RankedPlan& p) {
  return cell_of(p.figures.*Field);
}
template <std::optional<double> RunFigures::*Field>
Cell optional_run_figure(const TrainAnswer&, const RankedPlan& p) {
  return p.figures.run ? cell_of((*p.figures.run).*Field) : Cell();
}
template <double RunFigures::*Field>
Cell run_figure(const TrainAnswer&, const RankedPlan& p) {
  return p.figures.run ? cell_of((*p.figures.run).*Field) : Cell();
}

/// Empty where failures and slow chips are not counted.
template <double RunEconomics::*Field>
Cell economic_figure(const TrainAnswer&, const RankedPlan& p) {
  if (!p.figures.run || !p.figures.run->economics) return {};
  return cell_of((*p.figures.run->economics).*Field);
}
template <double RunEconomics::*Field>
Cell failure_figure(const TrainAnswer& a, const RankedPlan& p) {
  return a.question.run.counts_failures() ? economic_figure<Field>(a, p) : Cell();
}
Cell power_cell(const RankedPlan& p, double RunPower::*field) {
  if (!p.figures.run || !p.figures.run->power) return {};
  return cell_of((*p.figures.run->power).*field);
}

using A = TrainAnswer;
using P = RankedPlan;

constexpr MachineColumn kMachineRecords[] = {
    {"chips", [](const A&, const P& p) { return cell_of(p.plan.layout.chips()); }},
    {"slice", [](const A&, const P& p) { return Cell(p.plan.slice.name()); }},
};

constexpr MachineColumn kFigureRecords[] = {
    {"batch_seqs", [](const A&, const P& p) { return cell_of(p.plan.batch_seqs); }},
    {"batch_tokens", [](const A& a, const P& p) { return cell_of(batch_tokens(a, p.plan)); }},
    {"step_time_s", [](const A&, const P& p) { return cell_of(p.plan.step_s); }},
    {"step_time_low_s", plan_figure<&PlanFigures::step_low_s>},
    {"step_time_high_s", plan_figure<&PlanFigures::step_high_s>},
    {"mfu", plan_figure<&PlanFigures::mfu>},
    {"hfu", plan_figure<&PlanFigures::hfu>},
    {"tokens_per_s", plan_figure<&PlanFigures::tokens_per_s>},
    {"tokens_per_s_per_chip", plan_figure<&PlanFigures::tokens_per_s_per_chip>},
    {"tflops_per_chip", plan_figure<&PlanFigures::tflops_per_chip>},
    {"bound_by", [](const A&, const P& p) { return Cell(p.figures.bound_by); }},
    {"memory_bytes", [](const A&, const P& p) { return cell_of(sum_of(p.figures.memory_bytes)); }},
    {"capacity_bytes", [](const A& a, const P&) { return cell_of(a.hw.hbm_capacity.value()); }},
    {"run_tokens", run_figure<&RunFigures::tokens>},
    {"run_steps", run_figure<&RunFigures::steps>},
    {"run_time_s", run_figure<&RunFigures::time_s>},
    {"run_chip_hours", run_figure<&RunFigures::chip_hours>},
    {"run_cost_usd", optional_run_figure<&RunFigures::cost_usd>},
    {"run_energy_j", optional_run_figure<&RunFigures::energy_j>},
    {"run_ideal_time_s", economic_figure<&RunEconomics::ideal_time_s>},
    {"run_goodput", economic_figure<&RunEconomics::goodput>},
    {"run_effective_mfu", economic_figure<&RunEconomics::effective_mfu>},
    {"run_interruptions", failure_figure<&RunEconomics::interruptions>},
    {"run_checkpoint_interval_s", failure_figure<&RunEconomics::interval_s>},
    {"run_power_w", [](const A&, const P& p) { return power_cell(p, &RunPower::facility_w); }},
    {"run_energy_j_per_token", [](const A&, const P& p) { return power_cell(p, &RunPower::energy_per_token_j); }},
};

}  // namespace

Table plan_records(const TrainAnswer& answer) {
  Table table;
  table.columns.push_back({.title = "rank", .key = "rank", .format = Format::kInteger});
  const auto column = [&](std::string key) { table.columns.push_back({.title = key, .key = key}); };
  for (const MachineColumn& record : kMachineRecords) column(record.key);
  for (const LayoutDimension& dimension : layout_dimensions()) column(std::string(dimension.json_key));
  for (const MachineColumn& record : kFigureRecords) column(record.key);
  for (std::size_t i = 0; i < answer.plans.size(); ++i) {
    const RankedPlan& plan = answer.plans[i];
    Row row{.cells = {static_cast<double>(i + 1)}};
    for (const MachineColumn& record : kMachineRecords) row.cells.push_back(record.value(answer, plan));
    for (const LayoutDimension& d : layout_dimensions()) row.cells.push_back(dimension_cell(d, plan.plan.layout));
    for (const MachineColumn& record : kFigureRecords) row.cells.push_back(record.value(answer, plan));
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table plan_table(const TrainAnswer& answer) {
  Table table;
  if (answer.plans.empty()) return table;
  const double capacity = answer.hw.hbm_capacity.value();
  const bool chips_differ = differs(answer, [](const RankedPlan& p) { return p.plan.layout.chips(); });
  // A plan that runs another batch than the one asked for must say so on any terminal.
  const bool batches_adjusted = std::any_of(answer.plans.begin(), answer.plans.end(), [&](const RankedPlan& p) {
    return p.plan.batch_seqs != answer.workload.batch_seqs;
  });
  table.columns = {
      {.title = "#", .key = "rank", .format = Format::kInteger},
      {.title = "chips", .key = "chips", .format = Format::kInteger, .importance = chips_differ ? 2 : 8},
      {.title = "layout", .key = "layout", .flexible = true},
      {.title = "recipe", .key = "recipe", .importance = answer.question.variants ? 2 : 5, .flexible = true},
      {.title = "batch", .key = "batch_tokens", .format = Format::kCount, .importance = batches_adjusted ? 2 : 7},
      {.title = "step", .key = "step_time_s", .format = Format::kSeconds},
      {.title = "low", .key = "step_time_low_s", .format = Format::kSeconds, .importance = 6},
      {.title = "high", .key = "step_time_high_s", .format = Format::kSeconds, .importance = 6},
      {.title = "MFU", .key = "mfu", .format = Format::kFraction, .importance = 1},
      {.title = "mem/chip", .key = "memory_bytes", .format = Format::kBytes, .importance = 2},
      {.title = "of " + format_quantity(capacity, UnitKind::kBytes),
       .key = "memory_fraction",
       .format = Format::kFraction,
       .importance = 4},
  };
  if (answer.workload.tokens) {
    table.columns.push_back({.title = "run", .key = "run_time_s", .format = Format::kSeconds, .importance = 3});
    table.columns.push_back({.title = "cost", .key = "run_cost_usd", .format = Format::kUsd, .importance = 3});
  }
  table.columns.push_back({.title = "bound by", .key = "bound_by", .importance = 2});
  for (std::size_t i = 0; i < answer.plans.size(); ++i) {
    const auto& [plan, figures] = answer.plans[i];
    const double memory = sum_of(figures.memory_bytes);
    Row row{{static_cast<double>(i + 1), cell_of(plan.layout.chips()), degrees_text(plan.layout),
             recipe_text(plan.layout), batch_tokens(answer, plan), plan.step_s, figures.step_low_s, figures.step_high_s,
             figures.mfu, memory, memory / capacity},
            i == 0 ? Role::kGood : Role::kPlain};
    if (answer.workload.tokens) {
      row.cells.push_back(run_figure<&RunFigures::time_s>(answer, answer.plans[i]));
      row.cells.push_back(optional_run_figure<&RunFigures::cost_usd>(answer, answer.plans[i]));
    }
    row.cells.emplace_back(figures.bound_by);
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace scalecalc
