// What a collective over some axes of a mesh takes on a machine: collective_place.h says which chips those are,
// collective_time.h how long they take.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/explained.h"
#include "collective/collective_place.h"
#include "matmul/sharding.h"
#include "network/collective_time.h"

namespace scalecalc {

struct MeshPlacement {
  std::optional<bool> wraparound;    ///< of all torus axes; nothing: as the hardware's rule says
  std::optional<std::int64_t> ring;  ///< all chips of the mesh on one closed ring, whatever their axes
  CollectiveConvention convention = CollectiveConvention::kBook;
  InNetwork in_network = InNetwork::kAsBuilt;
};

class MeshNetwork {
 public:
  /// UserError if the machine cannot hold the mesh. Keeps references to `hw` and `mesh`.
  MeshNetwork(const HardwareSpec& hw, const Efficiency& efficiency, const Mesh& mesh, const MeshPlacement& placement);

  /// False for part of the mesh when all of it lies on one ring.
  bool joins(AxisMask axes) const;
  /// Only for axes it joins. V as in collective_time.h.
  CollectiveTime time(StepKind kind, AxisMask axes, const BytesOf<Traced>& bytes) const;
  /// The same with twice as many chips on one of the axes; nothing unless that is a single axis of a torus.
  std::optional<SecondsOf<Traced>> time_with_doubled(StepKind kind, AxisMask axes, std::uint8_t doubled,
                                                     const BytesOf<Traced>& bytes) const;
  /// What one chip receives of it at least: V (N-1)/N, twice that in an all-reduce unless the switches add, and of an
  /// all-to-all the share of its own V/N that comes from others.
  BytesOf<Traced> received(StepKind kind, AxisMask axes, const BytesOf<Traced>& bytes) const;

  /// How the axes were placed.
  const std::vector<Assumption>& assumptions() const { return assumptions_; }
  /// "X=4 (ring), Y=16 (line)" for people.
  const std::string& description() const { return description_; }

 private:
  void place_ring();
  void place_axes();
  std::string describe(std::size_t axis, const std::vector<CollectiveAxis>& slice) const;
  CollectiveGroup make_group(AxisMask axes) const;
  const CollectiveGroup& group(AxisMask axes) const;
  CollectiveRequest request(StepKind kind, const BytesOf<Traced>& bytes) const;
  bool switches_add(AxisMask axes) const;

  const HardwareSpec& hw_;
  const Mesh& mesh_;
  MeshPlacement placement_;
  CollectiveNetwork network_;
  CollectiveMesh parts_;                         ///< the mesh's axes, those along several of the machine's taken apart
  std::vector<std::vector<std::string>> names_;  ///< per mesh axis: its parts
  std::vector<Assumption> assumptions_;
  std::string description_;
  mutable std::map<AxisMask, CollectiveGroup> groups_;
};

}  // namespace scalecalc
