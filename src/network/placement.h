// Where each parallel dimension lands on the machine. Two plans with the same degrees and different placement are
// different plans.
//
// On a torus a dimension takes whole axes or parts of them; dimensions that share an axis nest: the inner one
// contiguous, the outer one strided across it. Under switches the dimensions nest in an order, and a group's members
// fall into nodes, leaves and pods accordingly. Only geometry here; channel.h gives it bandwidth.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "network/slice.h"
#include "spec/hardware_spec.h"

namespace scalecalc {

inline constexpr std::size_t kMaxAxes = 3;

/// Part of one torus axis: `size` members, `stride` chips apart.
struct AxisPart {
  std::int64_t size = 1;
  std::int64_t stride = 1;
  bool ring = false;  ///< the members close a ring over the wrapped axis

  friend bool operator==(const AxisPart&, const AxisPart&) = default;
};

/// The chips one collective runs over.
struct Group {
  std::array<AxisPart, kMaxAxes> axes;  ///< torus axes; size 1 = not on this axis
  std::array<std::int64_t, kMaxTiers> tiers{1, 1, 1,
                                            1};  ///< members at each switched tier; tier 0 is the torus if there is one
  std::int64_t size() const;
  bool crosses_beyond(std::size_t tier) const;  ///< some members lie in different domains of this tier

  friend bool operator==(const Group&, const Group&) = default;
};

/// The group made of two dimensions' groups that share no axis part (their product).
Group merge(const Group& inner, const Group& outer);

enum class MeshDim : std::uint8_t { kTp, kCp, kFsdp, kDp, kPp };
inline constexpr std::size_t kMeshDims = 5;

struct Placement {
  std::array<Group, kMeshDims> dims;
  std::string_view order;  ///< switched machines: "tp-cp-fsdp-dp-pp", inner first; empty on a torus

  const Group& of(MeshDim dim) const { return dims[static_cast<std::size_t>(dim)]; }
};

/// The slice's own chips below one switch domain of each tier, 0 where it has no limit: outer domains hold as many
/// inner ones as ever.
std::vector<std::int64_t> tier_domains(const HardwareSpec& hw, const Slice& slice);

/// Degrees in MeshDim order.
using Degrees = std::array<std::int64_t, kMeshDims>;

/// Every placement of these degrees on the slice (tensor innermost ... pipeline outermost on a shared torus axis; the
/// nesting orders listed in placement.cpp under switches). Empty if the degrees do not divide the axes. Unless
/// `mirrored`, those that differ by an exchange of equal torus axes come once: they cost the same, but for expert
/// groups, which fold over the axes in their order.
std::vector<Placement> placements(const HardwareSpec& hw, const Slice& slice, const Degrees& degrees,
                                  bool mirrored = true);

/// Whether any of them is one that `admits`, in their order; looks no further.
bool any_placement(const HardwareSpec& hw, const Slice& slice, const Degrees& degrees,
                   const std::function<bool(const Placement&)>& admits, bool mirrored = true);

/// The first `size` members of the nested dimensions `inner` then `outer` ...: how expert groups fold over context and
/// data ranks. False if `size` cuts an axis part or a tier unevenly. `rest` gets the members left over.
bool fold(std::span<const Group* const> nested, std::int64_t size, Group& folded, Group& rest);

/// Members of a group along one torus axis, or at one switched tier.
struct PlacedPart {
  std::string axis;  ///< "x", or the tier: "node"
  std::int64_t members = 1;
  bool torus = false;  ///< what follows is of torus axes alone
  std::int64_t of = 1, stride = 1;
  bool ring = false;
};

/// A parallel dimension and where it lies.
struct PlacedGroup {
  std::string dimension;            ///< "tp"
  std::string where;                ///< "x:4/16 + y:20", "8 over node"; in words
  std::vector<PlacedPart> parts{};  ///< the same as data
};
PlacedGroup placed_group(std::string dimension, const HardwareSpec& hw, const Slice& slice, const Group& group);

}  // namespace scalecalc
