#include "jobs/job_links.h"

#include <fmt/format.h>

#include "base/diagnostic.h"
#include "network/slice.h"

namespace scalecalc {
namespace {

const Tier& tier_spanning(const HardwareSpec& hw, std::int64_t chips, bool apart) {
  if (hw.network.empty()) {
    throw UserError(fmt::format("{} stands alone: nothing can be sent to it", hw.name), "chips with a network");
  }
  if (hw.is_torus()) return apart && hw.network.size() > 1 ? hw.network[1] : hw.network.front();
  for (const Tier& tier : hw.network) {
    if (tier.switched.chips == 0 || tier.switched.chips >= chips) return tier;
  }
  return hw.network.back();
}

}  // namespace

BytesPerSecondOf<Traced> chip_ingress(const HardwareSpec& hw, const Efficiency& efficiency, std::int64_t chips,
                                      bool apart) {
  const Tier& tier = tier_spanning(hw, chips, apart);
  const bool inner = &tier == &hw.network.front();
  const Coefficient& share = inner ? efficiency.link_scale_up : efficiency.link_scale_out;
  const Reader<Traced> reader;
  const BytesPerSecond rate = tier.kind == TierKind::kTorus
                                  ? tier.torus.link_bandwidth
                                  : tier.switched.bandwidth_per_chip / tier.switched.oversubscription;
  const Traced reached = reader.input(share.value, inner ? "efficiency.link_scale_up" : "efficiency.link_scale_out",
                                      share.source, {}, share.error);
  return named(read(reader, rate, "bandwidth of " + tier.name, tier.source) * reached, "rate into a chip",
               "book ch. 3, 12");
}

std::optional<BytesPerSecondOf<Traced>> host_link(const HardwareSpec& hw) {
  if (!hw.host_bandwidth() || hw.host_memory().value() <= 0) return std::nullopt;
  return read(Reader<Traced>{}, *hw.host_bandwidth(), "hw.host.pcie_bandwidth", hw.host_source);
}

std::vector<std::int64_t> built_counts(const HardwareSpec& hw, std::int64_t most) {
  std::vector<std::int64_t> out;
  for (std::int64_t count = nearest_above(hw, 1, 1); count > 0 && count <= most;
       count = nearest_above(hw, count + 1, 1)) {
    out.push_back(count);
  }
  return out;
}

ChipSplits chip_splits(const HardwareSpec& hw, std::int64_t chips) {
  ChipSplits out;
  if (chips < 2 || hw.network.empty()) return out;
  std::vector<ChipSplit> all;
  for (const std::int64_t first : built_counts(hw, chips - 1)) {
    const std::int64_t second = nearest_below(hw, chips - first, 1);
    if (second > 0) all.push_back({first, second});
  }
  if (all.size() <= kMostSplits) {
    out.splits = std::move(all);
    return out;
  }
  for (std::size_t i = 0; i < kMostSplits; ++i) out.splits.push_back(all[i * (all.size() - 1) / (kMostSplits - 1)]);
  out.left_out = all.size() - kMostSplits;
  return out;
}

}  // namespace scalecalc
