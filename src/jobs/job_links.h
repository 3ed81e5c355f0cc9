// Bytes that move between the halves of a job: weights to the engine, logits to the student, state to the host.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/scalar.h"
#include "spec/hardware_spec.h"

namespace scalecalc {

/// Rate at which one chip receives from others of `chips` that stand together: the innermost switched tier that spans
/// them, over its oversubscription; on a torus one link, one direction (book ch. 3 and 12). Chips of two pools on a
/// torus are slices of their own (`apart`), joined by the tier beyond it. UserError where the chip stands alone.
BytesPerSecondOf<Traced> chip_ingress(const HardwareSpec& hw, const Efficiency& efficiency, std::int64_t chips,
                                      bool apart);

/// One direction of a chip's link to the host, at the share of it that transfers reach; nothing if not published.
std::optional<BytesPerSecondOf<Traced>> host_link(const HardwareSpec& hw);

/// Counts of chips from 1 to `most` that are built, ascending.
std::vector<std::int64_t> built_counts(const HardwareSpec& hw, std::int64_t most);

/// Two pools of one machine.
struct ChipSplit {
  std::int64_t first = 0;
  std::int64_t second = 0;
};

/// Every split of `chips` in two pools that are built: for each count of the first the largest second beside it. Of
/// more than `kMostSplits` those nearest to even steps are kept; `left_out` says how many were not.
inline constexpr std::size_t kMostSplits = 128;
struct ChipSplits {
  std::vector<ChipSplit> splits;
  std::size_t left_out = 0;
};
ChipSplits chip_splits(const HardwareSpec& hw, std::int64_t chips);

}  // namespace scalecalc
