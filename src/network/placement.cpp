// Enumerates where the parallel dimensions of a layout can be placed on a torus or behind switches.
#include "network/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/divisors.h"

namespace scalecalc {
namespace {

/// Nesting orders tried under switches, inner to outer. Tensor groups talk most and come first; whether pipeline
/// stages or data ranks take the outer tiers depends on sizes, so both are tried, as is a pipeline inside the node.
struct NestingOrder {
  std::string_view name;
  std::array<MeshDim, kMeshDims> dims;
};
constexpr std::array<NestingOrder, 3> kOrders{{
    {"tp-cp-fsdp-dp-pp", {MeshDim::kTp, MeshDim::kCp, MeshDim::kFsdp, MeshDim::kDp, MeshDim::kPp}},
    {"tp-cp-pp-fsdp-dp", {MeshDim::kTp, MeshDim::kCp, MeshDim::kPp, MeshDim::kFsdp, MeshDim::kDp}},
    {"tp-pp-cp-fsdp-dp", {MeshDim::kTp, MeshDim::kPp, MeshDim::kCp, MeshDim::kFsdp, MeshDim::kDp}},
}};

/// Members per tier of a group of `size` chips, `stride` apart, when tier i's domain holds `domains[i]` chips
/// (ascending; 0 = no limit). A group that would cut the innermost domain unevenly is refused: no launcher places it
/// so. One that cuts an outer domain unevenly is counted as if its parts lay in different domains there.
bool members_per_tier(std::int64_t size, std::int64_t stride, const std::vector<std::int64_t>& domains,
                      std::array<std::int64_t, kMaxTiers>& out) {
  out.fill(1);
  std::int64_t reach = stride;  // chips covered so far, from the group's first member
  std::int64_t left = size;
  for (std::size_t i = 0; i < domains.size() && left > 1; ++i) {
    if (domains[i] == 0 || i + 1 == domains.size()) {
      out[i] = left;
      return true;
    }
    if (reach >= domains[i]) continue;  // whole domains of it: what is inside has filled them evenly, or does not fit
    const std::int64_t room = domains[i] / reach;
    const bool even = domains[i] % reach == 0 && (left <= room ? room % left == 0 : left % room == 0);
    if (!even) {
      if (i == 0) return false;
      continue;
    }
    out[i] = std::min(left, room);
    left /= out[i];
    reach *= out[i];
  }
  return left == 1;
}

/// Until `visit` says that it is enough; whether it did.
using Visit = std::function<bool(const Placement&)>;

bool visit_switched(const HardwareSpec& hw, const Slice& slice, const Degrees& degrees, const Visit& visit) {
  const std::vector<std::int64_t> domains = tier_domains(hw, slice);
  std::array<Placement, kOrders.size()> known;
  std::size_t count = 0;
  for (const NestingOrder& order : kOrders) {
    Placement& placement = known[count];
    placement = {};
    placement.order = order.name;
    std::int64_t stride = 1;
    bool fits = true;
    for (const MeshDim dim : order.dims) {
      const std::int64_t degree = degrees[static_cast<std::size_t>(dim)];
      Group& group = placement.dims[static_cast<std::size_t>(dim)];
      fits = fits && members_per_tier(degree, stride, domains, group.tiers);
      stride *= degree;
    }
    const bool again = std::any_of(known.begin(), known.begin() + static_cast<std::ptrdiff_t>(count),
                                   [&](const Placement& p) { return p.dims == placement.dims; });
    if (!fits || again) continue;
    if (visit(placement)) return true;
    ++count;
  }
  return false;
}

/// Enumerates how the dimensions divide the torus axes (and the slices, for data and pipeline).
class TorusPlacer {
 public:
  TorusPlacer(const Slice& slice, const Degrees& degrees, bool mirrored, const Visit& visit)
      : slice_(slice), degrees_(degrees), mirrored_(mirrored), visit_(visit) {
    for (std::size_t a = 0; a < axes(); ++a) divisors_[a] = divisors(slice.shape[a]);
    slices_ = divisors(slice.slices);
  }

  bool run() {
    std::array<std::int64_t, kMaxAxes> used{1, 1, 1};
    return place(0, used, 1);
  }

 private:
  std::size_t axes() const { return slice_.shape.size(); }

