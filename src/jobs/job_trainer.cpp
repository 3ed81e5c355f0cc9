#include "jobs/job_trainer.h"

#include <algorithm>

#include "model/accounting.h"
#include "plan/plan_costs.h"

namespace scalecalc {

PlanReading<Traced> explain_plan(const TrainedPlan& plan) {
  return read_plan(Reader<Traced>{}, request_of(plan.question, *plan.resolved), plan.ranked.plan);
}

double forward_pass_time(const PlanRequest& request, const Plan& plan) {
  const Reader<double> reader;
  const PlanCosts<double> costs(reader, request, plan);
  const Layout& layout = plan.layout;
  const auto stages = static_cast<double>(layout.pp);
  const double filling = (stages - 1) / static_cast<double>(layout.vpp);
  const double passes = (static_cast<double>(layout.grad_accum) + filling) / stages;
  return passes * phases(costs.input()).forward_whole.value();
}

JobTrainer::JobTrainer(TrainQuestion question, const Catalog& catalog)
    : question_(std::move(question)), job_(resolve_job(question_, catalog)) {
  question_.top = 1;
}

double JobTrainer::bound(std::int64_t chips) const {
  const Workload& w = job_.workload;
  const double peak = job_.hw.matmul_peak[static_cast<std::size_t>(w.precision.compute)]->value();
  // Plans may run a batch that divides better, but times are scaled to the tokens asked for.
  return training_flops(job_.model, static_cast<double>(w.seq)).six_n * step_tokens() /
         (static_cast<double>(chips) * peak);
}

std::shared_ptr<const TrainedPlan> JobTrainer::on(std::int64_t chips, double taken) {
  const auto [at, fresh] = known_.try_emplace({chips, taken});
  if (fresh) at->second = search(chips, taken);
  return at->second;
}

std::shared_ptr<const TrainedPlan> JobTrainer::search(std::int64_t chips, double taken) {
  if (slices_of(job_.hw, chips, 1).empty()) return nullptr;
  ++searches_;
  TrainQuestion question = question_;
  question.chips = chips;
  auto resolved = std::make_shared<ResolvedQuestion>(on_machine(question, job_));
  // What a chip holds is all that the planner is told of the others.
  resolved->hw.hbm_capacity = Bytes(std::max(0.0, job_.hw.hbm_capacity.value() - taken));
  const PlanRequest request = request_of(question, *resolved);
  PlanResult result = plan(request);
  if (result.plans.empty()) {
    if (result.nearest_miss) nearest_miss_ = std::move(result.nearest_miss);
    return nullptr;
  }
  TrainedPlan out{.question = question,
                  .resolved = resolved,
                  .ranked = ranked(*resolved, request, std::move(result.plans.front()))};
  const Plan& best = out.ranked.plan;
  const double scale = job_.workload.batch_seqs / best.batch_seqs;
  out.step_s = best.step_s * scale;
  out.forward_s = forward_pass_time(request, best) * scale;
  return std::make_shared<const TrainedPlan>(std::move(out));
}

}  // namespace scalecalc
