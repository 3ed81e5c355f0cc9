// Shows what a plan's step depends on and what to buy next, for `scalecalc sensitivity`.
#include "sensitivity/sensitivity_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "base/units.h"
#include "report/brief_blocks.h"
#include "report/plot_bars.h"
#include "train/train_output.h"
#include "train/train_words.h"

namespace scalecalc {
namespace {

/// Less than this of tokens per second is nothing one would pay for.
constexpr double kNothing = 0.0005;

std::string share_text(double share) { return fmt::format("{:.3g}%", 100 * share); }

class SensitivityOutput {
 public:
  explicit SensitivityOutput(const SensitivityAnswer& answer) : a_(answer), r_(answer.resolved) {}

  Output run() {
    out_.command = "sensitivity";
    out_.title = fmt::format("What training {} on {} x {} depends on", r_.model.title,
                             group_thousands(a_.question.train.chips), r_.hw.title);
    query();
    out_.plots = sensitivity_plots(a_);
    out_.assumptions = r_.assumptions;
    out_.deciding = deciding_of_training();
    out_.software = software_text(r_.software, a_.question.train);
    if (!a_.complete) {
      out_.assumptions.push_back(
          Assumption{"interrupted: what was not searched yet is missing", "", "", true}.as("interrupted"));
    }
    if (a_.plan) {
      planned();
    } else {
      nothing();
    }
    return std::move(out_);
  }

 private:
  void query() {
    std::vector<Record> sweep;
    for (const SetRange& range : a_.question.ranges) {
      sweep.push_back({{figure("path", "", Format::kText, Cell(range.path)),
                        list_figure("values", "", {range.numbers.begin(), range.numbers.end()})}});
    }
    out_.query.figures = {datum("model", r_.model.name), records_figure("sweep", "", "", std::move(sweep))};
  }

  void nothing() {
    out_.nothing_fits = true;
    out_.summary = train_output(*a_.none, a_.complete).summary;
    std::vector<Cell> why;
    for (const Line& line : out_.summary) why.emplace_back(line.text);
    out_.blocks.push_back({.key = "elasticities"});
    out_.blocks.push_back({.key = "reoptimised"});
    out_.blocks.push_back({.key = "balance"});
    out_.blocks.push_back(
        {.key = "", .is_list = false, .records = {{{list_figure("nothing_fits", "", std::move(why))}}}});
  }

  void planned() {
    summary();
    out_.blocks.push_back(elasticity_block(a_));
    out_.blocks.push_back(rate_change_block(a_));
    out_.blocks.push_back(
        {.key = "",
         .is_list = false,
         .records = {{{figure("reoptimised_from", "", Format::kText, Cell(fix_text(a_.reoptimised.base.layout)))}}}});
    out_.blocks.push_back(balance_block(a_));
    if (a_.codesign) out_.blocks.push_back(codesign_block(*a_.codesign));
    out_.blocks.push_back(in_full(plan_block()));
    out_.blocks.push_back(in_full(check_block()));
    out_.blocks.push_back({.key = "", .is_list = false, .records = {{{list_figure("nothing_fits", "", {})}}}});
    notes();
    NextQuestion plan{.command = "train", .flags = {fix_flag(a_.plan->plan.layout), {"--set", ""}}};
    for (const std::string& set : a_.question.train.set) plan.flags.push_back({"--set", set});  // but no sweeps
    out_.blocks.push_back(next_block({next_line(std::move(plan))}));
  }

  void summary() {
    const Layout& layout = a_.plan->plan.layout;
    say(out_.summary, "Plan 1: {}", layout_words(layout));
    say(out_.summary, "Step {}, bound by {}", text_of(Cell(a_.plan->plan.step_s), Format::kSeconds),
        a_.plan->figures.bound_by);
    if (a_.reoptimised.rates.empty()) return;
    helps_most();
    costs_least();
  }

