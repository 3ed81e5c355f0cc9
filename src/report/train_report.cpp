// Puts the parts of a train report together: the question, the ranking or what is short, and what it all rests on.
#include "report/train_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "plan/ranking.h"
#include "report/explained_text.h"
#include "report/train_why.h"

namespace scalecalc {
namespace {

std::string_view order_words(Objective objective) {
  switch (objective) {
    case Objective::kTime: return "fastest first";
    case Objective::kCost: return "cheapest first";
    case Objective::kMemory: return "least memory first";
    case Objective::kChips: return "fewest chips first";
  }
  return "";
}

std::string title(const TrainAnswer& a) {
  const double batch_tokens = a.workload.batch_seqs * static_cast<double>(a.workload.seq);
  // A switched machine's slice is named by its count of chips, which already stands there.
  const std::string shape = a.slice.shape.empty() ? "" : fmt::format(" ({})", a.slice.name());
  return fmt::format("{} {} on {} x {}{}: batch {} tokens, sequences of {}, {}, {}; {}", training_words(a.workload),
                     a.model.title, group_thousands(a.question.chips), a.hw.title, shape, compact_count(batch_tokens),
                     group_thousands(a.workload.seq), a.workload.precision.name, a.workload.optimizer.name,
                     order_words(a.question.objective));
}

/// What is short, by how much, and what would help.
void add_nothing_fits(const TrainAnswer& a, Report& report) {
  if (!a.nearest_miss) {
    report.summary.push_back(
        {a.obstacles.empty() ? "No layout is possible; the reasons are counted below." : "No layout is possible:",
         Role::kBad});
    for (const std::string& obstacle : a.obstacles) report.summary.push_back({"- " + obstacle, Role::kBad});
  } else {
    const double capacity = a.hw.hbm_capacity.value();
    const double total = sum_of(a.nearest_miss->figures.memory_bytes);
    const auto bytes = [](double value) { return format_quantity(value, UnitKind::kBytes); };
    report.summary.push_back({fmt::format("Nothing fits. Chip memory is short: the nearest layout needs {} of the {} "
                                          "on each chip, {} too many.",
                                          bytes(total), bytes(capacity), bytes(total - capacity)),
                              Role::kBad});
    const Layout& layout = a.nearest_miss->plan.layout;
    report.summary.push_back({fmt::format("Nearest layout: {}; {}", degrees_text(layout), recipe_text(layout))});
  }
  if (a.would_fit) report.summary.push_back({"What would fit: " + *a.would_fit, Role::kGood});
}

void add_explanation(const TrainAnswer& a, Report& report) {
  for (const ExplainSection& part : a.explanation) {
    report.sections.push_back(
        explained_section(part, fmt::format("Explained, plan {}: {}", a.question.explain, part.title)));
  }
}

/// A reader who sees a slower plan above a faster one must be told why.
void add_tie_note(const TrainAnswer& a, Report& report) {
  const bool by_time = a.question.objective == Objective::kTime;
  if (!by_time && a.question.objective != Objective::kCost) return;
  const auto goal = [&](const RankedPlan& p) {  // per token: plans may run different batches
    return (by_time ? 1.0 : static_cast<double>(p.plan.slice.chips)) / p.figures.tokens_per_s;
  };
  const bool in_order = std::is_sorted(a.plans.begin(), a.plans.end(),
                                       [&](const RankedPlan& x, const RankedPlan& y) { return goal(x) < goal(y); });
  if (in_order) return;
  report.notes.push_back(fmt::format("Plans within {} of the best are a tie and rank by memory.",
                                     format_quantity(kTie, UnitKind::kFraction)));
}

/// Ranked by time, fewer chips never win; whoever pays should still see them.
void add_cheaper_note(const TrainAnswer& a, Report& report) {
  if (!a.cheaper || a.plans.empty()) return;
  const Plan& plan = a.cheaper->plan;
  const double saved = 1 - a.plans.front().figures.tokens_per_s_per_chip / a.cheaper->figures.tokens_per_s_per_chip;
  const auto& run = a.cheaper->figures.run;
  report.notes.push_back(fmt::format(
      "Cheaper per token on fewer chips: {}{}, {}; {}: step {}{}, {:.1f}% fewer chip-hours than plan 1.",
      group_thousands(plan.slice.chips), plan.slice.shape.empty() ? "" : fmt::format(" ({})", plan.slice.name()),
      degrees_text(plan.layout), recipe_text(plan.layout), format_quantity(plan.step_s, UnitKind::kSeconds),
      run ? ", run " + format_quantity(run->time_s, UnitKind::kSeconds) : "", 100 * saved));
}

/// A machine too large for its batch waits; more of the same chips do not help, a larger batch does.
void add_batch_note(const TrainAnswer& a, Report& report) {
  if (!a.batch_to_fill) return;
  const RankedPlan& best = a.plans.front();
  const double busy = figure(best.figures.time_s, "compute") + figure(best.figures.time_s, "hbm");
  const double tokens = best.plan.batch_seqs * static_cast<double>(a.workload.seq);
  report.notes.push_back(fmt::format(
      "The batch does not fill this machine: a step gives each chip {} tokens, and for {} of it the chips wait. With "
      "--batch-tokens {} they would work for more than half of it.",
      compact_count(tokens / static_cast<double>(best.plan.slice.chips)),
      format_quantity(1 - busy / best.plan.step_s, UnitKind::kFraction), compact_count(*a.batch_to_fill)));
}

}  // namespace

std::string training_words(const Workload& workload) {
  if (!workload.fine_tune) return "Training";
  const FineTune& tune = *workload.fine_tune;
  const std::string rank = fmt::format("rank {}", tune.rank);
  if (!is_unpacked(tune, workload.precision)) return fmt::format("LoRA fine-tuning ({}) of", rank);
  return fmt::format("QLoRA fine-tuning ({}, {} base) of", rank,
                     kBaseFormatNames.at(static_cast<std::size_t>(*tune.base)));
}

Report train_report(const TrainAnswer& answer, bool complete, bool all_reasons) {
  Report report{.title = title(answer)};
  if (answer.question.ideal) {
    report.summary.push_back({"Ideal efficiency: the upper bound of the roofline, which no real run reaches."});
  }
  if (!complete) {
    report.warnings.push_back("interrupted: the search is incomplete, better layouts may be missing");
  }
  if (answer.plans.empty() && complete) add_nothing_fits(answer, report);
  report.plans = plan_table(answer);
  report.records = plan_records(answer);
  if (answer.search.feasible > answer.plans.size() && !answer.plans.empty()) {
    report.notes.push_back(fmt::format("The best {} are shown; --top N shows more.", answer.plans.size()));
  }
  add_tie_note(answer, report);
  add_cheaper_note(answer, report);
  add_batch_note(answer, report);
  report.sections = why_sections(answer);
  for (Section& section : plan_sections(answer)) report.sections.push_back(std::move(section));
  if (answer.plans.empty() && answer.nearest_miss) {
    report.sections.push_back(memory_section(answer, *answer.nearest_miss, "Memory of the nearest layout"));
  }
  for (Section& section : search_sections(answer, all_reasons)) report.sections.push_back(std::move(section));
  add_explanation(answer, report);
  return report;
}

}  // namespace scalecalc
