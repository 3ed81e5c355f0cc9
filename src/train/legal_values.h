// The values one dimension may take beside the pins of the others.
#pragma once

#include <cstdint>
#include <set>

#include "plan/dimensions.h"

namespace scalecalc {

/// Over every legal layout of the request with this dimension's pin let go; memory and placement are not looked at, nor
/// how many layers a policy of remat may treat.
std::set<std::int64_t> legal_values(const PlanRequest& request, const LayoutDimension& dimension);

}  // namespace scalecalc
