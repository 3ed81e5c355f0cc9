// Computes the time of a collective over some axes of a mesh, for the strategies of a sharded matmul.
#include "matmul/mesh_network.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/diagnostic.h"
#include "base/text.h"
#include "base/units.h"

namespace scalecalc {
namespace {

CollectiveOp op_of(StepKind kind) {
  switch (kind) {
    case StepKind::kAllGather: return CollectiveOp::kAllGather;
    case StepKind::kReduceScatter: return CollectiveOp::kReduceScatter;
    case StepKind::kAllReduce: return CollectiveOp::kAllReduce;
    case StepKind::kAllToAll: return CollectiveOp::kAllToAll;
    case StepKind::kSlice: break;
  }
  internal_error("a slice needs no network");
}

}  // namespace

MeshNetwork::MeshNetwork(const HardwareSpec& hw, const Efficiency& efficiency, const Mesh& mesh,
                         const MeshPlacement& placement)
    : hw_(hw), mesh_(mesh), placement_(placement), network_(collective_network(hw, efficiency)) {
  if (placement_.ring) {
    place_ring();
  } else {
    place_axes();
  }
}

void MeshNetwork::place_ring() {
  if (!hw_.is_torus()) {
    throw UserError(fmt::format("{} has no torus for --ring: its chips are joined by switches", hw_.name),
                    "leave --ring out");
  }
  if (*placement_.ring != mesh_.chips()) {
    throw UserError(fmt::format("--ring {}: the mesh has {} chips", *placement_.ring, group_thousands(mesh_.chips())),
                    fmt::format("all of them lie on the ring: --ring {}", mesh_.chips()));
  }
  if (placement_.wraparound) {
    throw UserError("--ring says how all axes lie, and --wraparound contradicts it", "give one of them");
  }
  description_ = fmt::format("{} on one ring", mesh_.shape_text());
  assumptions_.push_back({fmt::format("all {} chips of the mesh form one closed ring; collectives run over all of them",
                                      group_thousands(mesh_.chips())),
                          "--ring", "command line"});
}

void MeshNetwork::place_axes() {
  for (const MeshAxis& axis : mesh_.axes) {
    std::vector<std::string> own;
    for (std::size_t p = 0; p < axis.parts.size(); ++p) {
      own.push_back(axis.parts.size() == 1 ? axis.name : fmt::format("{}.{}", axis.name, p + 1));
      parts_.axes.push_back({own.back(), axis.parts[p]});
      parts_.over.push_back(own.back());
    }
    names_.push_back(std::move(own));
  }
  parts_.wraparound = placement_.wraparound;
  const CollectivePlace place = place_collective(hw_, parts_);
  parts_.over.clear();
  assumptions_ = place.assumptions;
  if (!hw_.is_torus() && mesh_.axes.size() > 1) {
    assumptions_.push_back(
        {fmt::format("mesh axis {} lies innermost, {} outermost", mesh_.axes.back().name, mesh_.axes.front().name),
         "--mesh", "the last axis numbers the chips fastest"});
  }
  std::vector<std::string> told;
  for (std::size_t a = 0; a < mesh_.axes.size(); ++a) told.push_back(describe(a, place.slice));
  description_ = join(told, ", ");
}

/// "X=4 (ring)", "X=4x2 (ring, line)", "dcn=2".
std::string MeshNetwork::describe(std::size_t axis, const std::vector<CollectiveAxis>& slice) const {
  std::string sizes;
  std::vector<std::string> kinds;
  for (std::size_t p = 0; p < names_[axis].size(); ++p) {
    sizes += fmt::format("{}{}", p == 0 ? "" : "x", mesh_.axes[axis].parts[p]);
    const auto at = std::find_if(slice.begin(), slice.end(),
                                 [&](const CollectiveAxis& part) { return part.name == names_[axis][p]; });
    if (at != slice.end()) kinds.emplace_back(at->wraps ? "ring" : "line");
  }
  return fmt::format("{}={}{}", mesh_.axes[axis].name, sizes, kinds.empty() ? "" : " (" + join(kinds, ", ") + ")");
}

bool MeshNetwork::joins(AxisMask axes) const {
  if (!placement_.ring) return true;
  return mesh_.ways(mesh_.list(axes)) == mesh_.chips();
}

CollectiveGroup MeshNetwork::make_group(AxisMask axes) const {
  if (placement_.ring) return torus_group(hw_, {{mesh_.text(mesh_.list(axes)), *placement_.ring, true}});
  CollectiveMesh asked = parts_;
  for (const std::uint8_t axis : mesh_.list(axes)) {
    asked.over.insert(asked.over.end(), names_[axis].begin(), names_[axis].end());
  }
  return place_collective(hw_, asked).group;
}

const CollectiveGroup& MeshNetwork::group(AxisMask axes) const {
  const auto known = groups_.find(axes);
  if (known != groups_.end()) return known->second;
  return groups_.emplace(axes, make_group(axes)).first->second;
}

CollectiveTime MeshNetwork::time(StepKind kind, AxisMask axes, const BytesOf<Traced>& bytes) const {
  check(joins(axes), "a collective over part of a ring");
  return collective_time(network_, group(axes), request(kind, bytes));
}

CollectiveRequest MeshNetwork::request(StepKind kind, const BytesOf<Traced>& bytes) const {
  CollectiveRequest out{.op = op_of(kind), .bytes = bytes, .convention = placement_.convention};
  if (kind == StepKind::kAllReduce) out.in_network = placement_.in_network;
  return out;
}

std::optional<SecondsOf<Traced>> MeshNetwork::time_with_doubled(StepKind kind, AxisMask axes, std::uint8_t doubled,
                                                                const BytesOf<Traced>& bytes) const {
  CollectiveGroup larger = group(axes);
  const auto at = std::find_if(larger.axes.begin(), larger.axes.end(),
                               [&](const CollectiveAxis& axis) { return axis.name == mesh_.axes[doubled].name; });
  if (!larger.levels.empty() || at == larger.axes.end()) return std::nullopt;
  at->size *= 2;
  return collective_time(network_, larger, request(kind, bytes)).time;
}

bool MeshNetwork::switches_add(AxisMask axes) const {
  if (placement_.in_network == InNetwork::kOff) return false;
  return std::any_of(group(axes).levels.begin(), group(axes).levels.end(), [&](const CollectiveLevel& level) {
    return placement_.in_network == InNetwork::kOn || hw_.network[level.tier].switched.in_network_reduction;
  });
}

BytesOf<Traced> MeshNetwork::received(StepKind kind, AxisMask axes, const BytesOf<Traced>& bytes) const {
  const Traced members = mesh_.traced_ways(axes);
  const BytesOf<Traced> from_others = bytes * ((members - Traced(1.0)) / members);
  switch (kind) {
    case StepKind::kAllReduce: return switches_add(axes) ? bytes : from_others * Traced(2.0);
    case StepKind::kAllToAll: return from_others / members;
    default: return from_others;
  }
}

}  // namespace scalecalc
