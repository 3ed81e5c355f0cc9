// Makes bars, stacks of parts and bound lines, for the pictures of several commands.
#include "report/plot_bars.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/units.h"

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

}  // namespace

PlotSeries bound_series(std::string name, std::vector<PlotPoint> points) {
  return {.name = std::move(name), .points = std::move(points), .marked = false};
}

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

}  // namespace scalecalc
