// Draws the pictures of a training answer's page, and asks for the curve and the tornado among them.
#include "train/train_page_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "plan/dimensions.h"
#include "report/layout_map.h"
#include "report/plot_bars.h"
#include "report/roof_plots.h"
#include "sensitivity/elasticity.h"
#include "sensitivity/sensitivity_output.h"
#include "train/step_operations.h"
#include "train/step_trace.h"
#include "train/trace_output.h"
#include "train/train_curve_output.h"
#include "train/train_output.h"
#include "train/train_words.h"

namespace scalecalc {
namespace {

std::string plan_label(const TrainAnswer& answer, const RankedPlan& ranked) {
  const auto rank = static_cast<std::size_t>(&ranked - answer.plans.data()) + 1;
  const std::string degrees = degrees_text(ranked.plan.layout);
  return fmt::format("{}: {}", rank, degrees.empty() ? "one chip" : degrees);
}

Plot plans_by_cause(const TrainAnswer& answer) {
  StackedBars bars;
  for (const RankedPlan& ranked : answer.plans) {
    std::vector<std::pair<std::string, double>> parts;
    for (const auto& [cause, time] : ranked.figures.time_s) parts.emplace_back(cause_words(cause), time);
    bars.emplace_back(plan_label(answer, ranked), std::move(parts));
  }
  return stacked_plot("Where the step of each plan goes", {.title = "time of the step", .format = Format::kSeconds},
                      bars);
}

Plot plans_by_memory(const TrainAnswer& answer) {
  StackedBars bars;
  for (const RankedPlan& ranked : answer.plans) {
    bars.emplace_back(plan_label(answer, ranked), ranked.figures.memory_bytes);
  }
  Plot out =
      stacked_plot("Memory of each plan's fullest chip", {.title = "memory of a chip", .format = Format::kBytes}, bars);
  const double capacity = answer.hw.hbm_capacity.value();
  out.marks.push_back(
      {PlotMarkKind::kAtX, {capacity, 0}, fmt::format("what a chip has: {}", text_of(Cell(capacity), Format::kBytes))});
  return out;
}

/// Time against memory; joined are those that none beats in both.
Plot plans_front(const TrainAnswer& answer) {
  Plot out{.title = "What time costs in memory: the plans, limits to drag",
           .x = {.title = "memory of a chip", .format = Format::kBytes},
           .y = {.title = "time of the step", .format = Format::kSeconds},
           .limits = PlotLimits::kAtMost};
  PlotSeries front{.name = "none is better in both", .points = {}},
      others{.name = "another plan", .points = {}, .joined = false};
  std::vector<PlotPoint> all;
  for (const RankedPlan& ranked : answer.plans) {
    all.push_back({sum_of(ranked.figures.memory_bytes), ranked.plan.step_s, plan_label(answer, ranked)});
  }
  for (const PlotPoint& p : all) {
    const bool beaten = std::any_of(all.begin(), all.end(), [&](const PlotPoint& q) {
      return q.x <= p.x && q.y <= p.y && (q.x < p.x || q.y < p.y);
    });
    (beaten ? others : front).points.push_back(p);
  }
  std::sort(front.points.begin(), front.points.end(), [](const PlotPoint& a, const PlotPoint& b) { return a.x < b.x; });
  if (all.size() < 2) return out;
  out.series.push_back(std::move(front));
  if (!others.points.empty()) out.series.push_back(std::move(others));
  return out;
}

Plot operations_plot(const TrainAnswer& answer, const RankedPlan& ranked) {
  const Precision& precision = answer.workload.precision;
  const std::vector<ChipRoof> roofs = roofs_of(answer.hw, {precision.compute, precision.high});
  if (roofs.empty()) return {};
  PlotSeries points{.name = "an operation, forward", .joined = false};
  for (const StepOperation& op : step_operations(answer, ranked.plan)) {
    points.points.push_back({op.flops / op.bytes, op.flops / op.time_s,
                             fmt::format("{}, {} a microbatch", op.name, text_of(Cell(op.time_s), Format::kSeconds))});
  }
  Plot out = roofs_with_points(roofs, {std::move(points)});
  out.title = fmt::format("Operations of {} under the chip's roofs", detailed_name(answer));
  return out;
}

/// Of steps that a picture can show.
std::optional<Plot> plan_timeline(const TrainAnswer& answer, const RankedPlan& ranked) {
  constexpr std::int64_t kMostDrawn = 20'000;
  const Layout& l = ranked.plan.layout;
  if (l.pp < 2 || 2 * l.pp * l.vpp * l.grad_accum > kMostDrawn) return std::nullopt;
  Plot out = timeline_plot(trace_step(answer, ranked.plan));
  out.title = fmt::format("The step of {}, stage by stage", detailed_name(answer));
  return out;
}

/// [ELASTICITY] by how much the inputs of the tornado are moved.
constexpr double kSwing = 0.2;

}  // namespace

Plot train_tornado_plot(const TrainAnswer& answer, const ResolvedQuestion& resolved) {
  const RankedPlan* detailed = detailed_plan(answer);
  if (detailed == nullptr) return {};
  const PlanRequest request = request_of(answer.question, resolved);
  Plot out = tornado_plot(elasticities(request, detailed->plan, kSwing, false), kSwing);
  out.title = fmt::format("What each input does to the step of {}", detailed_name(answer));
  return out;
}

std::optional<CurveQuestion> page_curve_question(const TrainAnswer& answer) {
  const RankedPlan* detailed = detailed_plan(answer);
  if (detailed == nullptr) return std::nullopt;
  const Layout& l = detailed->plan.layout;
  CurveQuestion out{.train = answer.question, .chips = {}};
  for (const std::int64_t quarters : {1, 2, 4, 8, 16}) {
    const std::int64_t chips = l.chips() * quarters / 4;
    if (l.chips() * quarters % (4 * l.tp * l.cp * l.pp) == 0 && chips <= kMostWays) out.chips.push_back(chips);
  }
  TrainQuestion& q = out.train;
  q.chips = out.chips.back();
  q.topology.reset();
  q.fix = pins_of(l);
  q.fix.dp = q.fix.fsdp = q.fix.grad_accum = {};
  // Fewer data ranks may have to run more again, unless the asker says what.
  q.fix.remat = answer.question.fix.remat;
  q.fix.remat_layers = answer.question.fix.remat_layers;
  q.max = {};
  q.top = 1;
  return out;
}

Plot page_curve_plot(const TrainAnswer& answer, const TrainCurve& curve) {
  std::vector<Plot> plots = train_curve_plots(curve);
  if (plots.empty()) return {};
  Plot& out = plots.front();
  out.title = fmt::format("On fewer and more chips: {} with other data ranks", detailed_name(answer));
  if (!out.series.empty()) out.series.front().name = "its layout on each count";
  return std::move(out);
}

std::vector<Plot> train_page_plots(const TrainAnswer& answer) {
  const RankedPlan* detailed = detailed_plan(answer);
  if (detailed == nullptr || answer.plans.empty()) return {};
  std::vector<Plot> out{plans_by_cause(answer), plans_by_memory(answer), plans_front(answer),
                        train_plots(answer).front(), operations_plot(answer, *detailed)};
  if (auto timeline = plan_timeline(answer, *detailed)) out.push_back(std::move(*timeline));
  const Layout& layout = detailed->plan.layout;
  Plot map = layout_map(answer.hw, detailed->plan.slice, detailed->plan.placement, layout.ep, layout.etp);
  map.title += fmt::format(" ({})", detailed_name(answer));
  out.push_back(std::move(map));
  return out;
}

}  // namespace scalecalc
