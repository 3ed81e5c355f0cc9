// Time of one collective as the scaling book computes it: chapter 3 on a torus, chapter 12 behind switches. Pure
// functions of traced quantities, made of the same formulas as the planner's channels (network/collective.h).
//
// V is the bytes of the gathered array of ONE group: what an all-gather leaves on each member, what each member brings
// to a reduce-scatter or an all-reduce. An array that other mesh axes shard as well is divided by them first. For an
// all-to-all V is the whole array of the group, each member holding V/N of it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "network/channel.h"

namespace scalecalc {

/// The last four have a root: one member that ends with all parts or their sum, or begins with what all get. It is the
/// last of a line, as the book's corner of a slice is.
enum class CollectiveOp : std::uint8_t {
  kAllGather,
  kReduceScatter,
  kAllReduce,
  kAllToAll,
  kGather,
  kScatter,
  kBroadcast,
  kReduce
};
inline constexpr std::array<std::string_view, 8> kCollectiveOpNames{
    "all-gather", "reduce-scatter", "all-reduce", "all-to-all", "gather", "scatter", "broadcast", "reduce"};
constexpr bool has_root(CollectiveOp op) { return op >= CollectiveOp::kGather; }

/// Where the book rounds.
enum class CollectiveConvention : std::uint8_t {
  kBook,        ///< rings drop (N-1)/N (ch. 3); lines keep it; switches keep (D-1)/D of each level (ch. 12) and have no
                ///< latency
  kFirstOrder,  ///< every (N-1)/N dropped, also behind switches (ch. 12, first-order form)
  kExact,       ///< the planner's: (N-1)/N kept, a domain receives all that lies outside it, message latencies added
};
inline constexpr std::array<std::string_view, 3> kCollectiveConventionNames{"book", "first-order", "exact"};

/// Whether switches reduce (SHARP).
enum class InNetwork : std::uint8_t { kAsBuilt, kOff, kOn };
inline constexpr std::array<std::string_view, 3> kInNetworkNames{"auto", "off", "on"};

/// A whole torus axis that the group spans.
struct CollectiveAxis {
  std::string name;
  std::int64_t size = 1;
  bool wraps = false;
};

/// A switched tier that the group, or the inner ranks between its members, span. A child of a domain is a chip on the
/// innermost tier, a domain of the tier below on the others.
struct CollectiveLevel {
  std::size_t tier = 0;          ///< position in the network
  std::int64_t degree = 1;       ///< D_i: children of one domain in use
  std::int64_t members = 1;      ///< of these, children that differ for the group
  std::int64_t beyond = 1;       ///< such children in the whole group: its size over `below`
  std::int64_t below = 1;        ///< members of the group below one child
  std::int64_t chips_below = 1;  ///< S_{i-1}: chips below one child
};

/// Members of a group on switched machines: `size` of them, `stride` chips apart.
struct RankRange {
  std::int64_t size = 1;
  std::int64_t stride = 1;
};

struct CollectiveGroup {
  std::vector<CollectiveAxis> axes;
  std::vector<CollectiveLevel> levels;  ///< from the inside out
  std::int64_t inner = 1;               ///< Y: ranks that lie between two members and run the collective beside them
  double twist_gain = 1;                ///< of an all-to-all over a whole twisted torus; kExact alone counts it

  std::int64_t size() const;
  std::int64_t nodes() const;  ///< domains of the innermost tier, or slices, that its members lie in
};

/// Whole axes of a torus; with `slices` > 1 the group has members in as many slices, joined by the tiers beyond.
/// `inner` counts the ranks of the slice's other axes. UserError if there is no tier beyond.
CollectiveGroup torus_group(const HardwareSpec& hw, std::vector<CollectiveAxis> axes, std::int64_t slices = 1,
                            std::int64_t inner = 1);
/// Behind switches, from chip 0 on. UserError if the ranks cut a domain unevenly or are more than the machine has.
CollectiveGroup switched_group(const HardwareSpec& hw, const std::vector<RankRange>& ranks);
/// `size` members with `inner` ranks between two of them.
CollectiveGroup switched_group(const HardwareSpec& hw, std::int64_t size, std::int64_t inner = 1);

/// The rates of a chip's network: ideal (the book's rooflines) or with the hardware file's link efficiencies.
struct CollectiveNetwork {
  const HardwareSpec* hw = nullptr;
  NetworkRates<Traced> rates;
};
/// Keeps a pointer to `hw`. `serving`: with an engine's kernels in place of training's.
CollectiveNetwork collective_network(const HardwareSpec& hw, const Efficiency& efficiency, bool serving = false);

struct CollectiveRequest {
  CollectiveOp op = CollectiveOp::kAllGather;
  BytesOf<Traced> bytes;  ///< V
  CollectiveConvention convention = CollectiveConvention::kBook;
  InNetwork in_network = InNetwork::kAsBuilt;
  double top_k = 0;   ///< all-to-all: of the slots for each member only so many are filled (ragged); 0 = all
  std::string label;  ///< names the collective in an explanation; may be empty
};

/// How latency enters the time.
enum class LatencyRule : std::uint8_t {
  kLarger,      ///< a torus: the larger of latency and bandwidth time (ch. 3)
  kAdded,       ///< behind switches, kExact
  kNotCounted,  ///< behind switches in the book's forms
};

/// One tier's part. The tiers pipeline, so the slowest is the whole (ch. 12).
struct LevelTime {
  CollectiveLevel level;
  std::string name;
  BytesPerSecondOf<Traced> link;  ///< W_i: one child's uplink, S_{i-1} chips of it
  SecondsOf<Traced> time;
  bool reduces = false;  ///< its switches add up what several children send
};

struct CollectiveTime {
  SecondsOf<Traced> time;
  SecondsOf<Traced> bandwidth_time;
  SecondsOf<Traced> latency;
  LatencyRule latency_rule = LatencyRule::kLarger;
  bool latency_bound = false;
  std::string bound_tier;  ///< name of the tier that binds the bandwidth time; empty if nothing moves
  std::string algorithm;   ///< "ring", "two-phase rings on 3 axes" (reduce-scatter, all-gather), "tree: node, leaf"
  std::int64_t hops = 0;   ///< on the torus, one after the other; 0 behind switches
  std::vector<LevelTime> levels;
};

/// A group of one takes no time, except in kFirstOrder, whose form is a bound that does not know the group's size.
/// UserError if in-network reduction is requested for anything but an all-reduce, or top_k for anything but an
/// all-to-all, and if the hardware file leaves the bandwidth of a tier that the group crosses unpublished.
CollectiveTime collective_time(const CollectiveNetwork& network, const CollectiveGroup& group,
                               const CollectiveRequest& request);

}  // namespace scalecalc
