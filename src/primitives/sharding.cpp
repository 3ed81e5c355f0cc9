#include "primitives/sharding.h"
#include "base/scalar.h"

#include <fmt/format.h>

#include <algorithm>

namespace scalecalc {
namespace {

std::string subscript(const Mesh& mesh, const AxisList& axes) {
  const std::string names = mesh.text(axes);
  return names.find(',') == std::string::npos ? names : "{" + names + "}";
}

}  // namespace

AxisMask mask_of(const AxisList& axes) {
  AxisMask out = 0;
  for (const std::uint8_t axis : axes) out |= AxisMask{1} << axis;
  return out;
}

std::int64_t Mesh::chips() const {
  std::int64_t out = 1;
  for (const MeshAxis& axis : axes) out *= axis.size;
  return out;
}

std::int64_t Mesh::ways(const AxisList& list) const {
  std::int64_t out = 1;
  for (const std::uint8_t axis : list) out *= axes[axis].size;
  return out;
}

AxisList Mesh::list(AxisMask mask) const {
  AxisList out;
  for (std::uint8_t a = 0; a < axes.size(); ++a) {
    if ((mask >> a & 1U) != 0) out.push_back(a);
  }
  return out;
}

std::string Mesh::text(const AxisList& list) const {
  const bool letters =
      std::all_of(list.begin(), list.end(), [&](std::uint8_t axis) { return axes[axis].name.size() == 1; });
  std::string out;
  for (const std::uint8_t axis : list) out += (out.empty() || letters ? "" : ",") + axes[axis].name;
  return out;
}

std::string Mesh::shape_text() const {
  std::string out;
  for (const MeshAxis& axis : axes) out += fmt::format("{}{}", out.empty() ? "" : "x", axis.size);
  return out;
}

Traced Mesh::traced_ways(AxisMask mask) const {
  Traced out(1.0);
  for (const std::uint8_t axis : list(mask)) {
    out = out * kReader.input(static_cast<double>(axes[axis].size), axes[axis].name, "--mesh");
  }
  return out;
}

AxisMask Sharding::axes() const {
  AxisMask out = partial;
  for (const AxisList& list : cut) out |= mask_of(list);
  return out;
}

std::string ShardingTables::notation(const ShardedArray& array) const { return notation(array, array.layout); }

std::string ShardingTables::notation(const ShardedArray& array, const Sharding& layout) const {
  std::string out = array.name + "[";
  for (std::size_t d = 0; d < array.dims.size(); ++d) {
    out += (d > 0 ? ", " : "") + dims[array.dims[d]].name;
    if (!layout.cut[d].empty()) out += "_" + subscript(mesh, layout.cut[d]);
  }
  out += "]";
  if (layout.partial != 0) out += "{U_" + subscript(mesh, mesh.list(layout.partial)) + "}";
  return out;
}

std::vector<std::int64_t> ShardingTables::local_shape(const ShardedArray& array, const Sharding& layout) const {
  std::vector<std::int64_t> out;
  for (std::size_t d = 0; d < array.dims.size(); ++d) {
    out.push_back(dims[array.dims[d]].size / mesh.ways(layout.cut[d]));
  }
  return out;
}

bool ShardingTables::divides(const std::vector<std::size_t>& array_dims, const Sharding& layout) const {
  for (std::size_t d = 0; d < array_dims.size(); ++d) {
    if (dims[array_dims[d]].size % mesh.ways(layout.cut[d]) != 0) return false;
  }
  return true;
}

BytesOf<Traced> ShardingTables::bytes(const ShardedArray& array) const {
  Traced elements(1.0);
  for (const std::size_t d : array.dims) {
    elements = elements * kReader.input(static_cast<double>(dims[d].size), dims[d].name, "--dims");
  }
  const auto element = read(kReader, Bytes(bytes_per_element(array.dtype)),
                            std::string(name_of(array.dtype)) + " bytes", "bytes of one element");
  return element * elements;
}

BytesOf<Traced> ShardingTables::local_bytes(const ShardedArray& array, const Sharding& layout) const {
  AxisMask cutting = 0;
  for (const AxisList& list : layout.cut) cutting |= mask_of(list);
  return bytes(array) / mesh.traced_ways(cutting);
}

}  // namespace scalecalc
