// Finds the chips that a collective runs over and the bytes of one group, for `collective` and `matmul`.
#include "collective/collective_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "base/diagnostic.h"
#include "base/scalar.h"
#include "base/text.h"
#include "base/units.h"
#include "network/collective.h"
#include "network/point_to_point.h"
#include "network/slice.h"

namespace scalecalc {
namespace {

bool same_name(std::string_view a, std::string_view b) { return a.size() == b.size() && edit_distance(a, b) == 0; }

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void check_names(const CollectiveMesh& mesh, const std::vector<std::string>& names) {
  std::vector<std::string> known;
  for (const NamedAxis& axis : mesh.axes) known.push_back(axis.name);
  for (const std::string& name : names) {
    if (contains(known, name)) continue;
    const std::string hint = did_you_mean(nearest(name, known));
    throw UserError(fmt::format("the mesh has no axis {}", in_quotes(name)),
                    fmt::format("{}{}its axes: {}", hint, hint.empty() ? "" : " ", join(known, ", ")));
  }
}

Shape ascending(Shape shape) {
  std::sort(shape.begin(), shape.end());
  return shape;
}

std::string shape_text(const std::vector<CollectiveAxis>& axes) {
  std::string out;
  for (const CollectiveAxis& axis : axes) out += fmt::format("{}{}", out.empty() ? "" : "x", axis.size);
  return out;
}

std::string names_of(const std::vector<CollectiveAxis>& axes, bool wraps) {
  std::vector<std::string> names;
  for (const CollectiveAxis& axis : axes) {
    if (axis.wraps == wraps && axis.size > 1) names.push_back(axis.name);
  }
  return join_and(names);
}

std::string wraparound_text(const std::vector<CollectiveAxis>& axes) {
  const std::string rings = names_of(axes, true);
  const std::string lines = names_of(axes, false);
  if (lines.empty()) return fmt::format("{} with wraparound", rings);
  if (rings.empty()) return fmt::format("{} without wraparound", lines);
  return fmt::format("{} with wraparound, {} without", rings, lines);
}

/// The torus part of a mesh.
class TorusPlace {
 public:
  TorusPlace(const HardwareSpec& hw, const CollectiveMesh& mesh)
      : hw_(hw), torus_(hw.network.front().torus), mesh_(mesh) {}

  CollectivePlace run() {
    split();
    decide_wraparound();
    std::vector<CollectiveAxis> group;
    std::int64_t inner = 1;
    std::int64_t across = 1;
    for (std::size_t i = 0, a = 0; i < mesh_.axes.size(); ++i) {
      const NamedAxis& axis = mesh_.axes[i];
      const bool takes_part = contains(mesh_.over, axis.name) || contains(mesh_.replicated, axis.name);
      if (!out_.tiers[i].empty()) {
        if (takes_part) across *= axis.size;
        continue;
      }
      if (takes_part) group.push_back(out_.slice[a]);
      if (!takes_part) inner *= axis.size;
      ++a;
    }
    const bool whole = group.size() == out_.slice.size() && across == 1;
    out_.group = torus_group(hw_, std::move(group), across, inner);
    if (whole && twisted_) {
      Shape shape;
      for (const CollectiveAxis& axis : out_.slice) shape.push_back(axis.size);
      out_.group.twist_gain = collective::twist_gain(ascending(shape));
    }
    return std::move(out_);
  }

 private:
  /// Axes of the slice, and axes that count slices.
  void split() {
    for (const NamedAxis& axis : mesh_.axes) {
      std::string tier;
      for (std::size_t t = 1; t < hw_.network.size(); ++t) {
        if (same_name(axis.name, hw_.network[t].name)) tier = hw_.network[t].name;
      }
      if (tier.empty()) out_.slice.push_back({axis.name, axis.size, false});
      out_.tiers.push_back(tier);
    }
    if (static_cast<std::int64_t>(out_.slice.size()) > torus_.dimensions()) {
      throw UserError(fmt::format("the mesh {} has {} axes inside a slice, and {} has {}", mesh_.text(),
                                  out_.slice.size(), hw_.name, torus_.dimensions()),
                      hw_.network.size() < 2 ? "" : fmt::format("an axis named {} counts slices", hw_.network[1].name));
    }
  }

