// A job's time as named parts that sum to it, each with its working.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/scalar.h"
#include "spec/hardware_spec.h"
#include "train/resolve.h"

namespace scalecalc {

/// One thing that a step waits for.
struct JobPart {
  std::string key;    ///< "generation"
  std::string label;  ///< for people
  SecondsOf<Traced> time;
};

inline SecondsOf<Traced> sum_of_parts(const std::vector<JobPart>& parts) {
  SecondsOf<Traced> out(Traced(0.0));
  for (const JobPart& part : parts) out += part.time;
  return out;
}

/// Seconds or bytes that a search came to: an input of what is composed from them.
inline SecondsOf<Traced> searched_seconds(double value, std::string_view name, std::string_view source) {
  return SecondsOf<Traced>(Traced::leaf(value, name, source, kSecondDim));
}
inline BytesOf<Traced> searched_bytes(double value, std::string_view name, std::string_view source) {
  return BytesOf<Traced>(Traced::leaf(value, name, source, kByteDim));
}

/// Where nothing fits: what, what a chip would need and has.
struct JobShortage {
  std::string who;   ///< "training", "generation", "teacher"
  double needs = 0;  ///< bytes of a chip; 0 where no layout is legal
  double has = 0;
  std::string how;  ///< the nearest layout, or the reason
};

/// Dollars and energy of a whole job.
struct JobRun {
  SecondsOf<Traced> time;
  Traced chip_hours;
  std::optional<Quantity<kUsdDim, Traced>> cost{};
  std::optional<Quantity<kJouleDim, Traced>> energy{};
};

// Bytes that move between the halves of a job: weights to the engine, logits to the student, state to the host.

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

// Chip-hours, dollars and energy of a job that holds its chips for so long.

/// Price and power are those of `job`; what is not published is absent.
JobRun job_run(const ResolvedQuestion& job, std::int64_t chips, const SecondsOf<Traced>& time);

}  // namespace scalecalc
