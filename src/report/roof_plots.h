// Pictures under the roofs of a chip: what its compute and its memory allow over the intensity of what runs.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "report/plot.h"
#include "spec/hardware_spec.h"

namespace scalecalc {

/// FLOP/s over FLOP/byte below a rate of compute and one of memory.
struct ChipRoof {
  std::string name;
  double flops_per_s = 0, bytes_per_s = 0;
  double ridge() const { return flops_per_s / bytes_per_s; }
};
/// The formats whose peaks bound a job, each once, with the chip's memory.
std::vector<ChipRoof> roofs_of(const HardwareSpec& hw, std::initializer_list<DType> formats);
/// Axes, roofs and ridges; the axis of x holds `others` too.
Plot roofs_plot(const std::vector<ChipRoof>& roofs, const std::vector<double>& others);
/// Roofs, their ridges, and points below them.
Plot roofs_with_points(const std::vector<ChipRoof>& roofs, std::vector<PlotSeries> points);

}  // namespace scalecalc
