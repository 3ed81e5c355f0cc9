// Reads the bandwidths and latencies of a machine's links, for every cost that communicates.
#include "network/tier_rates.h"

#include <fmt/format.h>

#include "base/diagnostic.h"

namespace scalecalc {
namespace {

std::string_view bandwidth_key(const Tier& tier) {
  return tier.kind == TierKind::kSwitched ? "bandwidth_per_chip" : "link_bandwidth";
}
std::string_view latency_key(const Tier& tier) { return tier.kind == TierKind::kTorus ? "hop_latency" : "latency"; }

std::string figure_path(const Tier& tier, std::string_view key) { return fmt::format("network.{}.{}", tier.name, key); }

/// A coefficient that nobody gave stays out of the formulas.
template <class R>
class KernelReader {
 public:
  KernelReader(const Reader<R>& reader, bool serving)
      : reader_(reader), prefix_(serving ? "efficiency.serving." : "efficiency.") {}

  void operator()(const Coefficient& c, const char* name, SecondsOf<R>& out) const {
    if (c.value > 0) out = read(reader_, Seconds(c.value), prefix_ + name, c.source, c.error);
  }
  void operator()(const Coefficient& c, const char* name, R& out) const {
    if (c.value != value_of(out)) out = reader_.input(c.value, prefix_ + name, c.source, {}, c.error);
  }

