// Rates and the intensities at which compute and a channel take the same time: C / W, scaling book, chapters 1 and 2.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/diagnostic.h"
#include "base/scalar.h"
#include "base/text.h"
#include "network/tier_rates.h"
#include "primitives/hw.h"
#include "primitives/named_rates.h"

namespace scalecalc {
namespace {

std::size_t at(DType dtype) { return static_cast<std::size_t>(dtype); }

/// What a user of the chip would train in.
std::optional<DType> usual_dtype(const HardwareSpec& hw) {
  for (const DType dtype : {DType::kBf16, DType::kFp16, DType::kFp8, DType::kInt8, DType::kFp32}) {
    if (hw.matmul_peak[at(dtype)]) return dtype;
  }
  return std::nullopt;
}

TracedBandwidth onchip_bandwidth(const HardwareSpec& hw, const MemoryLevel& level) {
  const std::string path = fmt::format("hw.onchip.{}.bandwidth", level.name);
  if (level.over_hbm == 0) return read(kReader, *level.bandwidth, path, hw.onchip.source);
  const Traced times = kReader.input(level.over_hbm, path + "_over_hbm", hw.onchip.source);
  return named(NamedRates(hw).hbm() * times, fmt::format("{} bandwidth", level.name),
               "book ch. 2: so many times HBM's");
}

/// The channels of the innermost tier.
void add_scale_up(const HardwareSpec& hw, const NamedRates& rates, std::vector<HwChannel>& out) {
  const Tier& tier = hw.network.front();
  if (!publishes_tier(hw, 0)) return;
  if (tier.kind != TierKind::kTorus) {
    out.push_back({tier.name, fmt::format("{}, one chip's egress", tier.name), rates.scale_up()});
    return;
  }
  out.push_back({tier.name, fmt::format("{}, one axis both ways", tier.name), rates.ici()});
  out.push_back({tier.name + "_one_way", fmt::format("{}, one link one way", tier.name), rates.link()});
  const Traced axes = kReader.input(static_cast<double>(rates.axes()), "axes", tier.source);
  out.push_back({tier.name + "_all_axes", fmt::format("{}, all axes", tier.name),
                 named(rates.ici() * axes, "all axes", "book ch. 2: every axis at once")});
}

/// The tiers beyond, as seen by one chip; and the first of them as seen by a whole node.
void add_scale_out(const HardwareSpec& hw, const NamedRates& rates, std::vector<HwChannel>& out) {
  for (std::size_t t = 1; t < hw.network.size(); ++t) {
    if (!publishes_tier(hw, t)) continue;
    const Tier& tier = hw.network[t];
    out.push_back({tier.name, fmt::format("{}, one chip's share", tier.name), chip_egress(hw, t)});
  }
  if (!hw.is_torus() && hw.network.size() > 1 && hw.publishes("network")) {
    out.push_back({"node_egress", "a whole node's egress", rates.node_egress()});
  }
}

std::vector<HwChannel> channels_of(const HardwareSpec& hw) {
  const NamedRates rates(hw);
  std::vector<HwChannel> out;
  if (hw.publishes("hbm.bandwidth")) out.push_back({"hbm", "memory", rates.hbm()});
  for (const MemoryLevel& level : hw.onchip.levels) {
    if (!level.bandwidth) continue;
    out.push_back({std::string(level.name), std::string(level.name), onchip_bandwidth(hw, level)});
  }
  if (!hw.network.empty()) {
    add_scale_up(hw, rates, out);
    add_scale_out(hw, rates, out);
  }
  if (hw.pcie_bandwidth) out.push_back({"pcie", "host link", rates.pcie()});
  if (hw.offload && hw.offload->bandwidth) {
    out.push_back({"offload", "memory beside the chip",
                   read(kReader, *hw.offload->bandwidth, "hw.offload.bandwidth", hw.offload->source)});
  }
  return out;
}

template <class Rates>
std::vector<std::pair<DType, TracedRate>> listed(const Rates& rates, const char* path, const std::string& source) {
  std::vector<std::pair<DType, TracedRate>> out;
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    if (!rates[i]) continue;
    out.emplace_back(static_cast<DType>(i),
                     read(kReader, *rates[i], fmt::format("{}.{}", path, kDTypeNames[i]), source));
  }
  return out;
}

void add_intensities(const HardwareSpec& hw, HwRates& out) {
  if (out.dtype) {
    const TracedRate peak = NamedRates(hw).matmul(*out.dtype);
    for (const HwChannel& channel : out.channels) {
      out.intensities.emplace_back(channel.name, named(peak / channel.rate, "critical intensity, " + channel.label,
                                                       "book ch. 1: C / W, FLOPs that hide a byte"));
    }
  }
  if (!hw.publishes("hbm.bandwidth")) return;
  const TracedBandwidth hbm = NamedRates(hw).hbm();
  for (const auto& [dtype, rate] : out.matmul) {
    out.hbm_intensities.emplace_back(
        dtype, named(rate / hbm, fmt::format("{} against memory", name_of(dtype)), "book ch. 1: C / W_hbm"));
  }
  for (const HwChannel& channel : out.channels) {
    if (channel.name == "hbm") continue;
    out.hbm_over.emplace_back(channel.name,
                              named(hbm / channel.rate, "memory over " + channel.label, "ratio of bandwidths"));
  }
}

}  // namespace

HwRates rates_of(const HardwareSpec& hw, std::optional<DType> dtype) {
  HwRates out;
  if (dtype) NamedRates(hw).matmul(*dtype);  // refuses a format without a rate
  out.dtype = dtype ? dtype : usual_dtype(hw);
  out.matmul = listed(hw.matmul_peak, "hw.compute.matmul", hw.compute_source);
  out.vector = listed(hw.vector_rates, "hw.compute.vector", hw.compute_source);
  out.channels = channels_of(hw);
  if (hw.units.cores > 0) {
    const Traced cores = kReader.input(static_cast<double>(hw.units.cores), "hw.units.cores", hw.units.source);
    for (const auto& [type, rate] : out.matmul) {
      out.matmul_per_core.emplace_back(
          type, named(rate / cores, fmt::format("{} matmul of one core", name_of(type)), "the chip's over its cores"));
    }
  }
  if (hw.vector_counts_fma) {
    for (const auto& [type, rate] : out.vector) {
      out.vector_without_fma.emplace_back(
          type, named(rate / Traced(2.0), fmt::format("{} adds", name_of(type)), "a fused multiply-add counts as two"));
    }
  }
  add_intensities(hw, out);
  if (!hw.prices.empty()) {
    const Price& price = hw.prices.front();
    const Traced usd = kReader.input(price.usd_per_chip_hour, "hw.prices.0.usd_per_chip_hour", price.source);
    for (const auto& [type, rate] : out.matmul) {
      out.flops_per_usd.emplace_back(
          type, named(rate.value() * Traced(3600.0) / usd, fmt::format("{} FLOPs per dollar", name_of(type)),
                      "book ch. 6: C x 3600 / price"));
    }
  }
  return out;
}

}  // namespace scalecalc
