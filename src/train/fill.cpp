// Finds the batch that keeps all chips busy, for the advice of `scalecalc train`.
#include "train/fill.h"

namespace scalecalc {
namespace {

bool busy(const Plan& plan) { return (plan.time.compute + plan.time.hbm).value() >= kBusyShare * plan.step_s; }

}  // namespace

std::optional<double> batch_to_fill(const PlanRequest& request, const Plan& fastest,
                                    const std::function<bool()>& stop) {
  const double chips = static_cast<double>(request.slices.front().chips);
  if (busy(fastest) || request.workload.batch_seqs >= chips) return std::nullopt;
  PlanRequest larger = request;
  // A sequence for each chip leaves nothing to gain from more.
  double& seqs = larger.workload.batch_seqs;
  while (seqs < chips) {
    if (stop && stop()) return std::nullopt;
    seqs *= 2;
    const PlanResult result = Planner(larger, stop).best({.objective = Objective::kTime, .top = 1});
    if (!result.plans.empty() && busy(result.plans.front())) {
      return seqs * static_cast<double>(request.workload.seq);
    }
  }
  return std::nullopt;
}

}  // namespace scalecalc
