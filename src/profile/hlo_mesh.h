// A program's devices as a mesh with named axes: the borders between them are where annotations and groups begin and
// end.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace scalecalc {

/// `size` devices, `stride` apart.
struct MeshFactor {
  std::int64_t size = 1;
  std::int64_t stride = 1;
  friend bool operator==(const MeshFactor&, const MeshFactor&) = default;
};
using MeshFactors = std::vector<MeshFactor>;  ///< the fastest first

/// Devices as nested steps of equal length: {0,1,8,9} is 2 of stride 1, then 2 of stride 8. Nothing for others.
std::optional<MeshFactors> mesh_factors(std::span<const std::int64_t> devices);
std::int64_t devices_of(const MeshFactors& factors);

/// The sequence "[2,8]T(1,0)" behind "<=", as XLA writes it; nothing where it is malformed or longer than a million.
std::optional<std::vector<std::int64_t>> iota_devices(std::string_view text);

struct HloAxis {
  std::string name;
  std::int64_t size = 1;
  std::int64_t stride = 1;
};

struct HloMesh {
  std::vector<HloAxis> axes;  ///< the innermost first
  std::string source;         ///< who names them; empty: found by their borders

  /// Positions of the axes that make them up, the outermost first; nothing if they begin or end within an axis.
  std::optional<std::vector<std::size_t>> axes_of(const MeshFactors& factors) const;
  /// Axes along which any of the pairs differ, the outermost first.
  std::vector<std::size_t> axes_between(std::span<const std::pair<std::int64_t, std::int64_t>> pairs) const;
  const HloAxis* find(std::string_view name) const;
  /// "X,Y".
  std::string names(const std::vector<std::size_t>& positions) const;
};

/// Axes X, Y ... from the innermost, such that each of `parts` begins and ends at a border; those named earlier decide
/// where some contradict. None if there are no parts.
HloMesh mesh_of(std::span<const MeshFactors> parts, std::int64_t devices);
/// Of sizes as they are written, the last axis innermost.
HloMesh named_mesh(const std::vector<std::pair<std::string, std::int64_t>>& axes, std::string source);
/// "mesh['a'=2,'b'=4]" or "#sdy.mesh<["a"=2, "b"=4]>", the first that stands in the text; names are letters and digits.
std::vector<std::pair<std::string, std::int64_t>> mesh_in(std::string_view text);

}  // namespace scalecalc
