// Which placements are worth costing: those no other beats, and a bound on all of them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "cost/mesh.h"
#include "plan/request.h"

namespace scalecalc {

/// A placement's channels that no other placement of the same degrees beats.
using PlacedChannels = PlacedMesh<double>;

/// Keeps the placements no other beats. A newcomer is dropped if a kept one beats or equals it, and drops the kept
/// ones it beats, so of equals the first stays. `sharded`: the step gathers weights (ZeRO-3).
class Undominated {
 public:
  explicit Undominated(bool sharded) : sharded_(sharded) {}

  void offer(const PlacedChannels& newcomer);
  std::vector<PlacedChannels> take() { return std::move(kept_); }

 private:
  bool sharded_;
  std::vector<PlacedChannels> kept_;
};

/// Whether `a` is at least as good as `b` for every plan: no channel slower, and no two groups of one layer share a
/// link in `a` that do not in `b`. step_time does not fall when a channel slows or traffic queues, so dropping `b`
/// loses nothing.
bool dominates(const MeshChannels<double>& a, const MeshChannels<double>& b, bool sharded);

/// Lowers `bound` to the smaller of the two, coefficient by coefficient.
void lower(Channel<double>& bound, const Channel<double>& channel);

/// A step on it is a lower bound of the step on any of the placements (at least one): without links nothing queues and
/// nothing slows the compute.
MeshChannels<double> envelope(const std::vector<PlacedChannels>& places, bool sharded);

/// No slower than any placement of a group of `size` chips under switches, in each coefficient: however many of it lie
/// in each domain. They are `stride` chips apart, or more.
Channel<double> best_switched(const HardwareSpec& hw, const Slice& slice, const NetworkRates<double>& rates,
                              std::int64_t size, const Routing& routing, std::int64_t stride);

/// The same on any machine, for gathers and reductions. On a torus: the most links that its parts of the axes may have.
/// `apart`: it is what a group that lies between leaves of others, as experts leave of data ranks.
Channel<double> best_channel(const HardwareSpec& hw, const Slice& slice, const NetworkRates<double>& rates,
                             std::int64_t size, bool apart = false, std::int64_t stride = 1);

/// Group sizes alone: all that memory depends on.
MeshChannels<double> sizes_of(const Layout& layout);

/// The ways to shard one set of parallel degrees, each with the placements worth costing. Zero 0 to 2 share theirs.
struct ShardingOptions {
  struct Option {
    std::uint8_t zero = 0;
    std::int64_t fsdp = 1;
    std::size_t placed = 0;  ///< index into `placements`
  };
  struct Places {
    std::vector<PlacedChannels> all;
    MeshChannels<double> envelope;  ///< coefficient by coefficient the best of `all`, nothing queueing
  };
  std::vector<Option> options;
  std::vector<std::unique_ptr<Places>> placements;  ///< made when first needed: few are
};

}  // namespace scalecalc
