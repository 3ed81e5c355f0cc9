// The answer of `scalecalc profile` as an output.
#pragma once

#include "profile/gap.h"
#include "report/output.h"

namespace scalecalc {

/// With the prediction of the same step where there is one.
Output profile_output(const ProfileQuestion& question, const ProfileAnswer& found, const std::optional<GapAnswer>& gap);

}  // namespace scalecalc
