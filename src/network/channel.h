// What a group of chips can do with its links: seconds per byte and latency of each collective. A collective's time
// is then one multiplication in the planner's loop, and the same formulas spelled out in --explain.
//
// Sizes follow the scaling book: V is the bytes of the gathered array of one group (all-gather output, reduce-scatter
// input); for an all-to-all v is the bytes one chip holds and redistributes.
#pragma once

#include <string_view>

#include "base/scalar.h"
#include "network/placement.h"
#include "network/tier_rates.h"
#include "spec/hardware_spec.h"

namespace scalecalc {

template <class R>
struct Channel {
  std::int64_t size = 1;
  SecondsPerByteOf<R> gather;      ///< all-gather and reduce-scatter, per byte of V
  SecondsPerByteOf<R> reduce;      ///< all-reduce, per byte of V
  SecondsPerByteOf<R> all_to_all;  ///< all-to-all, per byte of v
  SecondsPerByteOf<R> send;        ///< to the next member, per byte sent by one chip
  SecondsOf<R> gather_latency;
  SecondsOf<R> reduce_latency;
  SecondsOf<R> all_to_all_latency;
  SecondsOf<R> send_latency;
  SecondsOf<R> ramp{R(0.0)};  ///< of kernels that small collectives do not fill (network/latency.h)
  bool latency_adds = true;   ///< switches: latency + bytes; torus rings: the larger of the two (book, chapter 3)
  bool scale_up = false;      ///< has members in one domain of the innermost tier
  bool scale_out = false;     ///< leaves the innermost tier
  std::uint32_t links = 0;    ///< bit a: torus axis a; bit 8 + t: switched tier t. Groups that share a bit contend
};

/// How the experts of a token spread over nodes (see copies_beyond).
struct Routing {
  double top_k = 1;
  std::int64_t n_group = 0;     ///< equal groups of neighbouring experts; 0 = none
  std::int64_t topk_group = 0;  ///< of them, those that a token's experts may lie in
};

/// `label` names the group in an explanation.
template <class R>
Channel<R> make_channel(const HardwareSpec& hw, const Slice& slice, const NetworkRates<R>& rates, const Group& group,
                        std::string_view label, const Routing& routing = {});

/// Copies of one token that leave its domain, one of `domains` that hold equal parts of `nodes` nodes (or, inside a
/// node, of all ranks): a token is sent once to each distinct node with any of its experts, and once to each such rank.
/// Expected distinct nodes M(1 - (1-1/M)^k) where the top_k experts lie anywhere; in groups, the same of the nodes that
/// the chosen groups lie on. All but one part of `domains` of them are in other domains.
double copies_beyond(std::int64_t domains, std::int64_t nodes, const Routing& routing);

/// In `pieces` collectives, each with its latency.
template <class R>
SecondsOf<R> all_gather_time(const Channel<R>& channel, const BytesOf<R>& gathered, double pieces = 1);
template <class R>
SecondsOf<R> all_reduce_time(const Channel<R>& channel, const BytesOf<R>& array, double pieces = 1);
template <class R>
SecondsOf<R> all_to_all_time(const Channel<R>& channel, const BytesOf<R>& per_chip);
template <class R>
SecondsOf<R> send_time(const Channel<R>& channel, const BytesOf<R>& per_chip);

}  // namespace scalecalc
