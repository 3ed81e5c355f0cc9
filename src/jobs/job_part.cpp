#include "jobs/job_part.h"

#include "network/slice.h"
#include "network/tier_rates.h"

namespace scalecalc {

BytesPerSecondOf<Traced> chip_ingress(const HardwareSpec& hw, const Efficiency& efficiency, std::int64_t chips,
                                      bool apart) {
  const Reader<Traced> reader;
  const std::size_t tier = spanning_tier(hw, chips, apart);
  return named(tier_bandwidth(reader, hw, tier) * link_efficiency(reader, efficiency, tier), "rate into a chip",
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

JobRun job_run(const ResolvedQuestion& job, std::int64_t chips, const SecondsOf<Traced>& time) {
  const Traced count = Traced::leaf(static_cast<double>(chips), "chips", "asked", {});
  const SecondsOf<Traced> hour(Traced::leaf(3600, "an hour", "", kSecondDim));
  JobRun out{.time = time, .chip_hours = named(time * count / hour, "chip-hours", "chips x time")};
  if (job.usd_per_chip_hour) {
    const Quantity<kUsdDim, Traced> price(
        Traced::leaf(*job.usd_per_chip_hour, "price of a chip-hour", "--price or the hardware file", kUsdDim));
    out.cost = named(price * out.chip_hours, "cost", "chip-hours x price");
  }
  if (job.hw.tdp) {
    const auto power = read(Reader<Traced>{}, *job.hw.tdp, "hw.power.tdp", job.hw.tdp_source);
    out.energy = named(time * power * count, "energy", "every chip at its full power, idle or not");
  }
  return out;
}

}  // namespace scalecalc
