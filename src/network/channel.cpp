// Sources: scaling book, chapter 3 ("A Deeper Dive into TPU Communication Primitives") for tori, chapter 12
// ("Collectives", "Cross-node collectives") for switched tiers; NCCL's tree and PAT algorithms for the logarithmic
// latency of switched groups.
#include "network/channel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "network/collective.h"

namespace scalecalc {
namespace {

bool is_torus_tier(const HardwareSpec& hw, std::size_t t) { return hw.network[t].kind == TierKind::kTorus; }

/// V is gathered over all axes of the group at once, each carrying a share in proportion to its bandwidth:
///   t = V * (N-1)/N / sum_a W_a.
template <class R>
void add_torus(const TierRates<R>& rates, const Group& group, Channel<R>& channel) {
  BytesPerSecondOf<R> bandwidth(R(0.0));
  BytesPerSecondOf<R> slowest_hop(R(0.0));
  SecondsOf<R> latency(R(0.0));
  SecondsPerByteOf<R> exchange(R(0.0));
  double members = 1;
  bool any = false;
  for (std::size_t a = 0; a < kMaxAxes; ++a) {
    const AxisPart& part = group.axes[a];
    if (part.size == 1) continue;
    const double size = static_cast<double>(part.size);
    const double stride = static_cast<double>(part.stride);
    members *= size;
    channel.links |= 1U << a;
    bandwidth += collective::axis_bandwidth(rates.bandwidth, stride, part.ring);
    latency += collective::axis_latency(rates.latency, R(size), stride, part.ring);
    exchange = max(exchange, collective::axis_exchange(rates.bandwidth, R(size), stride, part.ring));
    const BytesPerSecondOf<R> hop = rates.bandwidth * R(1 / stride);
    slowest_hop = any ? min(slowest_hop, hop) : hop;
    any = true;
  }
  if (!any) return;
  channel.latency_adds = false;
  channel.gather = collective::received_share(R(members)) / bandwidth;
  channel.reduce = collective::twice(channel.gather);
  channel.exchange = exchange;
  channel.send = R(1.0) / slowest_hop;
  channel.gather_latency = latency;
  channel.exchange_latency = latency;
  channel.send_latency = rates.latency;
}

/// [AG-TREE] Domains of `below` members already gathered act as one unit with `below` uplinks, through which all
/// that lies outside the domain arrives:
///   t_i = V * (m - 1) / (m * below * W_i),  m = domains of the group at this tier and beyond;
/// the tiers pipeline, so the slowest binds (book, chapter 12). Inside the innermost domain m counts its members alone:
/// what comes from outside arrives over the next tier's links.
template <class R>
void add_switched(const HardwareSpec& hw, std::size_t t, const TierRates<R>& rates, std::int64_t members,
                  std::int64_t below, std::int64_t beyond, const NetworkRates<R>& network, const Routing& routing,
                  Channel<R>& channel) {
  if (members == 1) return;
  const Tier& tier = hw.network[t];
  const double g = static_cast<double>(t == 0 ? members : beyond);
  const bool mesh = tier.kind == TierKind::kMesh;
  const BytesPerSecondOf<R> per_chip = mesh ? rates.bandwidth * R(g - 1) : rates.bandwidth;
  const R uplinks(static_cast<double>(below));
  const SecondsPerByteOf<R> gather = collective::uplink_gather(collective::received_share(R(g)), uplinks, per_chip);
  channel.gather = max(channel.gather, gather);
  channel.reduce =
      max(channel.reduce, tier.switched.in_network_reduction
                              ? collective::reduced_in_network(gather, network.in_network_gain,
                                                               collective::uplink_gather(R(1.0), uplinks, per_chip))
                              : collective::twice(gather));
  // [A2A-TREE] Of the v bytes a chip holds, the share bound for other domains of this tier leaves through its uplink.
  const double share = t == 0 ? (g - 1) / g : copies_to_other_nodes(g, routing) / routing.top_k;
  channel.exchange = max(channel.exchange, R(share) / per_chip);
  channel.send = max(channel.send, R(1.0) / (mesh ? rates.bandwidth : per_chip));
  channel.gather_latency += collective::tree_latency(rates.latency, R(static_cast<double>(members)));
  channel.exchange_latency += rates.latency;
  channel.send_latency = max(channel.send_latency, rates.latency);
  channel.links |= 1U << (8 + t);
  channel.scale_out = channel.scale_out || t > 0;
}

}  // namespace

double copies_to_other_nodes(double nodes, const Routing& routing) {
  double distinct = nodes * (1 - std::pow(1 - 1 / nodes, routing.top_k));
  if (routing.node_limit > 0) distinct = std::min(distinct, routing.node_limit);
  return distinct * (nodes - 1) / nodes;
}

template <class R>
NetworkRates<R> read_network(const Reader<R>& reader, const HardwareSpec& hw, const Efficiency& efficiency) {
  NetworkRates<R> out;
  for (std::size_t t = 0; t < hw.network.size(); ++t) {
    const Tier& tier = hw.network[t];
    const bool torus = tier.kind == TierKind::kTorus;
    const Coefficient& fraction = t == 0 ? efficiency.link_scale_up : efficiency.link_scale_out;
    const std::string path = "hw.network." + tier.name;
    const R usable = reader.input(fraction.value, t == 0 ? "efficiency.link.scale_up" : "efficiency.link.scale_out",
                                  fraction.source, {}, fraction.error);
    const BytesPerSecond rate =
        torus ? tier.torus.link_bandwidth : tier.switched.bandwidth_per_chip / tier.switched.oversubscription;
    const Seconds latency = torus ? tier.torus.hop_latency : tier.switched.latency;
    out.tiers.push_back({read(reader, rate, path + (torus ? ".link_bandwidth" : ".bandwidth"), tier.source) * usable,
                         read(reader, latency, path + ".latency", tier.source)});
  }
  out.in_network_gain = reader.input(efficiency.in_network_gain.value, "efficiency.in_network_gain",
                                     efficiency.in_network_gain.source, {}, efficiency.in_network_gain.error);
  return out;
}

template <class R>
Channel<R> make_channel(const HardwareSpec& hw, const Slice& slice, const NetworkRates<R>& rates, const Group& group,
                        std::string_view label, const Routing& routing) {
  Channel<R> channel;
  channel.size = group.size();
  if (channel.size == 1) return channel;
  std::int64_t below = 1;
  for (std::size_t t = 0; t < hw.network.size() && t < kMaxTiers; ++t) {
    if (is_torus_tier(hw, t)) {
      add_torus(rates.tiers[t], group, channel);
      if (slice.twisted) {
        bool whole = true;
        for (std::size_t a = 0; a < slice.shape.size(); ++a) whole = whole && group.axes[a].size == slice.shape[a];
        if (whole) channel.exchange = channel.exchange / R(collective::twist_gain(slice.shape));
      }
      for (const AxisPart& part : group.axes) below *= part.size;
      continue;
    }
    add_switched(hw, t, rates.tiers[t], group.tiers[t], below, channel.size / below, rates, routing, channel);
    below *= group.tiers[t];
  }
  channel.gather = named(channel.gather, "all-gather seconds per byte",
                         "book ch. 3 and 12: V (N-1)/N over the bandwidth of the group's links", label);
  channel.reduce =
      named(channel.reduce, "all-reduce seconds per byte", "twice an all-gather, or reduced in the network", label);
  channel.exchange =
      named(channel.exchange, "all-to-all seconds per byte", "book ch. 3 and 12: bisection, uplinks", label);
  channel.gather_latency =
      named(channel.gather_latency, "all-gather latency", "hops, or log2 of the members at each tier", label);
  return channel;
}

namespace {
template <class R>
SecondsOf<R> with_latency(const Channel<R>& channel, const SecondsOf<R>& latency, const SecondsOf<R>& transfer) {
  return channel.latency_adds ? latency + transfer : max(latency, transfer);
}
}  // namespace

template <class R>
SecondsOf<R> all_gather_time(const Channel<R>& channel, const BytesOf<R>& gathered) {
  if (channel.size == 1) return SecondsOf<R>(R(0.0));
  return with_latency(channel, channel.gather_latency, gathered * channel.gather);
}

template <class R>
SecondsOf<R> all_reduce_time(const Channel<R>& channel, const BytesOf<R>& array) {
  if (channel.size == 1) return SecondsOf<R>(R(0.0));
  return with_latency(channel, R(2.0) * channel.gather_latency, array * channel.reduce);
}

template <class R>
SecondsOf<R> all_to_all_time(const Channel<R>& channel, const BytesOf<R>& per_chip) {
  if (channel.size == 1) return SecondsOf<R>(R(0.0));
  return with_latency(channel, channel.exchange_latency, per_chip * channel.exchange);
}

template <class R>
SecondsOf<R> send_time(const Channel<R>& channel, const BytesOf<R>& per_chip) {
  if (channel.size == 1) return SecondsOf<R>(R(0.0));
  return channel.send_latency + per_chip * channel.send;  // point to point: the terms add (book, chapter 2)
}

#define SCALECALC_INSTANTIATE(R)                                                                            \
  template NetworkRates<R> read_network(const Reader<R>&, const HardwareSpec&, const Efficiency&);          \
  template Channel<R> make_channel(const HardwareSpec&, const Slice&, const NetworkRates<R>&, const Group&, \
                                   std::string_view, const Routing&);                                       \
  template SecondsOf<R> all_gather_time(const Channel<R>&, const BytesOf<R>&);                              \
  template SecondsOf<R> all_reduce_time(const Channel<R>&, const BytesOf<R>&);                              \
  template SecondsOf<R> all_to_all_time(const Channel<R>&, const BytesOf<R>&);                              \
  template SecondsOf<R> send_time(const Channel<R>&, const BytesOf<R>&);
SCALECALC_INSTANTIATE(double)
SCALECALC_INSTANTIATE(Dual)
SCALECALC_INSTANTIATE(Traced)
SCALECALC_INSTANTIATE(Interval)
#undef SCALECALC_INSTANTIATE

}  // namespace scalecalc
