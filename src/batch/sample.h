// A few questions of a study asked beforehand: how long all will take, and whether they make sense at all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "batch/cases.h"

namespace scalecalc {

struct StudySample {
  struct Wrong {
    std::string question;
    std::string reason;
  };
  std::uint64_t asked = 0;
  std::vector<Wrong> wrong;  ///< the question itself is wrong
  double seconds_each = 0;   ///< of one thread and one question
  double kept_share = 1;     ///< of the points, by `where`
};

/// Asks at most `most` questions spread over the grid, for at most `seconds` (and at least one). UserError if `where`
/// keeps none of the points looked at and the grid is small enough to know that it keeps none at all, or if every
/// question is wrong.
StudySample sample_study(const Study& study, const Cases& cases, const Ask& ask, std::uint64_t most, double seconds);

}  // namespace scalecalc
