#include "report/answer_bars.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/scalar.h"
#include "base/units.h"
#include "report/train_words.h"

namespace scalecalc {
namespace {

std::string labelled(std::string_view label, double value, Format format) {
  return fmt::format("{}: {}", label, text_of(Cell(value), format));
}

const Figure* figure_of(const Record& record, std::string_view key) {
  const auto at =
      std::find_if(record.figures.begin(), record.figures.end(), [&](const Figure& f) { return f.key == key; });
  return at == record.figures.end() ? nullptr : &*at;
}

template <class Row>
std::string row_name(const Row& row) {
  return fmt::format("{}: {} on {} {}", row.row.id, row.row.model, row.row.chips, row.row.chip);
}

/// Measured and predicted as the table of rows has them: rates of serving as the time of a token.
template <class Row>
PlotPoint against(const Row& row) {
  return {row.measured, row.predicted, row_name(row)};
}
PlotPoint against(const PredictedServing& row) {
  const bool rate = row.row.figure == ServeFigure::kOutputRate || row.row.figure == ServeFigure::kInputRate;
  return rate ? PlotPoint{1 / row.measured, 1 / row.predicted, row_name(row)}
              : PlotPoint{row.measured, row.predicted, row_name(row)};
}

Plot scatter(Compared compared, std::vector<PlotPoint> points) {
  const Format format = compared == Compared::kMemory ? Format::kBytes : Format::kSeconds;
  Plot out{.title = "Each row: predicted over measured",
           .x = {.title = "measured", .format = format, .log = true},
           .y = {.title = "predicted", .format = format, .log = true}};
  if (points.empty()) return out;
  double least = points.front().x, most = least;
  for (const PlotPoint& p : points) {
    least = std::min({least, p.x, p.y});
    most = std::max({most, p.x, p.y});
  }
  out.series = {{.name = "a row", .points = std::move(points), .joined = false},
                {.name = "as measured", .points = {{least, least}, {most, most}}, .marked = false}};
  return out;
}

/// Bins of a twentieth, what is farther off at either end.
Plot error_histogram(const std::vector<double>& errors) {
  constexpr int kEnd = 6;
  constexpr double kWide = 0.05;
  std::array<double, 2 * kEnd + 2> counts{};
  for (const double error : errors) {
    const double bin = std::clamp(std::floor(error / kWide), -kEnd - 1.0, static_cast<double>(kEnd));
    ++counts.at(static_cast<std::size_t>(bin + kEnd + 1.0));
  }
  constexpr const char* kTitle = "How many rows err by how much (predicted over measured, minus 1)";
  const PlotAxis rows{.title = "rows", .format = Format::kInteger};
  std::vector<std::pair<std::string, double>> bars;
  const auto percent = [](int edge) { return edge == 0 ? "0 %" : fmt::format("{:+g} %", 100 * kWide * edge); };
  int edge = -kEnd - 1;
  for (const double count : counts) {
    const std::string range = edge < -kEnd   ? "below " + percent(-kEnd)
                              : edge == kEnd ? "above " + percent(kEnd)
                                             : fmt::format("{} to {}", percent(edge), percent(edge + 1));
    if (!errors.empty()) bars.emplace_back(range, count);
    ++edge;
  }
  return value_bars(kTitle, rows, bars);
}

enum class StageWork : std::size_t { kForward, kBackward, kEnd };

/// One stage's spans in the order of time. What is too short to be seen lengthens the one before.
class StageBar {
 public:
  StageBar(std::string label, double shortest) : bar_{std::move(label), {}}, shortest_(shortest) {}

  void add(double from, double to, StageWork work) {
    from = std::max(from, end_);  // a reduction beside the last backward shows where that has ended
    if (to <= from) return;
    const auto kind = static_cast<std::size_t>(work);
    PlotSpan* last = bar_.spans.empty() ? nullptr : &bar_.spans.back();
    const bool follows = last != nullptr && from - last->to < shortest_;
    if (follows && (last->kind == kind || to - from < shortest_)) {
      last->to = to;
    } else {
      bar_.spans.push_back({from, to, kind});
    }
    end_ = to;
  }

  PlotBar take() { return std::move(bar_); }

