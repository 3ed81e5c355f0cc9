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
  for (double seqs = 2 * request.workload.batch_seqs; seqs < 2 * chips; seqs *= 2) {
    if (stop && stop()) return std::nullopt;
    larger.workload.batch_seqs = seqs;
    const PlanResult result = Planner(larger, stop).best({.objective = Objective::kTime, .top = 1});
    if (!result.plans.empty() && busy(result.plans.front())) {
      return seqs * static_cast<double>(request.workload.seq);
    }
  }
  return std::nullopt;
}

}  // namespace scalecalc
