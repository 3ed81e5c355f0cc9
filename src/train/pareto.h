// The Pareto set of time against cost: the plans that no plan beats in one of the two without losing in the other.
// Time is seconds per token, for plans may run different batches; cost is chips x time, dollars at any one price.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "plan/request.h"

namespace scalecalc {

/// Of these plans the ones no other beats, fastest first; of equal ones the first. `seq`: tokens of a sequence.
std::vector<Plan> undominated(std::vector<Plan> plans, std::int64_t seq);

/// The Pareto set of all plans of a request; `planner` is of that request, and its objective does not matter. Exact.
/// `stop` as for the planner.
std::vector<Plan> pareto_front(Planner& planner, const PlanRequest& request, const std::function<bool()>& stop = {});

}  // namespace scalecalc
