// Shows the chips of the catalog in one line each, for `scalecalc hw list`.
#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "hw/hw_figures_output.h"
#include "hw/hw_output.h"
#include "network/tier_rates.h"

namespace scalecalc {
namespace {

/// What one chip sends to its neighbours, all links of the innermost tier; 0 if not published.
double scale_up(const HardwareSpec& hw) {
  if (hw.network.empty() || !publishes_tier(hw, 0)) return 0;
  const Tier& tier = hw.network.front();
  const double rate = port_bandwidth(tier).value();
  switch (tier.kind) {
    case TierKind::kTorus: return 2 * static_cast<double>(tier.torus.dimensions()) * rate;
    case TierKind::kMesh: return rate * static_cast<double>(tier.switched.chips - 1);
    case TierKind::kSwitched: return rate;
  }
  return 0;
}

Figure quantity(std::string_view key, std::string_view label, Format format, double value, int importance) {
  return with_importance(figure(key, label, format, value > 0 ? Cell(value) : Cell{}), importance);
}

/// One line; the rates of every format follow for machines.
Record chip_line(const HardwareSpec& hw, std::optional<DType> dtype) {
  Figures out;
  out.text("name", "chip", hw.name);
  out.text("title", "", hw.title);
  out.record.figures.push_back(with_importance(figure("vendor", "vendor", Format::kText, Cell(hw.vendor)), 3));
  out.text("family", "", hw.family);
  out.record.figures.push_back(quantity("year", "year", Format::kText, static_cast<double>(hw.year), 4));
  out.flag("announced", "", hw.announced);
  const auto rate = compared_rate(hw, dtype);
  const std::string label = dtype ? fmt::format("matmul {}", name_of(*dtype)) : "matmul 16-bit";
  out.record.figures.push_back(
      quantity("compared_flops_per_s", label, Format::kFlopsPerSecond, rate ? rate->value() : 0, 0));
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    if (hw.matmul_peak[i]) {
      out.number(fmt::format("matmul_flops_per_s.{}", kDTypeNames[i]), "", Format::kFlopsPerSecond,
                 hw.matmul_peak[i]->value());
    }
  }
  out.record.figures.push_back(quantity("memory_bytes", "memory", Format::kBytes, hw.hbm_capacity.value(), 0));
  out.record.figures.push_back(
      quantity("memory_bandwidth_bytes_per_s", "bandwidth", Format::kBytesPerSecond, hw.hbm_bandwidth.value(), 0));
  const bool has_both = rate && hw.hbm_bandwidth.value() > 0;
  out.record.figures.push_back(quantity("critical_intensity_flops_per_byte.hbm", "FLOPs/byte", Format::kNumber,
                                        has_both ? *rate / hw.hbm_bandwidth / FlopsPerByte(1) : 0, 2));
  out.record.figures.push_back(quantity("scale_up_bytes_per_s", "scale-up", Format::kBytesPerSecond, scale_up(hw), 1));
  out.record.figures.push_back(quantity("tdp_w", "power", Format::kWatts, hw.tdp ? hw.tdp->value() : 0, 5));
  out.record.figures.push_back(
      quantity("usd_per_chip_hour", "$/hour", Format::kUsd, paid_price(hw, {}).usd_per_chip_hour.value_or(0), 1));
  out.records("sources", "", hw_source_records(hw));
  return std::move(out.record);
}

}  // namespace

Output hw_list_output(const HwList& list) {
  Output out{.command = "hw-list"};
  const std::string what = list.question.book ? "entries with the scaling book's rates" : "chips and systems";
  out.title = fmt::format("{} {}", list.chips.size(), what);
  if (list.left_out > 0) out.title += fmt::format("; {} do not meet the conditions", list.left_out);
  const std::vector<std::string>& words = list.question.words;
  out.query.figures.push_back(list_figure("filters", "", {words.begin(), words.end()}));
  Block chips{.key = "chips"};
  for (const HardwareSpec& hw : list.chips) chips.records.push_back(chip_line(hw, list.question.dtype));
  out.blocks.push_back(std::move(chips));
  const auto unpriced = std::count_if(list.chips.begin(), list.chips.end(),
                                      [](const HardwareSpec& hw) { return !paid_price(hw, {}).usd_per_chip_hour; });
  if (list.question.order == HwOrder::kPrice && unpriced > 0) {
    out.notes.push_back(fmt::format("{} of them have no price and come last; --priced leaves them out", unpriced));
  }
  out.notes.emplace_back(
      "dense rates and one-way bandwidths of one chip; scale-up is all links of the innermost tier. scalecalc hw CHIP "
      "shows one with its sources");
  return out;
}

}  // namespace scalecalc