 private:
  PlotBar bar_;
  double shortest_, end_ = 0;
};

}  // namespace

PlotBar bar_of_two(std::string label, double low, double high) {
  PlotBar out{std::move(label), {{0, low, 0}, {0, high, 1}}};
  if (std::abs(low) < std::abs(high)) std::swap(out.spans[0], out.spans[1]);  // of two on one side both are seen
  return out;
}

Plot value_bars(std::string title, PlotAxis axis, const std::vector<std::pair<std::string, double>>& values) {
  Plot out{.title = std::move(title), .x = std::move(axis)};
  for (const auto& [label, value] : values) {
    out.bars.push_back({labelled(label, value, out.x.format), {{0, value}}});
  }
  return out;
}

Plot record_bars(const Block& block, std::string_view label, std::string_view value, std::string title) {
  PlotAxis axis;
  std::vector<std::pair<std::string, double>> values;
  for (const Record& record : block.records) {
    const Figure* name = figure_of(record, label);
    const Figure* figure = figure_of(record, value);
    if (name == nullptr || figure == nullptr || !std::holds_alternative<double>(figure->value)) continue;
    axis = {.title = figure->label, .format = figure->format};
    values.emplace_back(text_of(name->value, name->format), std::get<double>(figure->value));
  }
  return value_bars(std::move(title), std::move(axis), values);
}

Plot parts_plot(std::string title, PlotAxis axis, const std::vector<std::pair<std::string, double>>& parts) {
  Plot out{.title = std::move(title), .x = std::move(axis)};
  double end = 0;
  for (const auto& [label, value] : parts) {
    if (value <= 0) continue;
    out.bars.push_back({labelled(label, value, out.x.format), {{end, end + value}}});
    end += value;
  }
  return out;
}

Plot parts_plot(const std::vector<JobPart>& parts) {
  std::vector<std::pair<std::string, double>> times;
  times.reserve(parts.size());
  for (const JobPart& part : parts) times.emplace_back(part.label, value_of(part.time));
  return parts_plot("A step, part by part", {.title = "time of the step", .format = Format::kSeconds}, times);
}

Plot stacked_plot(std::string title, PlotAxis axis, const StackedBars& bars) {
  Plot out{.title = std::move(title), .x = std::move(axis)};
  for (const auto& [label, parts] : bars) {
    PlotBar bar{.label = label};
    double end = 0;
    for (const auto& [name, value] : parts) {
      if (value <= 0) continue;
      auto kind = std::find(out.bar_kinds.begin(), out.bar_kinds.end(), name);
      if (kind == out.bar_kinds.end()) kind = out.bar_kinds.insert(kind, name);
      bar.spans.push_back({end, end + value, static_cast<std::size_t>(kind - out.bar_kinds.begin())});
      end += value;
    }
    out.bars.push_back(std::move(bar));
  }
  return out;
}

std::vector<Plot> train_plots(const TrainAnswer& answer) {
  const RankedPlan* detailed = detailed_plan(answer);
  if (detailed == nullptr) return {};
  const PlotAxis axis{.title = "time of the step", .format = Format::kSeconds};
  Plot plans{
      .title = "The plans", .x = axis, .bar_kinds = {"predicted", "from every coefficient at its best to its worst"}};
  for (const RankedPlan& ranked : answer.plans) {
    const auto rank = static_cast<std::size_t>(&ranked - answer.plans.data()) + 1;
    plans.bars.push_back({labelled(fmt::format("{}", rank), ranked.plan.step_s, Format::kSeconds),
                          {{0, ranked.plan.step_s, 0}, {ranked.figures.step_low_s, ranked.figures.step_high_s, 1}}});
  }
  std::vector<std::pair<std::string, double>> times;
  for (const auto& [cause, time] : detailed->figures.time_s) times.emplace_back(cause_words(cause), time);
  std::vector<std::pair<std::string, double>> memory = detailed->figures.memory_bytes;
  memory.emplace_back("free", answer.hw.hbm_capacity.value() - sum_of(memory));
  const std::string name = detailed_name(answer);
  return {std::move(plans), parts_plot(fmt::format("Where the step goes: {}", name), axis, times),
          parts_plot(fmt::format("Memory of the fullest chip: {}", name),
                     {.title = "memory of a chip", .format = Format::kBytes}, memory)};
}

Plot timeline_plot(const StepTrace& trace) {
  constexpr double kVisible = 1.0 / 1500;  // of the step
  std::vector<StageBar> stages;
  for (std::size_t s = 0; s < trace.stages.size(); ++s) {
    stages.emplace_back(fmt::format("stage {}", trace.stages[s].holds.first), kVisible * trace.simulated_s);
  }
  for (const PipelineBlock& block : trace.timeline.blocks) {
    if (block.kind == BlockKind::kSendActivation || block.kind == BlockKind::kSendGradient) continue;
    const StageWork work = !is_compute(block.kind)             ? StageWork::kEnd
                           : block.kind == BlockKind::kForward ? StageWork::kForward
                                                               : StageWork::kBackward;
    stages[static_cast<std::size_t>(block.stage)].add(block.start_s, block.end_s, work);
  }
  Plot out{.x = {.title = "time of the step", .format = Format::kSeconds},
           .bar_kinds = {"forward", "backward", "after the last backward: gradients, optimizer, weights, the host"}};
  for (StageBar& stage : stages) {
    stage.add(trace.timeline.end_s, trace.timeline.end_s + trace.step.host_s, StageWork::kEnd);
    out.bars.push_back(stage.take());
  }
  return out;
}

template <class Kind>
std::vector<Plot> validation_plots(const ValidationOf<Kind>& validation) {
  std::vector<PlotPoint> points;
  std::vector<double> errors;
  for (const auto& row : validation.rows) {
    points.push_back(against(row));
    errors.push_back(row.error);
  }
  return {scatter(validation.compared, std::move(points)), error_histogram(errors)};
}
template std::vector<Plot> validation_plots(const Validation&);
template std::vector<Plot> validation_plots(const ServeValidation&);
template std::vector<Plot> validation_plots(const RlValidation&);

Plot coefficients_plot(const Calibration& calibration) {
  std::vector<std::pair<std::string, double>> changes;
  for (const FittedCoefficient& c : calibration.coefficients) changes.emplace_back(c.path, c.factor - 1);
  return value_bars("What the fit changes", {.title = "change of the coefficient", .format = Format::kFraction},
                    changes);
}

}  // namespace scalecalc