  void decide_wraparound() {
    const bool any = std::any_of(out_.slice.begin(), out_.slice.end(), [](const auto& axis) { return axis.size > 1; });
    if (!any) return;
    if (mesh_.wraparound) {
      for (CollectiveAxis& axis : out_.slice) axis.wraps = *mesh_.wraparound && axis.size > 1;
      out_.assumptions.push_back(
          {fmt::format("{}: forced, whether {} builds such a slice or not", wraparound_text(out_.slice), hw_.name),
           "--wraparound", "command line"});
      return;
    }
    if (torus_.wraparound == Wraparound::kNone && torus_.pod.empty()) {
      out_.assumptions.push_back({fmt::format("{}: {} has none", wraparound_text(out_.slice), hw_.name), "--wraparound",
                                  hw_.network.front().source});
      return;
    }
    require_pod(hw_);
    if (out_.slice.size() == torus_.pod.size()) {
      whole_slice();
    } else {
      part_of_slice();
    }
  }

  void whole_slice() {
    Shape shape;
    for (const CollectiveAxis& axis : out_.slice) shape.push_back(axis.size);
    const std::vector<Slice> slices = slice_of_shape(hw_, shape, 1);
    if (slices.empty()) not_built(shape_text(out_.slice));
    const Slice& slice = slices.front();
    // A slice lists its axes in ascending order.
    std::vector<std::size_t> order(shape.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return shape[a] < shape[b]; });
    for (std::size_t i = 0; i < order.size(); ++i) out_.slice[order[i]].wraps = slice.wraps[i];
    twisted_ = slice.twisted;
    out_.assumptions.push_back(
        {fmt::format("{}: how {} builds a slice of {}", wraparound_text(out_.slice), hw_.name, shape_text(out_.slice)),
         "--wraparound", hw_.network.front().source});
  }

  void part_of_slice() {
    for (CollectiveAxis& axis : out_.slice) {
      const std::optional<bool> wraps = axis_wraps(torus_, axis.size);
      if (!wraps) not_built(fmt::format("axis of {}", axis.size));
      axis.wraps = *wraps;
    }
    out_.assumptions.push_back({fmt::format("{}, as in a larger {} slice whose other axes are whole units",
                                            wraparound_text(out_.slice), hw_.name),
                                "--mesh", hw_.network.front().source});
  }

  [[noreturn]] void not_built(const std::string& what) const {
    std::vector<std::string> sizes;
    for (const std::int64_t size : torus_.pod) sizes.push_back(std::to_string(size));
    std::string unit;
    for (const std::int64_t size : torus_.unit) unit += fmt::format("{}{}", unit.empty() ? "" : "x", size);
    throw UserError(
        fmt::format("no {} slice has {} {}", hw_.name, what.starts_with("axis") ? "an" : "the shape", what),
        fmt::format("{}a pod is {}; --wraparound on or off takes any shape",
                    unit.empty() ? "" : fmt::format("slices are whole units of {}, ", unit), join(sizes, "x")));
  }

