// Shows a training job on several systems: plans, prices, ranks and break-even prices.
#include "compare/compare_output.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/scalar.h"
#include "base/units.h"
#include "compare/compare_parts_output.h"
#include "plan/dimensions.h"
#include "report/brief_blocks.h"
#include "report/placement_figures.h"
#include "report/plot_bars.h"
#include "train/train_plan_output.h"
#include "train/train_words.h"

namespace scalecalc {
namespace {

Figure dimension_figure(const LayoutDimension& d, const Layout& layout) {
  const std::string key = fmt::format("layout.{}", d.json_key);
  const std::int64_t value = d.value(layout);
  switch (d.kind) {
    case DimensionKind::kCount: return count_figure(key, value);
    case DimensionKind::kSwitch: return number_figure(key, "", Format::kFlag, value != 0 ? 1.0 : 0.0);
    case DimensionKind::kWord: break;
  }
  return text_figure(key, "", std::string(d.word(value)));
}

class RunOutput {
 public:
  RunOutput(const TrainComparison& comparison, bool explain) : c_(comparison), q_(comparison.question) {
    for (const ComparedRun& row : c_.systems) {
      rows_.push_back(&row);
      several_ = several_ || row.model != c_.systems.front().model;
      costs_.push_back(row.answered() ? run_costs(c_, row, false) : RunCosts{});
      explained_.push_back(row.answered() && explain ? run_costs(c_, row, true) : costs_.back());
    }
  }

  Output run() {
    out_.command = "compare";
    const std::string each = several_ ? "as many tokens each as asked or trained" : compact_count(tokens()) + " tokens";
    out_.title = fmt::format("Training {} ({}) on {}", c_.model_title, each, goal());
    out_.nothing_fits = !c_.baseline;
    out_.query = compared_query("train", c_, q_.systems);
    out_.query.figures.push_back(text_figure("fix", "", pins_text(q_.train.fix)));
    out_.query.figures.push_back(text_figure("max", "", pins_text(q_.train.max)));
    summary();
    jobs();
    systems();
    against();
    break_even();
    add_expectations(out_, c_.expectations);
    search();
    out_.blocks.push_back(winners_alone(c_.systems, [](const ComparedRun& row) {
      NextQuestion out{.command = "train",
                       .flags = {{"--hw", row.asked.hardware},
                                 {"--chips", std::to_string(row.chips_rented())},
                                 fix_flag(row.sized->plan.plan.layout)}};
      if (row.slices > 1) out.flags.push_back({"--slices", std::to_string(row.slices)});
      return out;
    }));
    out_.assumptions = c_.assumptions;
    out_.deciding = deciding_of_training();
    out_.deciding.insert(out_.deciding.end(), {"--cloud", "--price-kind", "--weights", "--kv", "--engine"});
    if (!c_.complete) out_.notes.emplace_back("interrupted: better plans may be missing");
    return std::move(out_);
  }

 private:
  double tokens() const { return *c_.workload.tokens; }

  /// Of several models each one's job, where its query says the first one's.
  void jobs() {
    if (!several_) return;
    Block block{.key = "jobs", .for_files = true};
    std::vector<std::string> seen;
    for (const ComparedRun& row : c_.systems) {
      if (!row.answered() || std::find(seen.begin(), seen.end(), row.model) != seen.end()) continue;
      seen.push_back(row.model);
      const Workload& job = row.sized->machine.workload;
      block.records.push_back(
          {{datum("model", row.model), count_figure("seq", job.seq),
            datum("batch_tokens", job.batch_seqs * static_cast<double>(job.seq)), datum("batch_seqs", job.batch_seqs),
            datum("tokens", job.tokens ? Cell(*job.tokens) : Cell{}), datum("precision", job.precision.name),
            datum("optimizer", job.optimizer.name)}});
    }
    out_.blocks.push_back(std::move(block));
  }

  std::string goal() const {
    std::string out = fmt::format("{} system{}", c_.systems.size(), c_.systems.size() == 1 ? "" : "s");
    if (q_.deadline_s) out += fmt::format(" within {}", seconds_text(*q_.deadline_s));
    if (q_.budget_usd) out += fmt::format("{} {}", q_.deadline_s ? " and" : " for", compact_usd(*q_.budget_usd));
    return out;
  }

