// Draws the roofs of chips with points below them, for train, serve, hw and roofline.
#include "report/roof_plots.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "report/plot_bars.h"

namespace scalecalc {
namespace {

std::string number_text(double value) { return text_of(Cell(value), Format::kNumber); }

}  // namespace

Plot roofs_plot(const std::vector<ChipRoof>& roofs, const std::vector<double>& others) {
  Plot out{.x = {.title = "intensity (FLOP/byte)", .log = true},
           .y = {.title = "attained", .format = Format::kFlopsPerSecond, .log = true}};
  double low = roofs.front().ridge(), high = low;
  for (const ChipRoof& roof : roofs) {
    low = std::min(low, roof.ridge());
    high = std::max(high, roof.ridge());
  }
  for (const double x : others) {
    low = std::min(low, x);
    high = std::max(high, x);
  }
  constexpr double kBeyond = 4;
  low /= kBeyond;
  high *= kBeyond;
  for (const ChipRoof& roof : roofs) {
    out.series.push_back(bound_series(
        roof.name, {{low, low * roof.bytes_per_s}, {roof.ridge(), roof.flops_per_s}, {high, roof.flops_per_s}}));
    out.marks.push_back(
        {.at = {roof.ridge(), roof.flops_per_s},
         .text = fmt::format("ridge{}: {} FLOP/byte, {}", roofs.size() > 1 ? " of " + roof.name : "",
                             number_text(roof.ridge()), text_of(roof.flops_per_s, Format::kFlopsPerSecond))});
  }
  return out;
}

std::vector<ChipRoof> roofs_of(const HardwareSpec& hw, std::initializer_list<DType> formats) {
  std::vector<ChipRoof> out;
  const double memory = hw.hbm_bandwidth.value();
  for (const DType dtype : formats) {
    const auto peak = hw.matmul_peak[static_cast<std::size_t>(dtype)];
    if (!peak || (!out.empty() && out.front().flops_per_s == peak->value())) continue;
    out.push_back({fmt::format("roof: {} in {}, {}", text_of(Cell(peak->value()), Format::kFlopsPerSecond),
                               name_of(dtype), text_of(Cell(memory), Format::kBytesPerSecond)),
                   peak->value(), memory});
  }
  return out;
}

Plot roofs_with_points(const std::vector<ChipRoof>& roofs, std::vector<PlotSeries> points) {
  std::vector<double> intensities;
  for (const PlotSeries& series : points) {
    for (const PlotPoint& p : series.points) intensities.push_back(p.x);
  }
  Plot out = roofs_plot(roofs, intensities);
  for (PlotSeries& series : points) out.series.push_back(std::move(series));
  return out;
}

}  // namespace scalecalc