  /// Whether an axis is like the one before it, and all dimensions placed so far take as much of both. Exchanging the
  /// two then gives a mirrored placement; the one with the smaller part first stands for both.
  bool like_the_last(std::size_t dim, std::size_t axis) const {
    if (axis == 0 || slice_.shape[axis] != slice_.shape[axis - 1] || slice_.wraps[axis] != slice_.wraps[axis - 1]) {
      return false;
    }
    return std::all_of(current_.dims.begin(), current_.dims.begin() + static_cast<std::ptrdiff_t>(dim),
                       [axis](const Group& g) { return g.axes[axis].size == g.axes[axis - 1].size; });
  }

  bool place(std::size_t dim, const std::array<std::int64_t, kMaxAxes>& used, std::int64_t slices_used) {
    if (dim == kMeshDims) return slices_used == slice_.slices && visit_(current_);
    // Only whole replicas and pipeline stages are worth sending over the data-centre network; FSDP over it is legal
    // too, so the three outer dimensions may each take a share of the slices.
    const bool outer = dim >= static_cast<std::size_t>(MeshDim::kFsdp);
    const std::int64_t degree = degrees_[dim];
    const std::int64_t free = slice_.slices / slices_used;
    for (const std::int64_t across : slices_) {
      if (across > (outer ? free : 1)) break;
      if (degree % across != 0 || free % across != 0) continue;
      if (dim + 1 == kMeshDims && across != free) continue;  // slices left over: no placement
      Group group;
      group.tiers[1] = across;
      if (degree == across) {  // nothing is left for the axes
        current_.dims[dim] = group;
        if (place(dim + 1, used, slices_used * across)) return true;
      } else if (split(dim, 0, degree / across, used, used, group, slices_used * across)) {
        return true;
      }
    }
    return false;
  }

  /// Chooses the dimension's factor on `axis` and the following ones.
  bool split(std::size_t dim, std::size_t axis, std::int64_t left, const std::array<std::int64_t, kMaxAxes>& before,
             std::array<std::int64_t, kMaxAxes> used, Group& group, std::int64_t slices_used) {
    if (axis == axes()) {
      current_.dims[dim] = group;
      return place(dim + 1, used, slices_used);
    }
    std::int64_t room = 1;  // of this axis and the following ones
    for (std::size_t a = axis; a < axes(); ++a) room *= slice_.shape[a] / before[a];
    if (room % left != 0) return false;
    const std::int64_t free = slice_.shape[axis] / before[axis];
    const bool last = axis + 1 == axes();  // takes all that is left
    const std::int64_t least = !mirrored_ && like_the_last(dim, axis) ? group.axes[axis - 1].size : 1;
    for (const std::int64_t factor : divisors_[axis]) {
      if (factor > left || factor > free) break;
      if (factor < (last ? std::max(left, least) : least) || left % factor != 0 || free % factor != 0) continue;
      AxisPart& part = group.axes[axis];
      if (factor > 1) part = {.size = factor, .stride = before[axis], .ring = slice_.wraps[axis] && factor == free};
      used[axis] = before[axis] * factor;
      const bool enough = split(dim, axis + 1, left / factor, before, used, group, slices_used);
      part = {};
      used[axis] = before[axis];
      if (enough) return true;
    }
    return false;
  }