  void helps_most() {
    const RateChange& best = a_.reoptimised.rates.front();
    std::string text = fmt::format("10% more {} helps most: {} more tokens/s", best.rate.name, share_text(best.gain));
    if (best.free) {
      text += fmt::format(", {} with the plan free", share_text(best.free->gain));
      if (best.free->changes.empty()) text += ", which stays";
    }
    out_.summary.push_back({std::move(text), Role::kGood});
  }

  /// All that 10 % less of costs nothing, or the one that costs least.
  void costs_least() {
    std::vector<std::string> idle;
    const RateChange* least = nullptr;
    for (const RateChange& change : a_.reoptimised.rates) {
      if (!change.less_fits) continue;
      if (change.loss < kNothing) idle.push_back(change.rate.name);
      if (least == nullptr || change.loss < least->loss) least = &change;
    }
    if (least == nullptr) return;
    const std::string loss = fmt::format("under {}", share_text(kNothing));
    out_.summary.push_back(
        {idle.empty()
             ? fmt::format("10% less {} costs least: {} of the tokens/s", least->rate.name, share_text(least->loss))
             : fmt::format("10% less costs {} of the tokens/s: {}", loss, join(idle, ", "))});
  }

  Block plan_block() const {
    const RankedPlan& p = *a_.plan;
    const double tokens = p.plan.batch_seqs * static_cast<double>(r_.workload.seq);
    const auto step = a_.step ? figure("step_time_s", "step", Format::kSeconds, *a_.step)
                              : figure("step_time_s", "step", Format::kSeconds, Cell(p.plan.step_s));
    const Traced step_leaf = Traced::leaf(p.plan.step_s, "step time", "above", kSecondDim);
    const Traced rate = Traced::leaf(tokens, "tokens of a step", "the plan's batch", {}) / step_leaf;
    std::vector<Figure> f{
        figure("fix", "", Format::kText, Cell(fix_text(p.plan.layout))),
        figure("chips", "chips", Format::kInteger, Cell(static_cast<double>(p.plan.slice.chips))),
        figure("batch_tokens", "batch", Format::kCount, Cell(tokens)),
        step,
        figure("tokens_per_s", "tokens/s", Format::kNumber, rate.with_name("tokens/s", "tokens of a step / its time")),
        figure("mfu", "MFU", Format::kFraction, Cell(p.figures.mfu)),
        figure("bound_by", "bound by", Format::kText, Cell(p.figures.bound_by))};
    if (const auto usd = r_.usd_per_chip_hour) {
      constexpr double kMillion = 1e6;
      const Traced price = Traced::leaf(*usd, "price per chip-hour", "--price or the hardware file", {});
      const Traced chips = Traced::leaf(static_cast<double>(p.plan.slice.chips), "chips", "layout", {});
      const Traced cost = price / Traced(kSecondsPerHour) * chips * Traced(kMillion) / rate.with_name("tokens/s", "");
      f.push_back(figure("usd_per_million_tokens", "$/M tokens", Format::kUsd,
                         cost.with_name("dollars per million tokens", "price x chips / tokens per second")));
    } else {
      f.push_back(figure("usd_per_million_tokens", "", Format::kUsd, Cell{}));
    }
    return {.key = "plan", .title = "Plan", .is_list = false, .records = {{std::move(f)}}};
  }

  Block check_block() const {
    const SumRule rule = sum_rule(a_.elasticities);
    const Traced rates =
        Traced::leaf(rule.rates, "elasticities of rates", "their sum, all inputs in FLOP/s and bytes/s", {});
    const Traced times = Traced::leaf(rule.times, "elasticities of times", "their sum, all inputs in seconds", {});
    const Traced sum =
        (rates - times)
            .with_name(
                "sum rule",
                "SUM-RULE, docs/model.md: all rates times k and all times over k make the step 1/k, so it is -1");
    return {.key = "sum_rule",
            .title = "Check",
            .is_list = false,
            .records = {{{figure("rates", "elasticities of rates", Format::kNumber, Cell(rule.rates)),
                          figure("times", "elasticities of times", Format::kNumber, Cell(rule.times)),
                          figure("sum", "rates less times (must be -1)", Format::kNumber, sum)}}}};
  }

