// Finds the plans that no other plan beats in both time and cost, for `train --pareto`.
#include "train/pareto.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace scalecalc {
namespace {

/// Of one token: seconds, and chip-seconds.
struct TimeAndCost {
  double time = 0;
  double cost = 0;
  friend auto operator<=>(const TimeAndCost&, const TimeAndCost&) = default;
};

TimeAndCost of(const Plan& plan, std::int64_t seq) {
  const double time = plan.step_s / (plan.batch_seqs * static_cast<double>(seq));
  return {time, static_cast<double>(plan.slice.chips) * time};
}

}  // namespace

std::vector<Plan> undominated(std::vector<Plan> plans, std::int64_t seq) {
  std::stable_sort(plans.begin(), plans.end(), [seq](const Plan& a, const Plan& b) { return of(a, seq) < of(b, seq); });
  std::vector<Plan> out;
  double cheapest = std::numeric_limits<double>::infinity();
  for (Plan& plan : plans) {
    const double cost = of(plan, seq).cost;
    if (cost >= cheapest) continue;
    cheapest = cost;
    out.push_back(std::move(plan));
  }
  return out;
}

/// [FRONT] One walk down the counts of chips n: the fastest plan of all, then the fastest on fewer chips than that one
/// has, and so on to the smallest machine; then what these plans beat among themselves is dropped.
/// Nothing is missed. Let Q be a plan the walk did not take, and P the one it took when machines with n_Q chips were
/// last allowed. P is the fastest allowed there, so t_P <= t_Q; and the next step allowed only n < n_P, which excluded
/// n_Q, so n_P <= n_Q. Hence n_P t_P <= n_Q t_Q: P is no slower and no dearer than Q.
std::vector<Plan> pareto_front(Planner& planner, const PlanRequest& request, const std::function<bool()>& stop) {
  std::vector<Plan> walked;
  Goal goal{.objective = Objective::kTime, .top = 1};
  while (!(stop && stop())) {
    PlanResult fastest = planner.best(goal);
    if (fastest.plans.empty()) break;
    goal.fewer_chips = fastest.plans.front().slice.chips;
    walked.push_back(std::move(fastest.plans.front()));
  }
  return undominated(std::move(walked), request.workload.seq);
}

}  // namespace scalecalc