  void summary() {
    if (!c_.baseline) {
      out_.summary.push_back(
          {c_.complete ? "none of the systems can do it" : "interrupted before any system was answered", Role::kBad});
      return;
    }
    const auto first = [&](std::size_t ComparedSystem::*rank) {
      const auto at = std::find_if(rows_.begin(), rows_.end(), [&](const auto* row) { return row->*rank == 1; });
      return at == rows_.end() ? nullptr : *at;
    };
    if (const ComparedSystem* row = first(&ComparedSystem::rank_time)) {
      say(out_.summary, Role::kGood, "fastest: {}, {}", winners(rows_, RankBy::kTime), seconds_text(*row->time_s));
    }
    const ComparedSystem* least = first(&ComparedSystem::rank_cost);
    const std::string line = cheapest_line(rows_, least == nullptr ? "" : compact_usd(*least->usd));
    if (!line.empty()) out_.summary.push_back({line, Role::kGood});
    std::vector<std::pair<std::string, std::string>> software;
    for (const ComparedRun& row : c_.systems) {
      if (row.answered()) software.emplace_back(row.label, row.sized->machine.software);
    }
    if (const std::string said = software_line(software, "--stack"); !said.empty()) out_.summary.push_back({said});
    add_unranked(out_, rows_);
  }

  void systems() {
    Block block{.key = "systems"};
    for (const std::size_t i : order_by(c_.rank_by, rows_)) block.records.push_back(record(i));
    out_.plots = {record_bars(block, "system", "run.time_s", "Time of the run"),
                  record_bars(block, "system", "run.cost_usd", "Cost of the run")};
    out_.page_plots = out_.plots;
    add_parts();
    Block best = best_block(block);
    out_.blocks.push_back(std::move(block));
    out_.blocks.push_back(std::move(best));
  }

  /// Of each system's step and of its fullest chip's memory, for pages.
  void add_parts() {
    StackedBars steps, memory;
    for (const std::size_t i : order_by(c_.rank_by, rows_)) {
      const ComparedRun& row = c_.systems[i];
      if (!row.answered()) continue;
      std::vector<std::pair<std::string, double>> causes;
      for (const auto& [cause, time] : row.sized->plan.figures.time_s) causes.emplace_back(cause_words(cause), time);
      steps.emplace_back(row.label, std::move(causes));
      memory.emplace_back(row.label, row.sized->plan.figures.memory_bytes);
    }
    out_.page_plots.push_back(
        stacked_plot("Where a step goes", {.title = "time of a step", .format = Format::kSeconds}, steps));
    out_.page_plots.push_back(
        stacked_plot("Memory of the fullest chip", {.title = "memory of a chip", .format = Format::kBytes}, memory));
  }

  Record record(std::size_t i) const {
    const ComparedRun& row = c_.systems[i];
    Record out;
    add_identity(out.figures, row);
    if (!row.answered()) {
      out.group = "Not possible";
      out.figures.push_back(count_figure("chips", row.chips_asked));
      return out;
    }
    machine(row, out.figures);
    add_price(out.figures, row);
    plan(row, explained_[i], out.figures);
    run(row, explained_[i], out.figures);
    add_placement(row.sized->plan.figures.placement, "", out.figures);
    out.figures.push_back(placement_axes(row.sized->plan.figures.placement));
    return out;
  }

  static void machine(const ComparedRun& row, std::vector<Figure>& f) {
    const Plan& plan = row.sized->plan.plan;
    f.push_back(count_figure("chips", plan.slice.chips, "chips"));
    f.push_back(text_figure("slice", "", plan.slice.name()));
    f.push_back(count_figure("idle_chips", row.chips_rented() - plan.slice.chips));
    f.push_back(count_figure("slices", plan.slice.slices));
    std::vector<Cell> axes;
    for (const std::int64_t axis : plan.slice.shape) axes.emplace_back(to_double(axis));
    f.push_back(list_figure("shape", "", std::move(axes)));
    f.push_back(text_figure("software", "", row.sized->machine.software));
    f.push_back(text_figure("layout_text", "layout", degrees_text(plan.layout), 6));
    for (const LayoutDimension& d : layout_dimensions()) f.push_back(dimension_figure(d, plan.layout));
  }

