// Whether a question has any answer.
#pragma once

#include <functional>

#include "plan/request.h"

namespace scalecalc {

/// Whether plan() finds any plan, much sooner: nothing is bounded or ranked, a member is refused by the least memory of
/// all its layouts, and the first that fits is enough. False too where `stop` ended it.
bool anything_fits(const PlanRequest& request, const std::function<bool()>& stop = {});

}  // namespace scalecalc
