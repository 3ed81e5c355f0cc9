// Arrays cut over a mesh of chips, as in chapter 3 of the scaling book: which mesh axes cut which dimension of an
// array, and what one chip then holds. Geometry only: no flags, no times.
#pragma once

#include <compare>
#include <cstdint>
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

}  // namespace scalecalc
