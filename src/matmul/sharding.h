// Arrays cut over a mesh of chips, as in chapter 3 of the scaling book: which mesh axes cut which dimension of an
// array, and what one chip then holds. Geometry only: no flags, no times.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/scalar.h"
#include "spec/dtype.h"
#include "spec/hardware_spec.h"

namespace scalecalc {

/// The ways to lay an array out grow with the factorial of the axes; a machine has three or so.
inline constexpr std::size_t kMostMeshAxes = 4;
inline constexpr std::size_t kMostArrayDims = 6;

struct MeshAxis {
  std::string name;
  std::int64_t size = 1;
  Shape parts;  ///< axes of the machine it runs along, their product is `size`; one as a rule
};

/// Positions of axes in the mesh.
using AxisList = std::vector<std::uint8_t>;
using AxisMask = std::uint32_t;

AxisMask mask_of(const AxisList& axes);

struct Mesh {
  std::vector<MeshAxis> axes;

  std::int64_t chips() const;
  std::int64_t ways(const AxisList& axes) const;
  AxisList list(AxisMask axes) const;
  /// "XY"; "data,model" if a name has more than one letter.
  std::string text(const AxisList& axes) const;
  /// "4x4".
  std::string shape_text() const;
  /// Product of the sizes as inputs of a formula.
  Traced traced_ways(AxisMask axes) const;
};

struct Dimension {
  std::string name;
  std::int64_t size = 1;
};

/// How one array lies on the mesh.
struct Sharding {
  std::vector<AxisList> cut;  ///< per dimension of the array: the axes that cut it, the outermost blocks first
  AxisMask partial = 0;       ///< axes over which the array still has to be added up

  AxisMask axes() const;  ///< all that occur
  friend auto operator<=>(const Sharding&, const Sharding&) = default;
};

struct ShardedArray {
  std::string name;
  DType dtype = DType::kBf16;
  std::vector<std::size_t> dims;  ///< positions in the table of dimensions
  Sharding layout;
};

/// What an array's notation needs to be written or counted.
struct ShardingTables {
  Mesh mesh;
  std::vector<Dimension> dims;

  /// "A[I_X, J_Y]{U_Z}".
  std::string notation(const ShardedArray& array) const;
  std::string notation(const ShardedArray& array, const Sharding& layout) const;
  /// "[2, 1024]".
  std::vector<std::int64_t> local_shape(const ShardedArray& array, const Sharding& layout) const;
  /// Every cut dimension divides by the chips it is cut over.
  bool divides(const std::vector<std::size_t>& array_dims, const Sharding& layout) const;
  /// Bytes of the whole array, and of what one chip holds of it under `layout`.
  BytesOf<Traced> bytes(const ShardedArray& array) const;
  BytesOf<Traced> local_bytes(const ShardedArray& array, const Sharding& layout) const;
};

// Ways from one layout of an array to another: slicing what is replicated (free), all-gathers, reduce-scatters,
// all-reduces and all-to-alls over any mesh axes at once, one after the other. The cheapest sequence is searched, so a
// detour that pays (slice over an idle axis first and gather over both, book ch. 3) is found like any other.
//
// Blocks stay contiguous: a dimension cut over X and then Y (I_XY) can be gathered over Y, or over both, but not over X
// alone.

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
