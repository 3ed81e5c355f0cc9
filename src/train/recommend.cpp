// Finds the simplest plan that is about as fast as the best and leaves room in memory.
#include "train/recommend.h"

#include <cmath>
#include <limits>

#include "plan/ranking.h"
#include "train/figures.h"

namespace scalecalc {
namespace {

/// Time or cost per token, as the question ranks.
double goal_per_token(const PlanRequest& request, const Plan& plan) {
  return Ranker(request.objective)
      .goal(static_cast<double>(plan.slice.chips), plan.step_s,
            plan.batch_seqs * static_cast<double>(request.workload.seq));
}

}  // namespace

Recommendation recommend(const TrainQuestion& question, const ResolvedQuestion& resolved, const PlanRequest& request,
                         Planner& planner, const std::vector<RankedPlan>& plans) {
  const Plan& first = plans.front().plan;
  Recommendation out{.plan = plans.front(), .usable = usable_share(request.workload.memory)};
  const auto found = [&](const Goal& goal) -> std::optional<Plan> {
    PlanResult result = planner.best(goal);
    if (result.plans.empty()) return std::nullopt;
    return std::move(result.plans.front());
  };
  if (request.objective == Objective::kTime || request.objective == Objective::kCost) {
    Goal goal{.objective = request.objective, .top = 1, .usable = out.usable};
    std::optional<Plan> best = first;
    if (!fits(resolved.hw, first.memory, out.usable)) best = found(goal);
    if (!best) {
      goal.usable = 1;
      best = first;
    }
    const double fastest = goal_per_token(request, *best);
    const MechanismSet unmeasured = unmeasured_in(best->layout, request.measured);
    const auto within = [&](double share) {
      return std::nextafter((1 + share) * goal_per_token(request, *best), std::numeric_limits<double>::infinity());
    };
    const double most = within(kUnmeasuredGain);
    const auto leave_aside = [&](MechanismSet mechanisms) {
      goal.without |= mechanisms;
      goal.below = most;
      if (std::optional<Plan> plan = found(goal)) {
        best = std::move(plan);
        return true;
      }
      if (mechanisms == kAllMechanisms) {
        goal.below.reset();
        out.only_unmeasured = !found(goal);
      }
      goal.without &= ~mechanisms;
      return false;
    };
    // All that no run shows; else, of what the best then uses, one after another.
    if (!resolved.evidence.empty() && !leave_aside(kAllMechanisms)) {
      MechanismSet open = kAllMechanisms;
      while (const MechanismSet used = unmeasured_in(best->layout, request.measured) & open) {
        const MechanismSet one = used & -used;
        open &= ~one;
        leave_aside(one);
      }
    }
    out.measured_only = goal_per_token(request, *best) > fastest;
    const MechanismSet left = unmeasured & ~unmeasured_in(best->layout, request.measured);
    for (std::size_t i = 0; out.measured_only && i < resolved.evidence.size(); ++i) {
      const MechanismEvidence& e = resolved.evidence[i];
      if ((left >> i & 1) != 0) out.aside.push_back(e.family.runs == 0 ? e.mechanism : e.mechanism + " so far");
    }
    goal.simplest = true;
    goal.below = within(question.tie);
    out.plan = ranked(resolved, request, found(goal).value_or(*best));  // an interrupted search finds none
  }
  const Plan& plan = out.plan.plan;
  for (std::size_t i = 0; i < plans.size() && !out.rank; ++i) {
    const Plan& shown = plans[i].plan;
    if (shown.layout == plan.layout && shown.slice.name() == plan.slice.name()) out.rank = i + 1;
  }
  out.behind = goal_per_token(request, plan) / goal_per_token(request, first) - 1;
  out.has_room = fits(resolved.hw, plan.memory, out.usable);
  return out;
}

}  // namespace scalecalc
