// The formulas of collectives, each once: the planner's channels (channel.h) and the book commands
// (network/collective_time.h) are made of them. Sizes have the reading's type, so that an explanation can name them.
//
// V is the bytes of the gathered array of one group (all-gather output, reduce-scatter input); v is the bytes one chip
// holds and redistributes in an all-to-all. Sources: scaling book, chapter 3 for tori, chapter 12 for switches.
#pragma once

#include <algorithm>
#include <vector>

#include "base/scalar.h"
#include "network/tier_rates.h"

namespace scalecalc::collective {

/// [AG-TORUS] What one axis brings to a member: both directions of a ring; one link on a line, whose end has no
/// other. `stride` groups interleaved on the axis share its links.
template <class R>
BytesPerSecondOf<R> axis_bandwidth(const BytesPerSecondOf<R>& link, double stride, bool ring) {
  return link * R((ring ? 2.0 : 1.0) / stride);
}

/// Hops to the farthest member: half the ring, or along the line.
template <class R>
SecondsOf<R> axis_latency(const SecondsOf<R>& hop, const R& size, double stride, bool ring) {
  return hop * (R(stride) * (ring ? size / R(2.0) : size - R(1.0)));
}

/// [A2A-TORUS] Per byte of v: half the data crosses the bisection, which a ring cuts at two links and a line at one,
/// so v size / (8 link) or v size / (4 link) (book, chapter 3, all-to-all). The slowest axis binds.
template <class R>
SecondsPerByteOf<R> axis_all_to_all(const BytesPerSecondOf<R>& link, const R& size, double stride, bool ring) {
  return R(stride) * size / R(ring ? 8.0 : 4.0) / link;
}

/// What the axes of a group bring, one after the other.
template <class R>
struct Axes {
  BytesPerSecondOf<R> bandwidth{R(0.0)};   ///< of all at once, each with a share in proportion to its own
  SecondsPerByteOf<R> all_to_all{R(0.0)};  ///< of the slowest
  SecondsOf<R> way{R(0.0)};                ///< to the farthest member, along one after the other

  void add(const TierRates<R>& rates, const R& size, double stride, bool ring) {
    bandwidth += axis_bandwidth(rates.bandwidth, stride, ring);
    const SecondsPerByteOf<R> own = axis_all_to_all(rates.bandwidth, size, stride, ring);
    all_to_all = value_of(all_to_all) == 0 ? own : max(all_to_all, own);
    way += axis_latency(rates.latency, size, stride, ring);
  }
};

/// How much faster an all-to-all over a whole twisted torus is. Jouppi et al. 2023 (arXiv:2304.01433), section 2.8:
/// twisting n x n x 2n and n x 2n x 2n raises all-to-all throughput, 1.63 and 1.31 times for 4x4x8 and 4x8x8 (figures
/// quoted from memory of the paper). `shape` is ascending.
inline double twist_gain(const std::vector<std::int64_t>& shape) { return shape[0] == shape[1] ? 1.63 : 1.31; }

/// (N-1)/N: the part of V that a member does not hold already.
template <class R>
R received_share(const R& members) {
  return (members - R(1.0)) / members;
}

/// [AG-TREE] Per byte of V: a domain of `below` members receives `share` of V through their uplinks.
template <class R>
SecondsPerByteOf<R> uplink_gather(const R& share, const R& below, const BytesPerSecondOf<R>& per_chip) {
  return share / below / per_chip;
}

/// All-reduce without help: a reduce-scatter and an all-gather. X is a time, or a time per byte.
template <class X>
X twice(const X& gather) {
  return typename X::Scalar(2.0) * gather;
}

/// All-reduce where the switches reduce: `gain` times faster, but every chip still sends its whole array to the switch
/// and receives the sum (book, chapter 12, in-network reductions: V / W_gpu, a gain of 2 (N-1)/N at most).
template <class X>
X reduced_in_network(const X& gather, const typename X::Scalar& gain, const X& one_pass) {
  return max(twice(gather) / gain, one_pass);
}

/// One switched tier's part of a group.
template <class R>
struct Tiered {
  SecondsPerByteOf<R> gather;      ///< per byte of V
  SecondsPerByteOf<R> reduce;      ///< per byte of V
  SecondsPerByteOf<R> all_to_all;  ///< per byte of v
};

/// [AG-TREE] Domains of `below` members already gathered act as one unit with `below` uplinks of `per_chip`, through
/// which all that lies outside the domain arrives:
///   t_i = V * received / (below * W_i),  received = (m - 1)/m of m domains of the group at this tier and beyond;
/// the tiers pipeline, so the slowest binds (book, chapter 12). Inside the innermost domain m counts its members alone:
/// what comes from outside arrives over the next tier's links. [A2A-TREE] Of the v bytes a chip holds, `leaving` of
/// them, bound for other domains of this tier, leave through its uplink. `gain`: where the switches reduce.
template <class R>
Tiered<R> switched(const BytesPerSecondOf<R>& per_chip, const R& received, const R& below, const R& leaving,
                   const R* gain) {
  const SecondsPerByteOf<R> gather = uplink_gather(received, below, per_chip);
  return {.gather = gather,
          .reduce = gain == nullptr ? twice(gather)
                                    : reduced_in_network(gather, *gain, uplink_gather(R(1.0), below, per_chip)),
          .all_to_all = leaving / per_chip};
}

}  // namespace scalecalc::collective
