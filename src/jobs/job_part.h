// A job's time as named parts that sum to it, each with its working.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/scalar.h"

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

}  // namespace scalecalc
