// The answer of `scalecalc profile` as an output.
#pragma once

#include "profile/profile.h"
#include "report/output.h"

namespace scalecalc {

Output profile_output(const ProfileQuestion& question, const ProfileAnswer& found);

}  // namespace scalecalc
