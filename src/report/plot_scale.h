// From values to places along an axis, with round ticks and the unit that suits them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "report/plot.h"

namespace scalecalc {

struct PlotTick {
  double value = 0;  ///< base unit
  std::string label;
};

/// A unit for values of a size: 1e12 and "TFLOP/s" for 3e13 FLOP/s. Empty for plain numbers.
struct PlotUnit {
  double factor = 1;
  std::string name;
};
PlotUnit plot_unit(Format format, double size);

class PlotScale {
 public:
  /// Holds all finite values, some room at the ends; about `most` ticks at most.
  PlotScale(const PlotAxis& axis, std::vector<double> values, std::size_t most);

  /// 0 at the low end, 1 at the high one.
  double place(double value) const;
  bool log() const { return log_; }
  const std::vector<PlotTick>& ticks() const { return ticks_; }
  const PlotUnit& unit() const { return unit_; }
  /// "time of a step (ms)".
  const std::string& title() const { return title_; }

 private:
  void linear_ticks(std::size_t most);
  void log_ticks(std::size_t most);
  void steps_inside(std::size_t most);
  void add_tick(double in_units);

  bool log_ = false;
  double low_ = 0, high_ = 1;  ///< in `unit_`; of a log scale their log10
  PlotUnit unit_;
  std::string title_;
  std::vector<PlotTick> ticks_;
};

/// The scales of a plot whose axes have room for so many ticks. With bars that of y is of no use.
struct PlotScales {
  PlotScale x, y;
};
PlotScales plot_scales(const Plot& plot, std::size_t most_x, std::size_t most_y);

/// "A", "B", ...: what stands at the plot's marked points, in their order.
std::string mark_letter(std::size_t index);

/// Its texts without what a terminal obeys.
Plot printable_plot(Plot plot);

}  // namespace scalecalc