  const Slice& slice_;
  const Degrees& degrees_;
  bool mirrored_;
  const Visit& visit_;
  std::array<std::vector<std::int64_t>, kMaxAxes> divisors_;  ///< of each axis
  std::vector<std::int64_t> slices_;                          ///< divisors of their number
  Placement current_;
};

/// Takes the first `left` members of one dimension; false if they cut it unevenly.
bool take(const Group& from, std::int64_t& left, Group& folded, Group& rest) {
  for (std::size_t a = 0; a < kMaxAxes; ++a) {
    const AxisPart& part = from.axes[a];
    if (part.size == 1) continue;
    const std::int64_t taken = std::gcd(left, part.size);
    if (taken < 1 || (taken != part.size && taken != left)) return false;
    const AxisPart inner{.size = taken, .stride = part.stride, .ring = part.ring && taken == part.size};
    const AxisPart outer{.size = part.size / taken, .stride = part.stride * taken, .ring = part.ring};
    if (taken > 1) {
      folded.axes[a] = folded.axes[a].size == 1 ? inner : merge({.axes = {folded.axes[a]}}, {.axes = {inner}}).axes[0];
    }
    if (outer.size > 1) {
      rest.axes[a] = rest.axes[a].size == 1 ? outer : merge({.axes = {rest.axes[a]}}, {.axes = {outer}}).axes[0];
    }
    left /= taken;
  }
  for (std::size_t t = 0; t < kMaxTiers; ++t) {
    const std::int64_t taken = std::gcd(left, from.tiers[t]);
    if (taken < 1 || (taken != from.tiers[t] && taken != left)) return false;
    folded.tiers[t] *= taken;
    rest.tiers[t] *= from.tiers[t] / taken;
    left /= taken;
  }
  return true;
}

}  // namespace

std::vector<std::int64_t> tier_domains(const HardwareSpec& hw, const Slice& slice) {
  std::vector<std::int64_t> domains;
  for (const Tier& tier : hw.network) {
    const std::int64_t innermost = hw.network.front().switched.chips;
    const bool part = slice.per_domain > 0 && innermost > 0;
    domains.push_back(part ? tier.switched.chips / innermost * slice.per_domain : tier.switched.chips);
  }
  return domains;
}

std::int64_t Group::size() const {
  std::int64_t out = 1;
  for (const AxisPart& part : axes) out *= part.size;
  for (const std::int64_t members : tiers) out *= members;
  return out;
}

bool Group::crosses_beyond(std::size_t tier) const {
  for (std::size_t t = tier + 1; t < kMaxTiers; ++t) {
    if (tiers[t] > 1) return true;
  }
  return false;
}

Group merge(const Group& inner, const Group& outer) {
  Group out = inner;
  for (std::size_t a = 0; a < kMaxAxes; ++a) {
    const AxisPart& b = outer.axes[a];
    if (b.size == 1) continue;
    AxisPart& o = out.axes[a];
    // Nested parts of one axis form one longer part with the inner stride.
    o = o.size == 1
            ? b
            : AxisPart{.size = o.size * b.size, .stride = std::min(o.stride, b.stride), .ring = o.ring || b.ring};
  }
  for (std::size_t t = 0; t < kMaxTiers; ++t) out.tiers[t] *= outer.tiers[t];
  return out;
}

std::vector<Placement> placements(const HardwareSpec& hw, const Slice& slice, const Degrees& degrees, bool mirrored) {
  std::vector<Placement> out;
  any_placement(
      hw, slice, degrees,
      [&](const Placement& placement) {
        out.push_back(placement);
        return false;
      },
      mirrored);
  return out;
}

bool any_placement(const HardwareSpec& hw, const Slice& slice, const Degrees& degrees,
                   const std::function<bool(const Placement&)>& admits, bool mirrored) {
  return hw.is_torus() ? TorusPlacer(slice, degrees, mirrored, admits).run()
                       : visit_switched(hw, slice, degrees, admits);
}

bool fold(std::span<const Group* const> nested, std::int64_t size, Group& folded, Group& rest) {
  folded = Group{};
  rest = Group{};
  std::int64_t left = size;
  for (const Group* group : nested) {
    if (left == 1) {
      rest = merge(rest, *group);
    } else if (!take(*group, left, folded, rest)) {
      return false;
    }
  }
  return left == 1;
}

PlacedGroup placed_group(std::string dimension, const HardwareSpec& hw, const Slice& slice, const Group& group) {
  static constexpr const char* kAxisNames[] = {"x", "y", "z"};
  PlacedGroup out{std::move(dimension), "", {}};
  const auto add = [&](PlacedPart part, const std::string& words) {
    out.where += (out.where.empty() ? "" : " + ") + words;
    out.parts.push_back(std::move(part));
  };
  for (std::size_t a = 0; a < slice.shape.size(); ++a) {
    const AxisPart& part = group.axes[a];
    if (part.size == 1) continue;
    const bool whole = part.size == slice.shape[a];
    std::string text = fmt::format("{}:{}", kAxisNames[a], part.size);
    if (!whole) text += fmt::format("/{}", slice.shape[a]);
    if (part.stride > 1) text += fmt::format(" every {}", part.stride);
    if (!part.ring) text += " line";
    add({kAxisNames[a], part.size, true, slice.shape[a], part.stride, part.ring}, text);
  }
  for (std::size_t t = 0; t < hw.network.size() && t < kMaxTiers; ++t) {
    if (group.tiers[t] == 1) continue;
    add({.axis = hw.network[t].name, .members = group.tiers[t]},
        fmt::format("{} over {}", group.tiers[t], hw.network[t].name));
  }
  if (out.where.empty()) out.where = "-";
  return out;
}

}  // namespace scalecalc