  static void plan(const ComparedRun& row, const RunCosts& costs, std::vector<Figure>& f) {
    const RankedPlan& ranked = row.sized->plan;
    const PlanFigures& p = ranked.figures;
    f.push_back(text_figure("precision", "", row.sized->machine.workload.precision.name));
    f.push_back(number_figure("batch_seqs", "", Format::kNumber, ranked.plan.batch_seqs));
    f.push_back(number_figure("batch_tokens", "", Format::kCount,
                              ranked.plan.batch_seqs * to_double(row.sized->machine.workload.seq)));
    f.push_back(traced_figure("step_time_s", "step", Format::kSeconds, costs.step, 5));
    f.push_back(number_figure("step_time_low_s", "", Format::kSeconds, p.step_low_s));
    f.push_back(number_figure("step_time_high_s", "", Format::kSeconds, p.step_high_s));
    f.push_back(number_figure("mfu", "MFU", Format::kFraction, p.mfu, 2));
    f.push_back(number_figure("hfu", "", Format::kFraction, p.hfu));
    f.push_back(number_figure("tokens_per_s", "", Format::kNumber, p.tokens_per_s));
    f.push_back(number_figure("tokens_per_s_per_chip", "", Format::kNumber, p.tokens_per_s_per_chip));
    f.push_back(number_figure("tflops_per_chip", "", Format::kNumber, p.tflops_per_chip));
    f.push_back(text_figure("bound_by", "", p.bound_by));
    for (const auto& [cause, seconds] : p.time_s) {
      f.push_back(number_figure("time_s." + cause, "", Format::kSeconds, seconds));
    }
    for (const auto& [part, bytes] : p.memory_bytes) {
      f.push_back(number_figure("memory_bytes." + part, "", Format::kBytes, bytes));
    }
    f.push_back(number_figure("memory_bytes.total", "", Format::kBytes, sum_of(p.memory_bytes)));
    f.push_back(number_figure("memory_bytes.capacity", "", Format::kBytes, row.sized->machine.hw.hbm_capacity.value()));
    f.push_back(number_figure("host_memory_bytes", "", Format::kBytes, ranked.plan.memory.host.value()));
  }

  static void run(const ComparedRun& row, const RunCosts& costs, std::vector<Figure>& f) {
    const RunFigures& run = row.run();
    f.push_back(number_figure("run.tokens", "", Format::kCount, run.tokens));
    f.push_back(number_figure("run.steps", "", Format::kNumber, run.steps));
    f.push_back(traced_figure("run.time_s", "time", Format::kSeconds, costs.time));
    f.push_back(traced_figure("run.chip_hours", "chip-hours", Format::kCount, costs.chip_hours, 4));
    f.push_back(costs.usd ? traced_figure("run.cost_usd", "cost", Format::kUsd, *costs.usd)
                          : number_figure("run.cost_usd", "cost", Format::kUsd, std::nullopt));
    const auto per_dollar = [&](const char* key, const char* label, const std::optional<FlopsPerUsdOf>& flops) {
      f.push_back(flops ? traced_figure(key, label, Format::kFlops, *flops, 7)
                        : number_figure(key, label, Format::kFlops, std::nullopt, 7));
    };
    per_dollar("peak_flops_per_usd", "", costs.peak_per_usd);
    per_dollar("model_flops_per_usd", "FLOPs/$", costs.delivered_per_usd);
    f.push_back(costs.energy ? energy_figure("run.energy_j", "energy", *costs.energy, 1)
                             : number_figure("run.energy_j", "energy", Format::kNumber, std::nullopt, 1));
    if (run.power && run.power->carbon_kg) {
      constexpr double kKgPerTonne = 1000;
      f.push_back(read_by(Readers::kPeople,
                          number_figure("carbon", "t CO2", Format::kNumber, *run.power->carbon_kg / kKgPerTonne, 3)));
    }
    for (Figure& condition : run_conditions(run, "run.")) f.push_back(std::move(condition));
  }

  /// The same dollars and the same time, against the first system.
  void against() {
    if (!c_.baseline) return;
    const ComparedSystem& base = c_.systems[*c_.baseline];
    out_.blocks.push_back({.is_list = false, .records = {{{text_figure("baseline", "", base.label)}}}});
    Block block{.key = "equal", .title = fmt::format("Against {}", base.label)};
    for (std::size_t i = 0; i < c_.systems.size(); ++i) {
      if (i != *c_.baseline && (rows_[i]->answered() || c_.systems[i].same_time)) block.records.push_back(equal(i));
    }
    if (!block.records.empty()) out_.blocks.push_back(std::move(block));
  }

