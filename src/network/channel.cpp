// Computes seconds per byte and latency of a placed group for each collective, for the search. Sources: scaling book,
// chapter 3 ("A Deeper Dive into TPU Communication Primitives") for tori, chapter 12 ("Collectives", "Cross-node
// collectives") for switched tiers; network/latency.h for what groups wait.
#include "network/channel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "network/collective.h"
#include "network/latency.h"

namespace scalecalc {
namespace {

constexpr std::string_view kLatencySource = "[COLL-LATENCY]: hops, operations or messages; or measured kernels";

bool is_torus_tier(const HardwareSpec& hw, std::size_t t) { return hw.network[t].kind == TierKind::kTorus; }

/// V is gathered over all axes of the group at once, each carrying a share in proportion to its bandwidth:
///   t = V * (N-1)/N / sum_a W_a.
template <class R>
void add_torus(const TierRates<R>& rates, const Group& group, Latency<R>& waits, Channel<R>& channel) {
  collective::Axes<R> axes;
  BytesPerSecondOf<R> slowest_hop(R(0.0));
  double members = 1;
  bool any = false;
  for (std::size_t a = 0; a < kMaxAxes; ++a) {
    const AxisPart& part = group.axes[a];
    if (part.size == 1) continue;
    const double size = static_cast<double>(part.size);
    const double stride = static_cast<double>(part.stride);
    members *= size;
    channel.links |= 1U << a;
    axes.add(rates, R(size), stride, part.ring);
    const BytesPerSecondOf<R> hop = rates.bandwidth * R(1 / stride);
    slowest_hop = any ? min(slowest_hop, hop) : hop;
    any = true;
  }
  if (!any) return;
  channel.latency_adds = false;
  channel.scale_up = true;
  channel.gather = collective::received_share(R(members)) / axes.bandwidth;
  channel.reduce = collective::twice(channel.gather);
  channel.all_to_all = axes.all_to_all;
  channel.send = R(1.0) / slowest_hop;
  waits.hops(axes.way, rates.latency);
}

template <class R>
void add_switched(const HardwareSpec& hw, std::size_t t, const TierRates<R>& rates, std::int64_t members,
                  std::int64_t below, std::int64_t beyond, std::int64_t nodes, const NetworkRates<R>& network,
                  const Routing& routing, Latency<R>& waits, Channel<R>& channel) {
  if (members == 1) return;
  const Tier& tier = hw.network[t];
  const double g = static_cast<double>(t == 0 ? members : beyond);
  const double passing = network.kernels.rings() ? static_cast<double>(channel.size) : g;
  const bool mesh = tier.kind == TierKind::kMesh;
  const BytesPerSecondOf<R> per_chip = mesh ? rates.bandwidth * R(g - 1) : rates.bandwidth;
  const double sent = t == 0 ? copies_beyond(members, channel.size, routing) : copies_beyond(beyond, nodes, routing);
  const double leaving = sent / routing.top_k;
  const collective::Tiered<R> part =
      collective::switched(per_chip, collective::received_share(R(passing)), R(static_cast<double>(below)), R(leaving),
                           tier.switched.in_network_reduction ? &network.in_network_gain : nullptr);
  channel.gather = max(channel.gather, part.gather);
  channel.reduce = max(channel.reduce, part.reduce);
  channel.all_to_all = max(channel.all_to_all, part.all_to_all);
  channel.send = max(channel.send, R(1.0) / (mesh ? rates.bandwidth : per_chip));
  waits.tier(tier.switched, rates.latency, R(static_cast<double>(members)), tier.switched.in_network_reduction);
  channel.links |= 1U << (8 + t);
  (t > 0 ? channel.scale_out : channel.scale_up) = true;
}

}  // namespace

namespace {

double ways(std::int64_t of, std::int64_t chosen) {
  if (chosen < 0 || chosen > of) return 0;
  double out = 1;
  for (std::int64_t i = 0; i < chosen; ++i) out = out * static_cast<double>(of - i) / static_cast<double>(i + 1);
  return out;
}

/// Chance that a token has an expert on node `j` of `nodes`, whose experts are those from group j G / nodes to (j + 1)
/// G / nodes: some whole groups, and parts of up to two. Which groups are chosen is chance, and which experts in them.
double chance_on(std::int64_t j, std::int64_t nodes, const Routing& routing) {
  const std::int64_t from = j * routing.n_group;  // in parts of which a group has `nodes`
  const std::int64_t to = from + routing.n_group;
  const std::int64_t first = (from + nodes - 1) / nodes;
  const std::int64_t last = to / nodes;
  const std::int64_t whole = std::max<std::int64_t>(0, last - first);
  std::array<std::int64_t, 2> parts{last < first ? to - from : first * nodes - from,
                                    last < first ? 0 : to - last * nodes};
  const std::int64_t shared = (parts[0] > 0 ? 1 : 0) + (parts[1] > 0 ? 1 : 0);
  const double chosen = static_cast<double>(routing.topk_group);
  double missed = 0;
  for (std::int64_t c = 0; c <= std::min(whole, routing.topk_group); ++c) {
    for (int s = 0; s < 4; ++s) {
      const bool one = (s & 1) != 0, two = (s & 2) != 0;
      if ((one && parts[0] == 0) || (two && parts[1] == 0)) continue;
      const std::int64_t others = routing.topk_group - c - (one ? 1 : 0) - (two ? 1 : 0);
      const double held = static_cast<double>(c) +
                          static_cast<double>((one ? parts[0] : 0) + (two ? parts[1] : 0)) / static_cast<double>(nodes);
      missed += ways(whole, c) * ways(routing.n_group - whole - shared, others) *
                std::pow(std::max(0.0, 1 - held / chosen), routing.top_k);
    }
  }
  return 1 - missed / ways(routing.n_group, routing.topk_group);
}

double distinct_nodes(std::int64_t nodes, const Routing& routing) {
  const double m = static_cast<double>(nodes);
  if (routing.topk_group >= routing.n_group) return m * (1 - std::pow(1 - 1 / m, routing.top_k));
  const std::int64_t pattern = nodes / std::gcd(nodes, routing.n_group);  // nodes until they lie on groups as before
  double sum = 0;
  for (std::int64_t j = 0; j < pattern; ++j) sum += chance_on(j, nodes, routing);
  return m * sum / static_cast<double>(pattern);
}

}  // namespace

double copies_beyond(std::int64_t domains, std::int64_t nodes, const Routing& routing) {
  return distinct_nodes(nodes, routing) * static_cast<double>(domains - 1) / static_cast<double>(domains);
}

namespace {

template <class R>
void take_waits(const Waits<R>& waits, const R& factor, Channel<R>& channel) {
  channel.gather_latency = waits.gather;
  channel.reduce_latency = waits.reduce;
  channel.all_to_all_latency = waits.all_to_all;
  channel.send_latency = waits.send;
  channel.ramp = waits.ramp;
  if (value_of(factor) == 1) return;
  channel.gather = channel.gather * factor;
  channel.reduce = channel.reduce * factor;
  channel.all_to_all = channel.all_to_all * factor;
}

}  // namespace

template <class R>
Channel<R> make_channel(const HardwareSpec& hw, const Slice& slice, const NetworkRates<R>& rates, const Group& group,
                        std::string_view label, const Routing& routing) {
  Channel<R> channel;
  channel.size = group.size();
  if (channel.size == 1) return channel;
  Latency<R> waits;
  std::int64_t below = 1;
  std::int64_t nodes = channel.size;  // domains of the innermost tier that it lies on
  for (std::size_t t = 0; t < hw.network.size() && t < kMaxTiers; ++t) {
    if (is_torus_tier(hw, t)) {
      add_torus(rates.tiers[t], group, waits, channel);
      if (slice.twisted) {
        bool whole = true;
        for (std::size_t a = 0; a < slice.shape.size(); ++a) whole = whole && group.axes[a].size == slice.shape[a];
        if (whole) channel.all_to_all = channel.all_to_all / R(collective::twist_gain(slice.shape));
      }
      for (const AxisPart& part : group.axes) below *= part.size;
      nodes = channel.size / below;
      continue;
    }
    if (t == 0) nodes = channel.size / group.tiers[0];
    add_switched(hw, t, rates.tiers[t], group.tiers[t], below, channel.size / below, nodes, rates, routing, waits,
                 channel);
    below *= group.tiers[t];
  }
  take_waits(waits.waits(rates.kernels, channel.size, nodes), rates.kernels.factor, channel);
  channel.gather = named(channel.gather, "all-gather seconds per byte",
                         "book ch. 3 and 12: V (N-1)/N over the bandwidth of the group's links", label);
  channel.reduce =
      named(channel.reduce, "all-reduce seconds per byte", "twice an all-gather, or reduced in the network", label);
  channel.all_to_all =
      named(channel.all_to_all, "all-to-all seconds per byte", "book ch. 3 and 12: bisection, uplinks", label);
  channel.gather_latency = named(channel.gather_latency, "all-gather latency", kLatencySource, label);
  channel.reduce_latency = named(channel.reduce_latency, "all-reduce latency", kLatencySource, label);
  return channel;
}

namespace {
template <class R>
SecondsOf<R> collective_seconds(const Channel<R>& channel, const SecondsOf<R>& latency, const BytesOf<R>& bytes,
                                const SecondsPerByteOf<R>& per_byte, double pieces) {
  if (pieces > 1) return R(pieces) * collective_seconds(channel, latency, bytes / R(pieces), per_byte, 1);
  SecondsOf<R> transfer = bytes * per_byte;
  if (value_of(channel.ramp) > 0) transfer += ramp_time(channel.ramp, bytes);
  return channel.latency_adds ? latency + transfer : max(latency, transfer);
}
}  // namespace

template <class R>
SecondsOf<R> all_gather_time(const Channel<R>& channel, const BytesOf<R>& gathered, double pieces) {
  if (channel.size == 1) return SecondsOf<R>(R(0.0));
  return collective_seconds(channel, channel.gather_latency, gathered, channel.gather, pieces);
}

template <class R>
SecondsOf<R> all_reduce_time(const Channel<R>& channel, const BytesOf<R>& array, double pieces) {
  if (channel.size == 1) return SecondsOf<R>(R(0.0));
  return collective_seconds(channel, channel.reduce_latency, array, channel.reduce, pieces);
}

template <class R>
SecondsOf<R> all_to_all_time(const Channel<R>& channel, const BytesOf<R>& per_chip) {
  if (channel.size == 1) return SecondsOf<R>(R(0.0));
  return collective_seconds(channel, channel.all_to_all_latency, per_chip, channel.all_to_all, 1);
}

template <class R>
SecondsOf<R> send_time(const Channel<R>& channel, const BytesOf<R>& per_chip) {
  if (channel.size == 1) return SecondsOf<R>(R(0.0));
  return channel.send_latency + per_chip * channel.send;  // point to point: the terms add (book, chapter 2)
}

#define SCALECALC_INSTANTIATE(R)                                                                            \
  template Channel<R> make_channel(const HardwareSpec&, const Slice&, const NetworkRates<R>&, const Group&, \
                                   std::string_view, const Routing&);                                       \
  template SecondsOf<R> all_gather_time(const Channel<R>&, const BytesOf<R>&, double);                      \
  template SecondsOf<R> all_reduce_time(const Channel<R>&, const BytesOf<R>&, double);                      \
  template SecondsOf<R> all_to_all_time(const Channel<R>&, const BytesOf<R>&);                              \
  template SecondsOf<R> send_time(const Channel<R>&, const BytesOf<R>&);
SCALECALC_INSTANTIATE(double)
SCALECALC_INSTANTIATE(Dual)
SCALECALC_INSTANTIATE(Traced)
#undef SCALECALC_INSTANTIATE

}  // namespace scalecalc
