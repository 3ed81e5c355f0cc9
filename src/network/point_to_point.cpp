// Computes the time of a transfer from one chip to another, with its working.
#include "network/point_to_point.h"

namespace scalecalc {
namespace {

Traced counted(std::int64_t value, std::string_view name) {
  return kReader.input(static_cast<double>(value), name, "the way asked for");
}

}  // namespace

Way torus_way(const HardwareSpec& hw, const NetworkRates<Traced>& rates, std::int64_t hops) {
  Way out;
  if (hops == 0) return out;
  out.rate = rates.tiers.front().bandwidth;
  out.latency = rates.tiers.front().latency * counted(hops, "hops");
  if (value_of(rates.kernels.latency_up) > 0) out.latency += rates.kernels.latency_up;
  out.hops = hops;
  out.tier = hw.network.front().name;
  return out;
}

void cross(const HardwareSpec& hw, const NetworkRates<Traced>& rates, std::size_t tier, Way& way) {
  const TierRates<Traced>& own = rates.tiers[tier];
  if (way.tier.empty() || own.bandwidth < way.rate) {
    way.rate = own.bandwidth;
    way.tier = hw.network[tier].name;
  }
  const SecondsOf<Traced>& start = tier == 0 ? rates.kernels.latency_up : rates.kernels.latency_out;
  const SecondsOf<Traced> latency = value_of(start) > 0 ? own.latency + start : own.latency;
  if (value_of(way.latency) < value_of(latency)) way.latency = latency;
}

Way switched_way(const HardwareSpec& hw, const NetworkRates<Traced>& rates, std::int64_t from, std::int64_t to) {
  Way out;
  if (from == to) return out;
  std::size_t top = 0;
  for (; top + 1 < hw.network.size(); ++top) {
    const std::int64_t domain = hw.network[top].switched.chips;
    if (domain == 0 || from / domain == to / domain) break;
  }
  for (std::size_t t = top == 0 ? 0 : 1; t <= top; ++t) cross(hw, rates, t, out);
  return out;
}

TransferTime transfer_time(const Way& way, const BytesOf<Traced>& bytes, std::int64_t links) {
  TransferTime out;
  if (!way.tier.empty()) {
    out.bandwidth_time = bytes / (way.hops > 0 ? way.rate * counted(links, "links used at once") : way.rate);
  }
  out.bandwidth_time = named(out.bandwidth_time, "bandwidth time", "book ch. 2: bytes over the links used at once");
  out.latency = named(way.latency, "latency", "book ch. 2: hops, one after the other; a tier's or a kernel's own");
  out.time = named(out.latency + out.bandwidth_time, "time", "book ch. 2, question 5: point to point the terms add");
  return out;
}

}  // namespace scalecalc
