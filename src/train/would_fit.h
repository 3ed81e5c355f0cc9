// What would make a question that does not fit fit: each way named was searched, and something fitted.
#pragma once

#include <string>
#include <vector>

#include "base/explained.h"
#include "base/stop.h"
#include "plan/request.h"
#include "train/question.h"

namespace scalecalc {

/// "--chips 16" (the smallest larger machine by doubling, unless data ranks or the shape are pinned) and
/// "--optimizer adam-bf16" (the first that keeps less state).
std::vector<FlagChange> what_would_fit(const TrainQuestion& question, const PlanRequest& request,
                                       const Stop& stop = {});

/// "with remat full instead of none it fits, step 5.9 s": pins of the request let go one at a time, and those that only
/// move together.
std::vector<std::string> looser_pins_that_fit(const PlanRequest& request, const Stop& stop = {});

}  // namespace scalecalc
