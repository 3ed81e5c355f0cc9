// Sending from chip to chip: point to point across hops (book, chapter 2, question 5), and the permute in which every
// member sends to the next. The terms add: latency of the way, then bytes over the links used at once.
#pragma once

#include <optional>

#include "primitives/collective_place.h"

namespace scalecalc {

/// Coordinates in the mesh, in its order; behind switches a single rank does too.
using MeshPosition = std::vector<std::int64_t>;

struct PermuteRequest {
  BytesOf<Traced> bytes;             ///< what one chip sends
  std::optional<MeshPosition> from;  ///< both or none; none: every member sends to its neighbour
  std::optional<MeshPosition> to;
  std::optional<std::int64_t> ports;  ///< links used at once; else one for each axis in which the two differ
};

struct PermuteTime {
  SecondsOf<Traced> time;
  SecondsOf<Traced> bandwidth_time;
  SecondsOf<Traced> latency;
  std::int64_t hops = 0;  ///< 0 behind switches
  std::int64_t ports = 1;
  std::string tier;  ///< whose links bind; empty if nothing moves
};

/// UserError for positions outside the mesh, in different slices, or a neighbour over several axes.
PermuteTime permute_time(const CollectiveNetwork& network, const CollectiveMesh& mesh, const CollectivePlace& place,
                         const PermuteRequest& request);

}  // namespace scalecalc
