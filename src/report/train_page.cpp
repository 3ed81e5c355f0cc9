#include "report/train_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/answer_bars.h"
#include "report/answer_plots.h"
#include "report/layout_map.h"
#include "report/train_words.h"
#include "train/step_operations.h"
#include "train/step_trace.h"

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

/// The formats whose peaks bound it, and its memory.
Plot operations_plot(const TrainAnswer& answer, const RankedPlan& ranked) {
  const Precision& precision = answer.workload.precision;
  std::vector<ChipRoof> roofs;
  for (const DType dtype : {precision.compute, precision.high}) {
    const auto peak = answer.hw.matmul_peak[static_cast<std::size_t>(dtype)];
    if (!peak || (!roofs.empty() && roofs.front().flops_per_s == peak->value())) continue;
    roofs.push_back(
        {fmt::format("roof: {} in {}, {}", text_of(Cell(peak->value()), Format::kFlopsPerSecond), name_of(dtype),
                     text_of(Cell(answer.hw.hbm_bandwidth.value()), Format::kBytesPerSecond)),
         peak->value(), answer.hw.hbm_bandwidth.value()});
  }
  if (roofs.empty()) return {};
  PlotSeries points{.name = "an operation, forward", .joined = false};
  for (const StepOperation& op : step_operations(answer, ranked.plan)) {
    points.points.push_back({op.flops / op.bytes, op.flops / op.time_s,
                             fmt::format("{}, {} a microbatch", op.name, text_of(Cell(op.time_s), Format::kSeconds))});
  }
  Plot out = roofs_with_points(roofs, std::move(points));
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

}  // namespace

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