 private:
  const Reader<R>& reader_;
  std::string prefix_;
};

template <class R>
KernelRates<R> read_kernels(const Reader<R>& reader, const CollectiveKernels& kernels, bool serving) {
  const KernelReader<R> in(reader, serving);
  KernelRates<R> out;
  in(kernels.latency_scale_up, "latency.scale_up", out.latency_up);
  in(kernels.latency_scale_out, "latency.scale_out", out.latency_out);
  in(kernels.latency_growth, "latency_growth", out.growth);
  in(kernels.ring_hop_scale_up, "ring_hop.scale_up", out.hop_up);
  in(kernels.ring_hop_scale_out, "ring_hop.scale_out", out.hop_out);
  in(kernels.all_to_all_scale_up, "exchange_latency.scale_up", out.all_to_all_up);
  in(kernels.all_to_all_scale_out, "exchange_latency.scale_out", out.all_to_all_out);
  in(kernels.collective_ramp, "collective_ramp", out.ramp);
  in(kernels.collective_factor, "collective_factor", out.factor);
  return out;
}

}  // namespace

template <class R>
BytesPerSecondOf<R> tier_bandwidth(const Reader<R>& reader, const HardwareSpec& hw, std::size_t tier) {
  const Tier& t = hw.network[tier];
  const BytesPerSecondOf<R> port = read(reader, port_bandwidth(t), bandwidth_name(t), t.source);
  if (t.kind == TierKind::kTorus || t.switched.oversubscription == 1) return port;
  return port / reader.input(t.switched.oversubscription, "hw." + figure_path(t, "oversubscription"), t.source);
}

template <class R>
SecondsOf<R> tier_latency(const Reader<R>& reader, const HardwareSpec& hw, std::size_t tier) {
  const Tier& t = hw.network[tier];
  return read(reader, link_latency(t), latency_name(t), t.source);
}

template <class R>
R link_efficiency(const Reader<R>& reader, const Efficiency& efficiency, std::size_t tier) {
  const Coefficient& share = tier == 0 ? efficiency.link_scale_up : efficiency.link_scale_out;
  return reader.input(share.value, tier == 0 ? "efficiency.link.scale_up" : "efficiency.link.scale_out", share.source,
                      {}, share.error);
}

template <class R>
NetworkRates<R> read_network(const Reader<R>& reader, const HardwareSpec& hw, const Efficiency& efficiency,
                             bool serving) {
  NetworkRates<R> out;
  for (std::size_t t = 0; t < hw.network.size(); ++t) {
    out.tiers.push_back(
        {tier_bandwidth(reader, hw, t) * link_efficiency(reader, efficiency, t), tier_latency(reader, hw, t)});
  }
  const Coefficient& gain = efficiency.in_network_gain;
  out.in_network_gain = reader.input(gain.value, "efficiency.in_network_gain", gain.source, {}, gain.error);
  out.kernels =
      serving ? read_kernels(reader, efficiency.serving, true) : read_kernels(reader, efficiency.collectives, false);
  return out;
}

BytesPerSecondOf<Traced> chip_egress(const HardwareSpec& hw, std::size_t tier) {
  const Tier& t = hw.network[tier];
  const BytesPerSecondOf<Traced> rate = tier_bandwidth(kReader, hw, tier);
  if (t.kind != TierKind::kMesh) return rate;
  const Traced peers = kReader.input(static_cast<double>(t.switched.chips - 1), "peers", t.source);
  return named(rate * peers, "W_gpu", "a link to each other chip of the domain");
}

BytesPerSecondOf<Traced> node_egress(const HardwareSpec& hw, std::int64_t chips) {
  const Tier& node = hw.network.front();
  const std::int64_t used = chips > 0 ? chips : node.switched.chips;
  const Traced count = kReader.input(static_cast<double>(used), "chips of a node", node.source);
  return named(chip_egress(hw, 1) * count, "W_node", "book ch. 12: every chip's own network port");
}

std::size_t spanning_tier(const HardwareSpec& hw, std::int64_t chips, bool apart) {
  if (hw.network.empty()) {
    throw UserError(fmt::format("{} stands alone: nothing can be sent to it", hw.name), "chips with a network");
  }
  if (hw.is_torus()) return apart && hw.network.size() > 1 ? 1 : 0;
  for (std::size_t t = 0; t + 1 < hw.network.size(); ++t) {
    const std::int64_t domain = hw.network[t].switched.chips;
    if (domain == 0 || domain >= chips) return t;
  }
  return hw.network.size() - 1;
}

BytesPerSecond port_bandwidth(const Tier& tier) {
  return tier.kind == TierKind::kTorus ? tier.torus.link_bandwidth : tier.switched.bandwidth_per_chip;
}

Seconds link_latency(const Tier& tier) {
  return tier.kind == TierKind::kTorus ? tier.torus.hop_latency : tier.switched.latency;
}

std::string bandwidth_name(const Tier& tier) { return "hw." + figure_path(tier, bandwidth_key(tier)); }
std::string latency_name(const Tier& tier) { return "hw." + figure_path(tier, latency_key(tier)); }

bool publishes_bandwidth(const HardwareSpec& hw, std::size_t tier) {
  return hw.publishes(figure_path(hw.network[tier], bandwidth_key(hw.network[tier])));
}

bool publishes_tier(const HardwareSpec& hw, std::size_t tier) {
  return hw.publishes("network." + hw.network[tier].name);
}

void require_bandwidth(const HardwareSpec& hw, std::size_t tier) {
  require_published(hw, {figure_path(hw.network[tier], bandwidth_key(hw.network[tier]))});
}

void require_latency(const HardwareSpec& hw, std::size_t tier) {
  require_published(hw, {figure_path(hw.network[tier], latency_key(hw.network[tier]))});
}

void scale_bandwidth(HardwareSpec& hw, std::size_t tier, double factor) {
  Tier& t = hw.network[tier];
  t.torus.link_bandwidth = t.torus.link_bandwidth * factor;
  t.switched.bandwidth_per_chip = t.switched.bandwidth_per_chip * factor;
}

void scale_latency(HardwareSpec& hw, std::size_t tier, double factor) {
  Tier& t = hw.network[tier];
  t.torus.hop_latency = t.torus.hop_latency * factor;
  t.switched.latency = t.switched.latency * factor;
}

void set_bandwidth(HardwareSpec& hw, std::size_t tier, BytesPerSecond per_chip) {
  hw.network[tier].switched.bandwidth_per_chip = per_chip;
}

#define SCALECALC_INSTANTIATE(R)                                                                   \
  template BytesPerSecondOf<R> tier_bandwidth(const Reader<R>&, const HardwareSpec&, std::size_t); \
  template SecondsOf<R> tier_latency(const Reader<R>&, const HardwareSpec&, std::size_t);          \
  template R link_efficiency(const Reader<R>&, const Efficiency&, std::size_t);                    \
  template NetworkRates<R> read_network(const Reader<R>&, const HardwareSpec&, const Efficiency&, bool);
SCALECALC_INSTANTIATE(double)
SCALECALC_INSTANTIATE(Dual)
SCALECALC_INSTANTIATE(Traced)
#undef SCALECALC_INSTANTIATE

std::int64_t chips_inside(const HardwareSpec& hw) { return hw.network.empty() ? 1 : hw.network.front().switched.chips; }

}  // namespace scalecalc