  const HardwareSpec& hw_;
  const TorusTier& torus_;
  const CollectiveMesh& mesh_;
  CollectivePlace out_;
  bool twisted_ = false;
};

CollectivePlace behind_switches(const HardwareSpec& hw, const CollectiveMesh& mesh) {
  if (mesh.wraparound) {
    throw UserError(fmt::format("{} has no torus whose axes could wrap", hw.name), "leave --wraparound out");
  }
  CollectivePlace out;
  std::vector<RankRange> ranks;
  std::int64_t stride = 1;
  for (std::size_t i = mesh.axes.size(); i-- > 0;) {
    const NamedAxis& axis = mesh.axes[i];
    if (contains(mesh.over, axis.name) || contains(mesh.replicated, axis.name)) ranks.push_back({axis.size, stride});
    stride *= axis.size;
  }
  out.tiers.assign(mesh.axes.size(), "");
  out.group = switched_group(hw, ranks);
  return out;
}

/// The axes a subscript names: one name, or several of one letter each, or a list with commas.
std::vector<std::string> axes_of(const std::string& subscript, const CollectiveMesh& mesh) {
  std::vector<std::string> known;
  for (const NamedAxis& axis : mesh.axes) known.push_back(axis.name);
  if (contains(known, subscript)) return {subscript};
  std::vector<std::string> out;
  if (subscript.find(',') == std::string::npos) {
    for (const char letter : subscript) out.emplace_back(1, letter);
    return out;
  }
  for (std::size_t begin = 0; begin <= subscript.size();) {
    const std::size_t end = std::min(subscript.find(',', begin), subscript.size());
    out.push_back(subscript.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

std::int64_t size_of(const CollectiveMesh& mesh, const std::string& name) {
  const auto found =
      std::find_if(mesh.axes.begin(), mesh.axes.end(), [&](const NamedAxis& axis) { return axis.name == name; });
  return found == mesh.axes.end() ? 1 : found->size;
}

/// Names of all axes that cut the array.
std::vector<std::string> cutting_axes(const SizedArray& array, const CollectiveMesh& mesh) {
  std::vector<std::string> out;
  for (const SizedDimension& dim : array.dims) {
    const std::vector<std::string> axes = axes_of(dim.subscript, mesh);
    check_names(mesh, axes);
    std::int64_t ways = 1;
    for (const std::string& axis : axes) {
      if (contains(out, axis)) {
        throw UserError(fmt::format("{} is cut over axis {} twice", array.text, axis),
                        "each mesh axis cuts at most one dimension of an array");
      }
      out.push_back(axis);
      ways *= size_of(mesh, axis);
    }
    if (dim.size % ways != 0) {
      throw UserError(
          fmt::format("{} does not divide over the {} chips of {}", group_thousands(dim.size), ways, dim.subscript),
          "a dimension that is a multiple of the axes that cut it");
    }
  }
  return out;
}

/// What is gathered or exchanged must be cut over the group, what is all-reduced must not; no subscript at all says
/// nothing about that. Over a replicated axis nothing may be cut.
void check_cut(const SizedArray& array, const CollectiveMesh& mesh, const std::vector<std::string>& cutting,
               std::optional<CollectiveOp> op) {
  for (const std::string& axis : mesh.replicated) {
    if (!contains(cutting, axis)) continue;
    throw UserError(fmt::format("{} is cut over axis {}, so that axis holds no copies", array.text, axis),
                    "--replicated names axes the array is not cut over");
  }
  if (!op || cutting.empty()) return;
  const bool wants_cut =
      *op == CollectiveOp::kAllGather || *op == CollectiveOp::kAllToAll || *op == CollectiveOp::kGather;
  const bool wants_whole =
      *op == CollectiveOp::kAllReduce || *op == CollectiveOp::kBroadcast || *op == CollectiveOp::kReduce;
  for (const std::string& axis : mesh.over) {
    if (wants_cut && !contains(cutting, axis)) {
      throw UserError(fmt::format("{} is not cut over axis {}: there is nothing to gather over it", array.text, axis),
                      fmt::format("write the cut as a subscript, such as 1024_{}", axis));
    }
    if (wants_whole && contains(cutting, axis)) {
      const std::string name(kCollectiveOpNames[static_cast<std::size_t>(*op)]);
      const bool adds = *op != CollectiveOp::kBroadcast;
      throw UserError(fmt::format("{} is cut over axis {}, and a{} {} {} whole copies", array.text, axis,
                                  name.starts_with('a') ? "n" : "", name, adds ? "adds up" : "sends"),
                      adds ? "a reduce-scatter leaves its result cut" : "a scatter leaves it cut");
    }
  }
}

}  // namespace

std::int64_t CollectiveMesh::chips() const {
  std::int64_t out = 1;
  for (const NamedAxis& axis : axes) out *= axis.size;
  return out;
}

std::int64_t CollectiveMesh::members() const {
  std::int64_t out = 1;
  for (const std::string& name : over) out *= size_of(*this, name);
  return out;
}

std::string CollectiveMesh::text() const {
  std::vector<std::string> parts;
  for (const NamedAxis& axis : axes) parts.push_back(fmt::format("{}={}", axis.name, axis.size));
  return join(parts, ", ");
}

CollectivePlace place_collective(const HardwareSpec& hw, const CollectiveMesh& mesh) {
  if (hw.network.empty()) {
    throw UserError(fmt::format("{} has no network: nothing joins its chips", hw.name),
                    "describe one under network: in a hardware file");
  }
  check_names(mesh, mesh.over);
  check_names(mesh, mesh.replicated);
  check_names(mesh, mesh.sharded);
  for (const std::string& axis : mesh.replicated) {
    if (contains(mesh.over, axis) || contains(mesh.sharded, axis)) {
      throw UserError(
          fmt::format("axis {} cannot both hold shards and copies", axis),
          "--axes names the axes to gather over, --sharded others that cut the array, --replicated idle ones");
    }
  }
  for (const std::string& axis : mesh.sharded) {
    if (contains(mesh.over, axis)) {
      throw UserError(fmt::format("axis {} stands in --axes and --sharded", axis),
                      "--sharded names the other axes that cut the array");
    }
  }
  return hw.is_torus() ? TorusPlace(hw, mesh).run() : behind_switches(hw, mesh);
}

BytesOf<Traced> group_bytes(const SizedArray& array, const CollectiveMesh& mesh, std::optional<CollectiveOp> op) {
  const std::vector<std::string> cutting = cutting_axes(array, mesh);
  check_cut(array, mesh, cutting, op);
  const Reader<Traced> reader;
  Traced elements(1.0);
  for (const SizedDimension& dim : array.dims) {
    elements = elements * reader.input(static_cast<double>(dim.size), group_thousands(dim.size), array.text);
  }
  const auto element =
      read(reader, Bytes(bytes_per_element(array.dtype)), fmt::format("bytes of {}", name_of(array.dtype)), array.text);
  BytesOf<Traced> bytes = element * elements;
  for (const std::string& axis : cutting) {
    if (contains(mesh.over, axis)) continue;
    bytes = bytes / reader.input(static_cast<double>(size_of(mesh, axis)), axis, "--mesh");
  }
  return named(bytes, "V", "book ch. 3: bytes of the array, over the other axes that cut it");
}

BytesOf<Traced> group_bytes(double bytes, const CollectiveMesh& mesh) {
  const Reader<Traced> reader;
  auto whole = read(reader, Bytes(bytes), mesh.sharded.empty() ? "V" : "bytes", "--bytes");
  if (mesh.sharded.empty()) return whole;
  BytesOf<Traced> out = whole;
  for (const std::string& axis : mesh.sharded) {
    out = out / reader.input(static_cast<double>(size_of(mesh, axis)), axis, "--mesh");
  }
  return named(out, "V", "book ch. 3: bytes of the array, over the other axes that cut it");
}

namespace {

constexpr std::string_view kArrayForm =
    "a format and sizes, such as bf16[1024_X,4096] with dimension 1024 cut over axis X";

UnitError wrong(std::string_view text, std::string_view why, std::string hint = std::string(kArrayForm)) {
  return {fmt::format("{} is not an array: {}", in_quotes(text), why), std::move(hint)};
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

bool is_ascii_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// Position of the underscore before a subscript: 16_384 has none, 16_384_X one.
std::size_t subscript_at(std::string_view dim) {
  for (std::size_t i = dim.find('_'); i != std::string_view::npos; i = dim.find('_', i + 1)) {
    if (i + 1 < dim.size() && (is_ascii_letter(dim[i + 1]) || dim[i + 1] == '{')) return i;
  }
  return std::string_view::npos;
}

std::variant<std::int64_t, UnitError> size_of(std::string_view text) {
  const auto parsed = parse_quantity(trimmed(text), UnitKind::kCount);
  if (const UnitError* error = std::get_if<UnitError>(&parsed)) return *error;
  const double value = std::get<double>(parsed);
  if (value < 1) return UnitError{fmt::format("{} is not a dimension", in_quotes(text)), "a whole number above 0"};
  return static_cast<std::int64_t>(value);
}

std::variant<SizedDimension, UnitError> dimension_of(std::string_view text) {
  SizedDimension out;
  const std::size_t subscript = subscript_at(text);
  if (subscript != std::string_view::npos) {
    std::string_view axes = trimmed(text.substr(subscript + 1));
    if (axes.front() == '{') {
      if (axes.back() != '}') return UnitError{fmt::format("the brace in {} stays open", in_quotes(text)), ""};
      axes = axes.substr(1, axes.size() - 2);
    }
    if (axes.empty()) return UnitError{fmt::format("{} names no axis", in_quotes(text)), ""};
    out.subscript = axes;
    text = text.substr(0, subscript);
  }
  const std::size_t slash = text.find('/');
  const auto whole = size_of(text.substr(0, slash));
  if (const UnitError* error = std::get_if<UnitError>(&whole)) return *error;
  out.size = std::get<std::int64_t>(whole);
  if (slash == std::string_view::npos) return out;
  const auto ways = size_of(text.substr(slash + 1));
  if (const UnitError* error = std::get_if<UnitError>(&ways)) return *error;
  if (out.size % std::get<std::int64_t>(ways) != 0) {
    return UnitError{fmt::format("{} leaves a remainder", in_quotes(trimmed(text))), "a divisor of the dimension"};
  }
  out.size /= std::get<std::int64_t>(ways);
  return out;
}

/// At commas, but not inside braces.
std::vector<std::string_view> split_dims(std::string_view text) {
  std::vector<std::string_view> out;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '{') ++depth;
    if (i < text.size() && text[i] == '}') --depth;
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    out.push_back(trimmed(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  return out;
}

}  // namespace

std::variant<SizedArray, UnitError> parse_sized_array(std::string_view text) {
  SizedArray out{.text = std::string(text)};
  const std::size_t open = text.find('[');
  if (open == std::string_view::npos || text.back() != ']') return wrong(text, "its sizes stand in brackets");
  const std::string_view format = trimmed(text.substr(0, open));
  const auto* const known = std::find(kDTypeNames.begin(), kDTypeNames.end(), format);
  if (known == kDTypeNames.end()) {
    const std::vector<std::string> names(kDTypeNames.begin(), kDTypeNames.end());
    std::string hint = did_you_mean(nearest(format, names));
    hint += fmt::format("{}formats: {}", hint.empty() ? "" : " ", join(names, ", "));
    return wrong(text, fmt::format("unknown format {}", in_quotes(format)), hint);
  }
  out.dtype = static_cast<DType>(known - kDTypeNames.begin());
  for (const std::string_view dim : split_dims(text.substr(open + 1, text.size() - open - 2))) {
    if (dim.empty()) return wrong(text, "a dimension is empty");
    const auto parsed = dimension_of(dim);
    if (const UnitError* error = std::get_if<UnitError>(&parsed)) return wrong(text, error->message, error->hint);
    out.dims.push_back(std::get<SizedDimension>(parsed));
  }
  return out;
}

namespace {

class Permute {
 public:
  Permute(const CollectiveNetwork& network, const CollectiveMesh& mesh, const CollectivePlace& place,
          const PermuteRequest& request)
      : network_(network), mesh_(mesh), place_(place), request_(request) {}

  PermuteTime run() {
    if (request_.from) {
      hw().is_torus() ? across_torus(position(*request_.from), position(*request_.to))
                      : take(switched_way(hw(), network_.rates, rank(*request_.from), rank(*request_.to)));
    } else {
      to_neighbour();
    }
    if (request_.ports) set_ports(*request_.ports);
    const TransferTime time = transfer_time(way_, request_.bytes, out_.ports);
    out_.time = time.time;
    out_.bandwidth_time = time.bandwidth_time;
    out_.latency = time.latency;
    out_.hops = way_.hops;
    out_.tier = way_.tier;
    return std::move(out_);
  }

 private:
  const HardwareSpec& hw() const { return *network_.hw; }
  void take(Way way) { way_ = std::move(way); }

  /// One coordinate for each mesh axis, or a rank behind switches.
  MeshPosition position(const MeshPosition& given) const {
    if (given.size() != mesh_.axes.size()) {
      throw UserError(
          fmt::format("a position in {} has {} coordinates, not {}", mesh_.text(), mesh_.axes.size(), given.size()),
          "one number for each axis, from 0, such as 0,3");
    }
    for (std::size_t i = 0; i < given.size(); ++i) {
      const NamedAxis& axis = mesh_.axes[i];
      if (given[i] >= axis.size) {
        throw UserError(fmt::format("{} lies outside axis {}", given[i], axis.name),
                        fmt::format("from 0 to {}", axis.size - 1));
      }
    }
    return given;
  }

  std::int64_t rank(const MeshPosition& given) const {
    if (given.size() == 1 && mesh_.axes.size() != 1) {
      if (given[0] < mesh_.chips()) return given[0];
      throw UserError(fmt::format("rank {} lies outside the {} chips", given[0], group_thousands(mesh_.chips())), "");
    }
    std::int64_t out = 0;
    const MeshPosition at = position(given);
    for (std::size_t i = 0; i < at.size(); ++i) out = out * mesh_.axes[i].size + at[i];
    return out;
  }

  void across_torus(const MeshPosition& from, const MeshPosition& to) {
    std::int64_t hops = 0;
    std::int64_t ports = 0;
    for (std::size_t i = 0, a = 0; i < from.size(); ++i) {
      if (!place_.tiers[i].empty()) {
        if (from[i] != to[i])
          throw UserError("--from and --to lie in different slices", "permute over that axis alone");
        continue;
      }
      const CollectiveAxis& axis = place_.slice[a++];
      const std::int64_t apart = std::abs(from[i] - to[i]);
      hops += axis.wraps ? std::min(apart, axis.size - apart) : apart;
      if (apart > 0) ++ports;
    }
    if (ports == 0) return;
    out_.ports = ports;
    take(torus_way(hw(), network_.rates, hops));
  }

  void to_neighbour() {
    const CollectiveGroup& group = place_.group;
    if (group.size() == 1) return;
    if (mesh_.over.size() != 1) {
      throw UserError("a permute sends to the next member along one axis", "name one with --axes, or --from and --to");
    }
    if (!group.axes.empty()) return take(torus_way(hw(), network_.rates, 1));
    for (const CollectiveLevel& level : group.levels) {
      if (level.members > 1) cross(hw(), network_.rates, level.tier, way_);
    }
  }

  void set_ports(std::int64_t ports) {
    if (way_.hops == 0) {
      throw UserError("--ports counts torus links, and this way has none", "leave it out");
    }
    out_.ports = ports;
  }

  const CollectiveNetwork& network_;
  const CollectiveMesh& mesh_;
  const CollectivePlace& place_;
  const PermuteRequest& request_;
  Way way_;
  PermuteTime out_;
};

}  // namespace

PermuteTime permute_time(const CollectiveNetwork& network, const CollectiveMesh& mesh, const CollectivePlace& place,
                         const PermuteRequest& request) {
  return Permute(network, mesh, place, request).run();
}

}  // namespace scalecalc
