// From names to places: which chips a collective asked for runs over, whether their axes close to rings, and how many
// bytes one group handles of an array that other axes cut too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/explained.h"
#include "base/units.h"
#include "network/collective_time.h"
#include "spec/dtype.h"

namespace scalecalc {

/// An array written with its sizes, as the scaling book writes operands of a collective: bf16[1024_X,4096_Y]. A
/// subscript names the mesh axes a dimension is cut over; 28672/8 is one eighth of a dimension.
struct SizedDimension {
  std::int64_t size = 1;  ///< of the whole array, the divisor applied
  std::string subscript;  ///< as written: "X", "XY", "{X,dcn}" without its braces; empty if not cut
};

struct SizedArray {
  std::string text;
  DType dtype = DType::kBf16;
  std::vector<SizedDimension> dims;
};

/// The error says what was found and shows the form.
std::variant<SizedArray, UnitError> parse_sized_array(std::string_view text);

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

// Sending from chip to chip: point to point across hops (book, chapter 2, question 5), and the permute in which every
// member sends to the next. The terms add: latency of the way, then bytes over the links used at once.

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
