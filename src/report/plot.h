// What a picture of an answer shows, before anyone decides on a terminal or a file: series over two axes, or bars, and
// what is marked on them. Values in base units. Three writers draw it (plot_text.h, plot_svg.h, page_chart.h).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "report/report.h"

namespace scalecalc {

struct PlotAxis {
  std::string title;  ///< without its unit, which the format brings: "time of a step"; or with it, of kNumber
  Format format = Format::kNumber;
  bool log = false;           ///< kept where all values are above zero
  std::vector<double> ticks;  ///< at these values, where they have room; empty: round ones
};

struct PlotPoint {
  double x = 0, y = 0;
  std::string name{};  ///< what it is, for those who point at it
};

struct PlotSeries {
  std::string name;
  std::vector<PlotPoint> points;  ///< in the order they are joined
  bool joined = true;
  bool marked = true;  ///< each point is shown, not only the line
};

enum class PlotMarkKind { kPoint, kAtX, kAtY };

/// A point with a letter, or a limit: a line across the plot at one x, or one y.
struct PlotMark {
  PlotMarkKind kind = PlotMarkKind::kPoint;
  PlotPoint at;
  std::string text;
};

/// What of a bar lies between two values of x.
struct PlotSpan {
  double from = 0, to = 0;
  std::size_t kind = 0;  ///< of the plot's `bar_kinds`
};

/// Of a tornado, of parts one after the other, of a timeline.
struct PlotBar {
  std::string label;
  std::vector<PlotSpan> spans;  ///< the later lie on the earlier
};

/// A chip of a map: where it stands, and its rank in each of the plot's `map_dimensions`.
struct PlotCell {
  double x = 0, y = 0;
  std::string panel{};  ///< of a map in parts: "z = 3"
  std::vector<double> ranks{};
};

/// What readers of a page may ask of a point: that x and y are at least so much each, or at most.
enum class PlotLimits { kNone, kAtLeast, kAtMost };

struct Plot {
  std::string title;  ///< below that of the answer; may be empty
  PlotAxis x, y;      ///< with bars x alone
  std::vector<PlotSeries> series;
  std::vector<PlotMark> marks;
  std::vector<PlotBar> bars;           ///< instead of series; the first on top
  std::vector<std::string> bar_kinds;  ///< what they show; none: the title says it
  std::vector<PlotCell> cells{};       ///< instead of series and bars: a map, which pages alone show
  std::vector<std::string> map_dimensions{};
  PlotLimits limits = PlotLimits::kNone;
};

/// Whether there is anything to draw.
bool has_data(const Plot& plot);

}  // namespace scalecalc
