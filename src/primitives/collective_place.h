// From names to places: which chips a collective asked for runs over, whether their axes close to rings, and how many
// bytes one group handles of an array that other axes cut too.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/explained.h"
#include "network/collective_time.h"
#include "primitives/sized_array.h"

namespace scalecalc {

struct NamedAxis {
  std::string name;
  std::int64_t size = 1;
};

/// The mesh of chips and what of it takes part. On a torus the mesh's axes are the slice's axes, and one named after a
/// tier beyond the torus ("dcn") counts slices; behind switches the last axis is the innermost.
struct CollectiveMesh {
  std::vector<NamedAxis> axes;
  std::vector<std::string> over;        ///< the collective's axes
  std::vector<std::string> replicated;  ///< axes that hold copies and help to gather (book, ch. 3, question 2)
  std::vector<std::string> sharded;     ///< other axes that cut an array given by its bytes
  std::optional<bool> wraparound;       ///< forced; else by the hardware's rule

  std::int64_t chips() const;
  std::int64_t members() const;  ///< of one group, without the replicated axes
  std::string text() const;      ///< "X=4, Y=4"
};

struct CollectivePlace {
  CollectiveGroup group;              ///< over `over` and `replicated`
  std::vector<CollectiveAxis> slice;  ///< all torus axes of the mesh, in its order; empty behind switches
  std::vector<std::string> tiers;     ///< per mesh axis: the outer tier it stands for; empty = inside the slice
  std::vector<Assumption> assumptions;
};

/// UserError: unknown axes, a slice nobody builds (unless wraparound is forced), ranks that cut a node.
CollectivePlace place_collective(const HardwareSpec& hw, const CollectiveMesh& mesh);

/// V: bytes of the array that one group handles: the whole over the ways that other axes cut it. UserError if a
/// subscript names no axis, or one twice, a dimension does not divide, or the array is not cut as `op` needs it.
BytesOf<Traced> group_bytes(const SizedArray& array, const CollectiveMesh& mesh, std::optional<CollectiveOp> op);
/// The same of an array of so many bytes, over the mesh's `sharded` axes.
BytesOf<Traced> group_bytes(double bytes, const CollectiveMesh& mesh);

}  // namespace scalecalc
