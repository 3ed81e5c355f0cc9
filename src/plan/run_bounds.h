// What searches about one job share: costs of layers, and bounds of families on networks that time them alike
// (plan/enumerate.h). Machines of several sizes, goals and threads ask for the same again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cost/step_bound.h"
#include "plan/memory_floor.h"
#include "plan/places.h"
#include "plan/stage_floor.h"

namespace scalecalc {

/// Floors of memory that a run's largest microbatch gives all that are smaller.
struct RunFloors {
  ActivationFloor activations;
  std::shared_ptr<const PassFloor> stages;
};

/// What a run's largest microbatch says of all that are smaller.
struct RunBound {
  double sequence_s = 0;  ///< least time of a sequence through the whole model, on one tensor and context group
  RunFloors floors;
};

/// How a member's state may be sharded.
struct ShardingWays {
  std::size_t count = 0;
  SearchStats cuts;  ///< ways that were cut, by reason
  StateFloor state{};
  StageStateFloor stages;
};
/// All that decides it: tp, cp, ep, etp, data ranks, whether under DualPipe, and what the stack says of such members.
using WaysKey = std::array<std::uint64_t, 7>;

/// For any threads. Its users ask for one model, workload, chip and filter of layouts; what else decides a time is in
/// the key.
class RunBounds {
 public:
  /// A number of channels that no other can be told from by a time.
  using Network = std::uint32_t;
  Network network_of(const MeshChannels<double>& channels);

  std::optional<RunBound> find(const InnerDegrees& inner, Network network) const;
  void add(const InnerDegrees& inner, Network network, const RunBound& bound);

  /// Passes under a policy (FamilySearch::policy_of); null if they are not known. They stay where they are.
  const PassTotals* passes(const InnerDegrees& inner, Network network, std::size_t policy) const;
  const PassTotals& add(const InnerDegrees& inner, Network network, std::size_t policy, PassTotals passes);

  /// Null if they are not known. They stay where they are.
  const ShardingWays* ways(const WaysKey& key) const;
  const ShardingWays& add(const WaysKey& key, ShardingWays ways);
  static std::size_t hash_of(const WaysKey& key) { return Hash()(key); }

  /// Costs of any microbatch under these degrees (tp, cp, ep, etp), for who asks for parameters alone; null if none are
  /// known.
  using Degrees = std::array<std::int64_t, 4>;
  static Degrees degrees_of(const InnerDegrees& inner) { return {inner.tp, inner.cp, inner.ep, inner.etp}; }
  std::shared_ptr<const NetworkCost<double>> parameters(const Degrees& degrees) const;

  /// Of those asked for last; null if it is not one of them.
  std::shared_ptr<const NetworkCost<double>> cost(const InnerDegrees& inner) const;
  void add(const InnerDegrees& inner, std::shared_ptr<const NetworkCost<double>> cost);

 private:
  using Key = std::pair<InnerDegrees, Network>;
  struct Hash {
    std::size_t operator()(const InnerDegrees& inner) const;
    std::size_t operator()(const Key& key) const { return (*this)(key.first) * 31 + key.second; }
    std::size_t operator()(const WaysKey& key) const;
    std::size_t operator()(const Degrees& degrees) const;
  };
  struct Known {
    std::optional<RunBound> run;
    std::map<std::size_t, PassTotals> passes;  ///< by policy
  };

  /// A part of the keys, so that threads seldom wait for each other.
  struct Stripe {
    std::mutex mutex;
    std::unordered_map<Key, Known, Hash> known;
    std::unordered_map<WaysKey, ShardingWays, Hash> ways;
    std::unordered_map<InnerDegrees, std::shared_ptr<const NetworkCost<double>>, Hash> costs;
    std::list<InnerDegrees> order;  ///< of costs, the oldest first; an empty deque takes memory
    std::map<Degrees, std::shared_ptr<const NetworkCost<double>>> parameters;
  };
  static constexpr std::size_t kStripes = 32;
  template <class Value>
  Stripe& stripe_of(const Value& key) const {
    return stripes_[(Hash()(key) >> 7) % kStripes];
  }

  mutable std::array<Stripe, kStripes> stripes_;
  mutable std::mutex mutex_;  ///< of what follows
  std::map<std::array<std::int64_t, 3>, std::vector<std::pair<MeshChannels<double>, Network>>> networks_;  ///< by sizes
  Network next_ = 0;
};

}  // namespace scalecalc
