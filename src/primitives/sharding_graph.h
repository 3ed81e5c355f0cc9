// Ways from one layout of an array to another: slicing what is replicated (free), all-gathers, reduce-scatters,
// all-reduces and all-to-alls over any mesh axes at once, one after the other. The cheapest sequence is searched, so a
// detour that pays (slice over an idle axis first and gather over both, book ch. 3) is found like any other.
//
// Blocks stay contiguous: a dimension cut over X and then Y (I_XY) can be gathered over Y, or over both, but not over X
// alone.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "primitives/sharding.h"

namespace scalecalc {

enum class StepKind { kSlice, kAllGather, kReduceScatter, kAllReduce, kAllToAll };

std::string_view name_of(StepKind kind);

struct ReshardStep {
  StepKind kind = StepKind::kSlice;
  AxisMask axes = 0;  ///< it runs over
  Sharding from;
  Sharding to;
};

/// Seconds of a collective over these axes, V as in collective_time.h; infinite where they cannot run one.
using CollectiveSeconds = std::function<double(StepKind, AxisMask, double)>;

/// V of a step, given what a chip holds before and after: the gathered array of an all-gather, the input of a
/// reduce-scatter or all-reduce, the bytes of all participating chips of an all-to-all. Nothing for a slice.
template <class Bytes, class Scalar>
Bytes volume(StepKind kind, const Bytes& before, const Bytes& after, const Scalar& ways) {
  switch (kind) {
    case StepKind::kAllGather: return after;
    case StepKind::kAllToAll: return before * ways;
    case StepKind::kSlice: return before * Scalar(0.0);
    default: return before;
  }
}

struct Route {
  double seconds = 0;
  std::vector<ReshardStep> steps;
};

class ShardingGraph {
 public:
  /// All layouts of the array that divide evenly; partial sums over `summed` axes at most.
  ShardingGraph(const ShardingTables& tables, const ShardedArray& array, AxisMask summed,
                const CollectiveSeconds& seconds);

  /// The cheapest route, of those the one of fewest steps; nothing if there is none. Axes in `frozen` stay where they
  /// are.
  std::optional<Route> route(const Sharding& from, const Sharding& to, AxisMask frozen = 0);

 private:
  struct Edge {
    std::size_t to = 0;
    StepKind kind = StepKind::kSlice;
    AxisMask axes = 0;
    double seconds = 0;
  };
  /// How a node was reached, and from which label of another.
  struct Label {
    double seconds = 0;
    std::size_t node = 0;
    std::size_t before = 0;
    const Edge* edge = nullptr;  ///< none at the source
  };
  static constexpr std::size_t kUnreached = static_cast<std::size_t>(-1);
  struct Tree {
    std::vector<Label> labels;
    std::vector<std::size_t> best;  ///< per node: its best label
  };

  void add_edges(std::size_t node);
  void add_edge(std::size_t node, StepKind kind, AxisMask axes, const Sharding& to);
  void add_gathers(std::size_t node, std::size_t dim, Sharding& layout, AxisMask gathered);
  void add_all_to_alls(std::size_t node);
  const Tree& tree_from(std::size_t source, AxisMask frozen);

  const ShardingTables& tables_;
  const ShardedArray& array_;
  const CollectiveSeconds& seconds_;
  std::vector<Sharding> nodes_;
  std::map<Sharding, std::size_t> index_;
  std::vector<double> local_bytes_;
  std::vector<std::vector<Edge>> edges_;
  std::map<std::pair<std::size_t, AxisMask>, Tree> known_;
};

/// Every way to give axes of `available` to the ends of `targets` lists, in every order; axes may be left over.
void assign_axes(AxisMask available, std::size_t targets, const std::function<void(const std::vector<AxisList>&)>& use);

/// Axes that lie alike in both layouts: on the same dimension, in the partial sums, or nowhere.
AxisMask unmoved(const Sharding& a, const Sharding& b, std::size_t mesh_axes);

}  // namespace scalecalc
