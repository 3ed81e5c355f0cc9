// Shows the scaling curve, where it stops being linear, and the front of time against cost.
#include "train/train_curve_output.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "report/brief_blocks.h"
#include "report/plot_bars.h"
#include "train/train_output.h"
#include "train/train_plan_output.h"
#include "train/train_words.h"

namespace scalecalc {
namespace {

/// One count has no curve.
bool front_alone(const TrainCurve& curve) { return curve.pareto && curve.points.size() == 1; }

std::string curve_title(const TrainCurve& c) {
  const TrainAnswer& a = c.job;
  const bool alone = front_alone(c);
  const std::string first = group_thousands(c.points.front().chips);
  const std::string counts =
      alone ? "up to " + first : fmt::format("{} to {}", first, group_thousands(c.points.back().chips));
  const std::string what = a.workload.fine_tune ? training_words(a.workload) : alone ? "training" : "";
  const std::string lead = alone ? "Time against cost of " + what : "Scaling of" + (what.empty() ? "" : " " + what);
  return fmt::format("{} {} on {} x {}: {}; {}", lead, a.model.title, counts, a.hw.title, workload_words(a.workload),
                     alone ? "fastest first" : "the fastest plan of each count");
}

std::string percent_of(double share) { return text_of(share, Format::kFraction); }

std::string status_text(const CurvePoint& point) {
  return std::string(kPointStatusNames.at(static_cast<std::size_t>(point.status)));
}

Cell text_or_nothing(const std::string& text) { return text.empty() ? Cell{} : Cell(text); }

/// One count of chips. Its plan's figures are columns of CSV too, but for the rank, which is always 1.
Record point_record(const CurvePoint& point, std::optional<Record> plan, bool complete) {
  const auto planned = [&](double value) { return plan ? Cell(value) : Cell{}; };
  std::string status = status_text(point);
  std::replace(status.begin(), status.end(), ' ', '_');
  Record out{{count_figure("chips", point.chips, "chips"), read_by(Readers::kJson, datum("status", status)),
              datum("reason", text_or_nothing(point.reason)),
              figure("speed_up", "speed-up", Format::kNumber, planned(point.speed_up)),
              figure("efficiency", "efficiency", Format::kFraction, planned(point.efficiency))}};
  if (!plan) {
    out.figures.push_back(read_by(Readers::kPeople, text_figure("layout", "layout", status_text(point))));
    out.role = Role::kDim;
  } else {
    plan->figures.front().readers = Readers::kJson;
    for (Figure& f : plan->figures) {
      if (f.key == "chips") f.column = "chips_used";
    }
  }
  out.figures.push_back(object_figure("plan", std::move(plan)));
  out.figures.push_back(read_by(Readers::kJson, object_figure("search", search_record(point.search, complete))));
  return out;
}

bool leaves_idle(const TrainCurve& curve) {
  return std::any_of(curve.points.begin(), curve.points.end(),
                     [](const CurvePoint& p) { return p.plan && p.plan->plan.layout.chips() < p.chips; });
}

/// What a point of the curve and of the front both show of a plan.
std::vector<ShownColumn> plan_columns(bool adjusted) {
  return {{"layout"},         {"recipe", 6}, {"batch_tokens", adjusted ? 4 : 7},
          {"step_time_s", 2}, {"mfu", 2},    {"tokens_per_s", 5}};
}

void add_run_columns(const TrainCurve& curve, std::vector<ShownColumn>& out) {
  if (curve.job.workload.tokens) out.insert(out.end(), {{"run_time_s", 3}, {"run_cost_usd", 3}});
}

Block curve_block(const TrainCurve& curve, bool complete) {
  const TrainAnswer& job = curve.job;
  const bool adjusted = std::any_of(curve.points.begin(), curve.points.end(),
                                    [&](const CurvePoint& p) { return p.plan && adjusts_batch(job, p.plan->plan); });
  Block out{.key = "curve", .for_files = front_alone(curve)};
  out.columns = plan_columns(adjusted);
  if (leaves_idle(curve)) out.columns.insert(out.columns.begin(), {"chips_used", 1, "used"});
  out.columns.insert(out.columns.begin(), {"chips"});
  out.columns.insert(out.columns.end(), {{"speed_up", 1}, {"efficiency"}});
  add_run_columns(curve, out.columns);
  out.columns.push_back({"bound_by", 2});
  out.header = point_record({}, no_plan_record(job), complete);
  for (const CurvePoint& p : curve.points) {
    out.records.push_back(
        point_record(p, p.plan ? std::optional(plan_record(job, *p.plan, 1, p.chips)) : std::nullopt, complete));
  }
  if (curve.end) out.records[curve.end->last].role = Role::kGood;
  if (leaves_idle(curve)) {
    out.lines.push_back({"Where fewer chips are used, no plan searched on more of them is as fast."});
  }
  return out;
}

/// One count offers few smaller machines.
std::string ask_for_range(const TrainCurve& curve) {
  const std::int64_t chips = curve.job.question.chips;
  if (!front_alone(curve) || chips == 1) return "";
  return fmt::format(" A range compares more: --chips {}..{}.", std::max<std::int64_t>(1, chips / 16), chips);
}

std::vector<Line> front_lines(const TrainCurve& curve) {
  if (curve.front.empty()) return {};
  if (curve.machine_sizes == 1) {
    return {
        {"Every layout searched uses the same number of chips, so time and cost are one axis: the fastest plan is "
         "the cheapest." +
         ask_for_range(curve)}};
  }
  const std::string sizes = fmt::format("{} machine sizes", curve.machine_sizes);
  if (curve.front.size() == 1) {
    return {{fmt::format("Of the plans on {} the fastest is also the cheapest.{}", sizes, ask_for_range(curve))}};
  }
  return {
      {fmt::format("Of the plans on {}, none is faster than one of these without costing more, or cheaper without "
                   "taking longer. Cost falls as tokens/s per chip rise.",
                   sizes)}};
}

Block front_block(const TrainCurve& curve) {
  const bool adjusted = std::any_of(curve.front.begin(), curve.front.end(),
                                    [&](const RankedPlan& p) { return adjusts_batch(curve.job, p.plan); });
  Block out{.key = "pareto", .title = front_alone(curve) ? "" : "Time against cost"};
  out.for_files = curve.front.empty() && !front_alone(curve);
  out.columns = plan_columns(adjusted);
  out.columns.insert(out.columns.begin(), {"chips"});
  out.columns.push_back({"tokens_per_s_per_chip", 1});
  add_run_columns(curve, out.columns);
  out.header = no_plan_record(curve.job);
  for (const RankedPlan& p : curve.front) {
    out.records.push_back(plan_record(curve.job, p, out.records.size() + 1, p.plan.slice.chips));
  }
  out.lines = front_lines(curve);
  constexpr std::size_t kBriefRows = 8;
  if (!front_alone(curve)) out.brief_rows = kBriefRows;
  out.brief_lines = out.lines;
  return out;
}

std::string machine_of(const CurvePoint& point) {
  return group_thousands(point.chips) + (point.chips == 1 ? " chip" : " chips");
}

std::string growth_text(const CurveEnd& end) {
  if (end.cause.empty()) return "Everything takes longer alike.";
  const bool idle = end.cause == "idle";
  return fmt::format("Grown most: {}, {} -> {} of the {}.", idle ? "idle chips" : cause_words(end.cause),
                     percent_of(end.share_before), percent_of(end.share_after), idle ? "machine" : "machine's time");
}

/// What grew, and what a batch that grows with the machine would be.
std::vector<Line> linear_lines(const TrainCurve& curve) {
  const CurveEnd& end = *curve.end;
  const CurvePoint& last = curve.points[end.last];
  const auto first =
      std::find_if(curve.points.begin(), curve.points.end(), [](const auto& p) { return p.plan.has_value(); });
  std::vector<Line> out{
      {fmt::format("{} {}: each chip does {} of the work it does at {}; linear is at least {}.",
                   end.next ? "Up to" : "The whole range, up to", machine_of(last), percent_of(last.efficiency),
                   group_thousands(first->chips), percent_of(kLinearShare))}};
  const auto best = std::max_element(curve.points.begin(), curve.points.end(),
                                     [](const auto& a, const auto& b) { return a.efficiency < b.efficiency; });
  if (best->efficiency > 1 / kLinearShare) {  // the first count is short of memory, as a rule
    say(out, "Chips do most at {}, {} of the first: a curve from there bends earlier.", group_thousands(best->chips),
        percent_of(best->efficiency));
  }
  if (!end.next) return out;
  const CurvePoint& next = curve.points[*end.next];
  if (!next.plan) {
    say(out, Role::kWarning, "At {} there is no plan: {}.", machine_of(next), status_text(next));
    return out;
  }
  say(out, Role::kWarning, "At {} it is {}. {}", machine_of(next), percent_of(next.efficiency), growth_text(end));
  const Layout& layout = next.plan->plan.layout;
  if (layout.micro_batch_seqs * layout.grad_accum == 1) {
    out.push_back({"Each data rank of that plan has one sequence of a step: the batch divides no further."});
  }
  const double asked = curve.job.workload.batch_seqs * static_cast<double>(curve.job.workload.seq);
  const double each = asked / static_cast<double>(last.chips);
  say(out, "As many tokens per chip as at {} ({}) would take --batch-tokens {}.", machine_of(last), compact_count(each),
      compact_count(each * static_cast<double>(next.chips)));
  return out;
}

/// The same for files; null where no count is linear.
Block linear_block(const TrainCurve& curve) {
  Block out{.key = "linear", .is_list = false, .for_files = true};
  if (!curve.end) return out;
  const CurveEnd& end = *curve.end;
  const CurvePoint& last = curve.points[end.last];
  const CurvePoint* next = end.next ? &curve.points[*end.next] : nullptr;
  const auto planned = [&](double value) { return next != nullptr && next->plan ? Cell(value) : Cell{}; };
  out.records.push_back({{datum("efficiency_at_least", kLinearShare), count_figure("chips", last.chips),
                          datum("efficiency", last.efficiency),
                          figure("next_chips", "", Format::kInteger, next == nullptr ? Cell{} : cell_of(next->chips)),
                          datum("next_efficiency", next == nullptr ? Cell{} : planned(next->efficiency)),
                          datum("reason", next == nullptr ? Cell{} : text_or_nothing(next->reason)),
                          datum("cause", text_or_nothing(end.cause)), datum("share_before", planned(end.share_before)),
                          datum("share_after", planned(end.share_after))}});
  return out;
}

/// Why counts have no plan.
void add_reasons(const TrainCurve& curve, std::vector<Line>& out) {
  constexpr std::size_t kMostReasons = 12;
  std::size_t count = 0;
  for (const CurvePoint& p : curve.points) {
    if (p.plan || ++count > kMostReasons) continue;
    say(out, "{}, {}: {}.", machine_of(p), status_text(p), p.reason);
  }
  if (count > kMostReasons) {
    say(out, "{} more counts have no plan; --json says why.", count - kMostReasons);
  }
}

Block searched_counts(const TrainCurve& curve) {
  double candidates = 0, evaluated = 0;
  for (const CurvePoint& point : curve.points) {
    candidates += static_cast<double>(point.search.candidates);
    evaluated += static_cast<double>(point.search.evaluated);
  }
  Block out = lines_block(
      "Searched",
      {{fmt::format("{} legal layouts, {} costed in full", compact_count(candidates), compact_count(evaluated))}});
  if (!front_alone(curve)) {
    out.lines.push_back(
        {"each count as `train --chips N` ranks it: of plans within 1% of its fastest the one that "
         "needs least memory"});
  }
  out.last = true;
  return out;
}

/// The plan of one count: the last that is linear, or the fastest of one count's front.
Block plan_alone(const TrainCurve& curve) {
  const auto block = [](std::int64_t chips, const Plan& plan) {
    return next_block({next_line({.flags = {{"--chips", std::to_string(chips)}, fix_flag(plan.layout)}})});
  };
  if (front_alone(curve)) {
    return curve.front.empty() ? next_block({}) : block(curve.points.front().chips, curve.front.front().plan);
  }
  auto point = std::find_if(curve.points.rbegin(), curve.points.rend(), [](const auto& p) { return p.plan; });
  if (curve.end) point = curve.points.rend() - static_cast<std::ptrdiff_t>(curve.end->last) - 1;
  return point == curve.points.rend() ? next_block({}) : block(point->chips, point->plan->plan);
}

}  // namespace

Output train_curve_output(const TrainCurve& curve, bool complete) {
  Output out = training_output(curve.job, "train-curve", curve_title(curve), complete, "curve");
  std::vector<Cell> counts;
  for (const CurvePoint& point : curve.points) counts.push_back(cell_of(point.chips));
  out.query.figures.push_back(list_figure("chips", "", std::move(counts)));
  out.query.figures.back().format = Format::kInteger;
  if (curve.pareto) {
    out.lines_of = "pareto";
    out.line_head->figures.push_back(count_figure("chips_asked", curve.job.question.chips));
  } else {
    out.line_schema = "train-curve-point";
  }
  out.plots = train_curve_plots(curve);
  out.nothing_fits = !any_plan(curve) && complete;
  if (out.nothing_fits) out.summary.push_back({"There is no plan at any count asked for.", Role::kBad});

  out.blocks = {curve_block(curve, complete), linear_block(curve)};
  if (curve.end && !front_alone(curve)) out.blocks.push_back(lines_block("Linear scaling", linear_lines(curve)));
  Record rest;
  if (curve.pareto) {
    out.blocks.push_back(front_block(curve));
    rest.figures.push_back(count_figure("machine_sizes", curve.machine_sizes));
  }
  add_reasons(curve, (front_alone(curve) ? out.blocks.back() : out.blocks.front()).lines);
  rest.figures.push_back(flag_figure("complete", complete));
  out.blocks.push_back({.is_list = false, .records = {std::move(rest)}, .for_files = true});
  out.blocks.push_back(out.nothing_fits ? searched_counts(curve) : in_full(searched_counts(curve)));
  out.blocks.push_back(plan_alone(curve));
  return out;
}

namespace {

Plot scaling_curve(const TrainCurve& curve) {
  Plot out{.x = {.title = "chips", .format = Format::kInteger, .log = true},
           .y = {.title = "tokens/s", .format = Format::kCount, .log = true}};
  PlotSeries planned{.name = "fastest plan of each count"};
  PlotSeries linear = bound_series("linear from the first count on", {});
  for (const CurvePoint& p : curve.points) {
    out.x.ticks.push_back(to_double(p.chips));
    if (!p.plan) continue;
    planned.points.push_back({to_double(p.chips), p.plan->figures.tokens_per_s, layout_words(p.plan->plan.layout)});
    const PlotPoint& first = planned.points.front();
    linear.points.push_back({to_double(p.chips), first.y * to_double(p.chips) / first.x});
  }
  if (curve.end && curve.points[curve.end->last].plan) {
    const CurvePoint& last = curve.points[curve.end->last];
    out.marks.push_back(
        {.at = {to_double(last.chips), last.plan->figures.tokens_per_s},
         .text = fmt::format("linear up to {} chips: each does {} of its work at the first count",
                             group_thousands(last.chips), text_of(last.efficiency, Format::kFraction))});
  }
  out.series = {std::move(planned), std::move(linear)};
  return out;
}

/// Days against dollars where the run is known, else tokens per second against those of a chip.
Plot front_plot(const TrainCurve& curve) {
  const bool run = !curve.front.empty() && std::all_of(curve.front.begin(), curve.front.end(), [](const auto& p) {
    return p.figures.run && p.figures.run->cost_usd;
  });
  Plot out{.title = "Time against cost: no plan is faster than one of these and as cheap"};
  if (run) {
    out.x = {.title = "time of the run", .format = Format::kSeconds, .log = true};
    out.y = {.title = "cost of the run", .format = Format::kUsd};
  } else {
    out.x = {.title = "tokens/s", .format = Format::kCount, .log = true};
    out.y = {.title = "tokens/s per chip (a cheaper run has more)"};
  }
  PlotSeries front{.name = "Pareto front"};
  out.limits = run ? PlotLimits::kAtMost : PlotLimits::kAtLeast;
  const auto at = [&](const RankedPlan& p) {
    const std::string name =
        fmt::format("{} chips, {}", group_thousands(p.plan.slice.chips), layout_words(p.plan.layout));
    return run ? PlotPoint{p.figures.run->time_s, *p.figures.run->cost_usd, name}
               : PlotPoint{p.figures.tokens_per_s, p.figures.tokens_per_s_per_chip, name};
  };
  for (const RankedPlan& p : curve.front) front.points.push_back(at(p));
  if (!curve.front.empty()) {
    const auto chips = [](const RankedPlan& p) { return group_thousands(p.plan.slice.chips); };
    out.marks.push_back(
        {.at = front.points.front(), .text = fmt::format("fastest: {} chips", chips(curve.front.front()))});
    if (curve.front.size() > 1) {
      out.marks.push_back(
          {.at = front.points.back(), .text = fmt::format("cheapest: {} chips", chips(curve.front.back()))});
    }
  }
  out.series = {std::move(front)};
  return out;
}

}  // namespace

std::vector<Plot> train_curve_plots(const TrainCurve& curve) {
  std::vector<Plot> out;
  if (curve.points.size() > 1) out.push_back(scaling_curve(curve));
  if (curve.pareto) out.push_back(front_plot(curve));
  return out;
}

}  // namespace scalecalc