  void notes() {
    out_.brief_notes = {
        "elasticity: per cent the step's time changes with one per cent more of the input, the plan as it is"};
    out_.notes.emplace_back(
        "elasticity: per cent the step's time changes with one per cent more of the input, the plan as it is; a step "
        "has "
        "kinks where one thing outlasts another, and at one the elasticity is that of one side");
    out_.notes.emplace_back("what parts cost is not known: rates are ranked per 10%, not per dollar");
    for (const RateChange& change : a_.reoptimised.rates) {
      if (!change.less_fits) out_.notes.push_back(fmt::format("10% less {} does not hold this plan", change.rate.name));
    }
    out_.notes.push_back(
        fmt::format("a rate stops helping where its elasticity falls under {}: 10% more of it gains less than 0.5%",
                    kKneeElasticity));
    if (a_.codesign) {
      out_.notes.emplace_back(a_.question.fixed
                                  ? "sweep: plan 1 at every point; compute, HBM and links are elasticities"
                                  : "sweep: planned anew at every point; compute, HBM and links are elasticities");
    }
  }

  const SensitivityAnswer& a_;
  const ResolvedQuestion& r_;
  Output out_;
};

}  // namespace

Output sensitivity_output(const SensitivityAnswer& answer) { return SensitivityOutput(answer).run(); }

Plot tornado_plot(const std::vector<InputElasticity>& elasticities, double swing) {
  constexpr std::size_t kMostBars = 20;
  constexpr double kVisible = 0.01;  // of the widest bar
  const std::string by = text_of(swing, Format::kFraction);
  Plot tornado{.title = "What each input does to the time of a step, the plan as it is",
               .x = {.title = "change of the step's time", .format = Format::kFraction},
               .bar_kinds = {fmt::format("the input {} lower", by), fmt::format("the input {} higher", by)}};
  for (const InputElasticity& e : elasticities) {
    if (tornado.bars.size() < kMostBars && e.widest() > kVisible * elasticities.front().widest())
      tornado.bars.push_back(bar_of_two(e.input.name, e.low.change, e.high.change));
  }
  return tornado;
}

std::vector<Plot> sensitivity_plots(const SensitivityAnswer& answer) {
  std::vector<Plot> out{tornado_plot(answer.elasticities, answer.question.swing)};
  if (!answer.codesign) return out;
  // Over the range that moves fastest, one curve for each choice of the others.
  const Codesign& sweep = *answer.codesign;
  const SetRange& range = sweep.ranges.back();
  Plot curves{.title = answer.question.fixed ? "Step time of plan 1 over the sweep"
                                             : "Step time over the sweep, planned anew at every point",
              .x = {.title = range.path, .format = format_of(range.unit), .log = true},
              .y = {.title = "time of a step", .format = Format::kSeconds, .log = true}};
  std::map<std::vector<std::size_t>, PlotSeries> series;
  for (const CodesignPoint& point : sweep.points) {
    if (!point.plan) continue;
    const std::vector<std::size_t> others(point.at.begin(), point.at.end() - 1);
    PlotSeries& one = series[others];
    std::vector<std::string> names;
    for (std::size_t r = 0; r < others.size(); ++r) {
      const SetRange& other = sweep.ranges[r];
      names.push_back(fmt::format("{} {}", other.path, quantity_text(other.numbers[others[r]], other.unit)));
    }
    one.name = names.empty() ? "fastest plan" : join(names, ", ");
    one.points.push_back({range.numbers[point.at.back()], point.plan->plan.step_s});
  }
  for (auto& [at, one] : series) curves.series.push_back(std::move(one));
  out.push_back(std::move(curves));
  return out;
}

}  // namespace scalecalc
