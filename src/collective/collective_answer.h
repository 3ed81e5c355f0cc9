// `scalecalc collective`: the question as asked, and its points: one for each group size and array size.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/explained.h"
#include "base/stop.h"
#include "collective/collective_place.h"
#include "network/collective_time.h"

namespace scalecalc {

// What else there is to know about one collective: where latency takes over, what a wraparound or a second direction is
// worth, what crosses the bisection or a switch, what ragged sending or in-network reduction saves. Each figure is
// there only where it means something.

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

/// Bytes one chip sends as NCCL counts bus bandwidth: (N-1)/N of V, twice that for an all-reduce, (N-1)/N^2 of it for
/// an all-to-all. A measured bus bandwidth divides them to give a time.
BytesOf<Traced> bus_bytes(CollectiveOp op, const BytesOf<Traced>& bytes, std::int64_t members);

/// No array is larger: one exabyte.
inline constexpr double kMostCollectiveBytes = 1e18;

/// A measured result of the same collective.
struct Measured {
  bool is_time = false;  ///< seconds; else a bus bandwidth as NCCL reports it, bytes/s
  double value = 0;
};

struct CollectiveQuestion {
  std::optional<CollectiveOp> op;  ///< none: permute
  // Which chips; one of the first three ways, or none behind switches: the whole innermost domain.
  std::vector<NamedAxis> mesh;
  Shape topology;                    ///< axes X, Y, Z of a slice
  std::vector<std::int64_t> groups;  ///< members of the group, with or without a tier
  std::optional<std::string> tier;
  std::vector<std::string> axes;  ///< empty: all of the mesh
  std::vector<std::string> replicated;
  std::vector<std::string> sharded;  ///< with `bytes`: other axes that cut the array
  std::optional<bool> wraparound;
  // What they send: one of the two.
  std::vector<double> bytes;
  std::optional<SizedArray> array;
  // How.
  CollectiveConvention convention = CollectiveConvention::kBook;
  InNetwork in_network = InNetwork::kAsBuilt;
  double top_k = 0;
  bool calibrated = false;
  std::string stack;     ///< with `calibrated`: whose coefficients; empty: the chip's, whatever the software
  bool serving = false;  ///< `stack` is an engine
  std::optional<MeshPosition> from;
  std::optional<MeshPosition> to;
  std::optional<std::int64_t> ports;
  std::vector<Measured> measured;
};

struct MeasuredPoint {
  BytesPerSecondOf<Traced> bus;
  SecondsOf<Traced> time;
  Traced over_model{0.0};       ///< measured time over the model's
  Traced gain_over_first{0.0};  ///< of bandwidth, over the first one given
};

struct CollectivePoint {
  CollectiveMesh mesh;
  std::int64_t group = 1;  ///< members, without replicated axes; 2 for a way from one chip to another
  CollectiveGroup place;
  BytesOf<Traced> bytes;
  BytesOf<Traced> shard;
  CollectiveTime time;
  std::int64_t ports = 0;  ///< permute over a torus
  CollectiveFigures figures;
  std::optional<BytesPerSecondOf<Traced>> bytes_per_s;  ///< V over the time; none if nothing moves
  std::optional<Traced> time_over_first;                ///< against the first point, where there are several
  std::vector<MeasuredPoint> measured;
};

struct CollectiveAnswer {
  CollectiveQuestion question;
  std::vector<CollectivePoint> points;
  std::vector<Assumption> assumptions;
};

/// UserError if the question cannot be asked of this hardware, or its file leaves the links unpublished; `hw` may lack
/// everything else. Asked to end, it has the points found until then, one at least.
CollectiveAnswer answer_collective(const CollectiveQuestion& question, const HardwareSpec& hw, const Stop& stop = {});

}  // namespace scalecalc
