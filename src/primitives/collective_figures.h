// What else there is to know about one collective: where latency takes over, what a wraparound or a second direction is
// worth, what crosses the bisection or a switch, what ragged sending or in-network reduction saves. Each figure is
// there only where it means something.
#pragma once

#include <optional>
#include <vector>

#include "network/collective_time.h"

namespace scalecalc {

/// One axis of a torus, hop by hop (book, ch. 3).
struct HopFigures {
  SecondsOf<Traced> transfer;  ///< one shard over one link
  SecondsOf<Traced> time;      ///< the larger of transfer and hop latency
  SecondsOf<Traced> all;       ///< of all hops; on a ring of odd size less than the book's time, which counts A/2
};

/// Where a torus collective turns latency-bound (book, ch. 3, note on latency, and ch. 7, appendix C).
struct LatencyFigures {
  BytesOf<Traced> shard_below;  ///< W_uni t_hop: shards smaller than this
  Traced members_above{0.0};    ///< V over it: more shards than this
};

/// All-to-all over a torus (book, ch. 3).
struct BisectionFigures {
  Traced links{0.0};  ///< across the middle of the longest axis
  SecondsOf<Traced> time;
};
struct ChunkFigures {
  Traced hops{0.0};      ///< chunk-hops each chip of one axis sends, of V/N^2 bytes each (mean, on a line)
  BytesOf<Traced> sent;  ///< their bytes
};

/// An all-to-all in which only top_k of N slots are filled (book, ch. 12, appendix B).
struct RaggedFigures {
  Traced approximate_share{0.0};  ///< min(k/N, 1) (N-1)/N of the dense array leaves its chip
  Traced expected_share{0.0};     ///< (1 - ((N-1)/N)^k) (N-1)/N: destinations drawn at random may coincide
  SecondsOf<Traced> dense_time;
};

struct InNetworkFigures {
  SecondsOf<Traced> without;
  SecondsOf<Traced> with;
};

/// Bytes into and out of one switch domain, of all groups that run through it (book, ch. 12, quiz 4).
struct SwitchBytes {
  BytesOf<Traced> ingress;
  BytesOf<Traced> egress;
};

struct CollectiveFigures {
  std::optional<BytesOf<Traced>> latency_bound_below;  ///< V at which latency and bandwidth time are equal
  std::optional<BytesPerSecondOf<Traced>> link;        ///< rate of a torus link, one direction
  std::optional<BytesOf<Traced>> link_bytes;           ///< over each of them
  std::optional<HopFigures> hop;
  std::optional<LatencyFigures> latency;
  std::optional<Traced> ratio_to_all_gather;  ///< of bandwidth times
  std::optional<Traced> no_wraparound_ratio;  ///< bandwidth time of lines over that of rings
  std::optional<Traced> bidirectional_gain;   ///< one ring: bandwidth time with one direction over that with both
  std::optional<BisectionFigures> bisection;
  std::optional<ChunkFigures> chunks;
  std::optional<RaggedFigures> ragged;
  std::optional<InNetworkFigures> in_network;
  std::optional<SecondsOf<Traced>> printed_tree_time;  ///< the sharded tree formula as the book prints it
  std::vector<SwitchBytes> switches;                   ///< one for each level of the time
};

CollectiveFigures collective_figures(const CollectiveNetwork& network, const CollectiveGroup& group,
                                     const CollectiveRequest& request, const CollectiveTime& time);

/// Bytes one chip sends as NCCL counts bus bandwidth: (N-1)/N of V, twice that for an all-reduce, (N-1)/N^2 of it for
/// an all-to-all. A measured bus bandwidth divides them to give a time.
BytesOf<Traced> bus_bytes(CollectiveOp op, const BytesOf<Traced>& bytes, std::int64_t members);

}  // namespace scalecalc
