// `scalecalc collective`: the question as asked, and its points: one for each group size and array size.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/explained.h"
#include "primitives/collective_figures.h"
#include "primitives/collective_place.h"
#include "primitives/permute_time.h"

namespace scalecalc {

/// No array is larger: one exabyte.
inline constexpr double kMostCollectiveBytes = 1e18;

/// A measured result of the same collective.
struct Measured {
  bool is_time = false;  ///< seconds; else a bus bandwidth as NCCL reports it, bytes/s
  double value = 0;
};

struct CollectiveQuestion {
  std::optional<CollectiveOp> op;  ///< none: permute
  // Which chips; one of the first three ways, or none behind switches: the whole innermost domain.
  std::vector<NamedAxis> mesh;
  Shape topology;                    ///< axes X, Y, Z of a slice
  std::vector<std::int64_t> groups;  ///< members of the group, with or without a tier
  std::optional<std::string> tier;
  std::vector<std::string> axes;  ///< empty: all of the mesh
  std::vector<std::string> replicated;
  std::vector<std::string> sharded;  ///< with `bytes`: other axes that cut the array
  std::optional<bool> wraparound;
  // What they send: one of the two.
  std::vector<double> bytes;
  std::optional<SizedArray> array;
  // How.
  CollectiveConvention convention = CollectiveConvention::kBook;
  InNetwork in_network = InNetwork::kAsBuilt;
  double top_k = 0;
  bool calibrated = false;
  std::string stack;     ///< with `calibrated`: whose coefficients; empty: the chip's, whatever the software
  bool serving = false;  ///< `stack` is an engine
  std::optional<MeshPosition> from;
  std::optional<MeshPosition> to;
  std::optional<std::int64_t> ports;
  std::vector<Measured> measured;
};

struct MeasuredPoint {
  BytesPerSecondOf<Traced> bus;
  SecondsOf<Traced> time;
  Traced over_model{0.0};       ///< measured time over the model's
  Traced gain_over_first{0.0};  ///< of bandwidth, over the first one given
};

struct CollectivePoint {
  CollectiveMesh mesh;
  std::int64_t group = 1;  ///< members, without replicated axes; 2 for a way from one chip to another
  CollectiveGroup place;
  BytesOf<Traced> bytes;
  BytesOf<Traced> shard;
  CollectiveTime time;
  std::int64_t ports = 0;  ///< permute over a torus
  CollectiveFigures figures;
  std::optional<BytesPerSecondOf<Traced>> bytes_per_s;  ///< V over the time; none if nothing moves
  std::optional<Traced> time_over_first;                ///< against the first point, where there are several
  std::vector<MeasuredPoint> measured;
};

struct CollectiveAnswer {
  CollectiveQuestion question;
  std::vector<CollectivePoint> points;
  std::vector<Assumption> assumptions;
};

/// UserError if the question cannot be asked of this hardware, or its file leaves the links unpublished; `hw` may lack
/// everything else.
CollectiveAnswer answer_collective(const CollectiveQuestion& question, const HardwareSpec& hw);

}  // namespace scalecalc