  Record equal(std::size_t i) const {
    const ComparedRun& row = c_.systems[i];
    const RunCosts& base = costs_[*c_.baseline];
    Record out{{text_figure("system", "system", row.label)}};
    std::vector<Figure>& f = out.figures;
    const auto ratio = [&](const std::optional<double>& own, const std::optional<double>& others) {
      return own && others && row.answered() ? std::optional(*own / *others) : std::nullopt;
    };
    const ComparedSystem& first = *rows_[*c_.baseline];
    f.push_back(number_figure("time_ratio", "time x", Format::kNumber, ratio(row.time_s, first.time_s)));
    f.push_back(number_figure("cost_ratio", "cost x", Format::kNumber, ratio(row.usd, first.usd)));
    f.push_back(number_figure("energy_ratio", "energy x", Format::kNumber, ratio(row.joules, first.joules), 3));
    if (row.usd && base.usd && row.answered() && row.model == first.model) {
      const Traced all = Traced::leaf(tokens(), "tokens of the run", "--tokens, or as trained", {});
      f.push_back(
          traced_figure("equal_usd.tokens", "same dollars train", Format::kCount,
                        named(tokens_for_equal_usd(all, *base.usd, *costs_[i].usd),
                              "tokens for the dollars of " + first.label, "cost is proportional to tokens", row.label),
                        1));
    } else {
      f.push_back(number_figure("equal_usd.tokens", "same dollars train", Format::kCount, std::nullopt, 1));
    }
    if (q_.equal_time) same_time(row, f);
    return out;
  }

  static void same_time(const ComparedRun& row, std::vector<Figure>& f) {
    const SizedPlan* found = row.same_time && row.same_time->found ? &*row.same_time->found : nullptr;
    const RunFigures* run = found ? &*found->plan.figures.run : nullptr;
    const auto of = [&](auto figure) { return run ? std::optional<double>(figure(*run)) : std::nullopt; };
    f.push_back(number_figure("equal_time.chips", "same time on", Format::kInteger,
                              found ? std::optional(to_double(found->plan.plan.slice.chips)) : std::nullopt));
    f.push_back(number_figure("equal_time.time_s", "in", Format::kSeconds,
                              of([](const RunFigures& r) { return r.time_s; }), 4));
    f.push_back(number_figure(
        "equal_time.cost_usd", "for", Format::kUsd,
        row.price ? of([&](const RunFigures& r) { return r.chip_hours * row.price->usd_per_chip_hour; }) : std::nullopt,
        2));
    const bool none = row.same_time && !row.same_time->reason.empty();
    f.push_back(figure("equal_time.reason", "", Format::kText, none ? Cell(row.same_time->reason) : Cell{}));
  }

  void break_even() {
    std::vector<PricedRow> priced;
    for (std::size_t i = 0; i < c_.systems.size(); ++i) {
      const ComparedRun& row = c_.systems[i];
      if (!row.answered()) continue;
      priced.push_back({row.label, fmt::format("{}:{}", row.hardware, row.sized->plan.plan.slice.chips),
                        costs_[i].chip_hours, costs_[i].usd,
                        row.price ? std::optional(row.price->usd_per_chip_hour) : std::nullopt, row.model});
    }
    add_break_even(out_, priced);
  }

  void search() {
    double counts = 0;
    double evaluated = 0;
    for (const ComparedRun& row : c_.systems) {
      counts += static_cast<double>(row.counts);
      evaluated += static_cast<double>(row.search.evaluated);
    }
    out_.blocks.push_back({.key = "search",
                           .is_list = false,
                           .records = {{{number_figure("counts", "", Format::kInteger, counts),
                                         number_figure("evaluated", "", Format::kInteger, evaluated),
                                         flag_figure("complete", c_.complete)}}}});
  }

  const TrainComparison& c_;
  const TrainCompareQuestion& q_;
  std::vector<const ComparedSystem*> rows_;
  std::vector<RunCosts> costs_;      ///< of each row; empty of those not answered
  std::vector<RunCosts> explained_;  ///< with the working of the steps, if it was asked for
  bool several_ = false;             ///< models: what equal dollars train and break-even prices are of one job
  Output out_;
};

}  // namespace

Output compare_output(const TrainComparison& comparison, bool explain) { return RunOutput(comparison, explain).run(); }

}  // namespace scalecalc
