// The training half of a composed job: the planner, asked for one count of chips after another, with room left on each
// chip for what else lives there.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "train/figures.h"
#include "train/question.h"
#include "train/resolve.h"

namespace scalecalc {

/// The best plan of a training job on some chips.
struct TrainedPlan {
  TrainQuestion question;  ///< of these chips
  std::shared_ptr<const ResolvedQuestion> resolved;
  RankedPlan ranked;
  double step_s = 0;     ///< of the tokens asked for: the plan's step times asked over run
  double forward_s = 0;  ///< one pass over the same tokens that keeps nothing for a backward pass
  /// Bytes of one chip that outlive a step: weights, optimizer state and the gradients' buffers.
  double state_bytes() const { return kept_bytes() + ranked.plan.memory.gradients.value(); }
  /// Of these, what cannot be thrown away.
  double kept_bytes() const { return (ranked.plan.memory.weights + ranked.plan.memory.optimizer).value(); }
  double total_bytes() const { return ranked.plan.memory.total().value(); }
};

/// The plan's step and memory with their formulas.
PlanReading<Traced> explain_plan(const TrainedPlan& plan);

/// Seconds of a forward pass over the tokens of a step on the plan's own layout: every microbatch through every stage,
/// and the pipeline filling once, (m + (p - 1) / v) / p passes of the whole model for m microbatches, p stages of v
/// parts each (Narayanan et al. 2021, arXiv:2104.04473 section 2.2, with the backward passes left out).
double forward_pass_time(const PlanRequest& request, const Plan& plan);

class JobTrainer {
 public:
  /// `question.chips` is the largest count that will be asked for. UserError for what is wrong with the question.
  JobTrainer(TrainQuestion question, const Catalog& catalog);

  const ResolvedQuestion& job() const { return job_; }
  double step_tokens() const { return job_.workload.batch_seqs * static_cast<double>(job_.workload.seq); }
  /// The fastest plan that leaves `taken` bytes of each chip free; null if none fits. A count that is not built has
  /// none either.
  std::shared_ptr<const TrainedPlan> on(std::int64_t chips, double taken = 0);
  /// No step over these tokens on so many chips is faster: model FLOPs at the data sheet's rate.
  double bound(std::int64_t chips) const;
  /// The least that a layout needed where nothing fitted, of the last such count.
  const std::optional<Plan>& nearest_miss() const { return nearest_miss_; }
  std::size_t searches() const { return searches_; }

 private:
  std::shared_ptr<const TrainedPlan> search(std::int64_t chips, double taken);

  TrainQuestion question_;
  ResolvedQuestion job_;
  std::map<std::pair<std::int64_t, double>, std::shared_ptr<const TrainedPlan>> known_;
  std::optional<Plan> nearest_miss_;
  std::size_t searches_ = 0;
};

}  // namespace scalecalc
