// The step of one plan block by block, for `scalecalc trace`.
#pragma once

#include "cost/step_run.h"
#include "train/question.h"

namespace scalecalc {

/// What one stage does with the step; the three times sum to the simulated step.
struct StageFigures {
  StageShape holds;
  std::int64_t layers = 0;
  double forward_s = 0;   ///< of a microbatch, all chunks; under DualPipe half of one through each of its two
  double backward_s = 0;  ///< with recompute
  double busy_s = 0;      ///< forwards and backwards, communication they expose included
  double end_s = 0;       ///< exposed gradient reduction, optimizer, exposed weights, the host's share
  double idle_s = 0;
  double peak_in_flight = 0;  ///< microbatches of the whole stage
  double activation_bytes = 0;
};

struct StepTrace {
  StepRun step;
  Timeline timeline;
  double simulated_s = 0;
  std::vector<StageFigures> stages;
};

/// Forwards and backwards of one microbatch through one chunk that a step may have to be drawn.
constexpr std::int64_t kMostPasses = 250'000;

/// What the passes of a stage expose of one kind of communication.
double exposed_in_passes(const StepTrace& trace, std::int64_t stage, SecondsOf<double> PhaseTime<double>::*kind);

/// UserError if the step has more passes than kMostPasses.
StepTrace trace_step(const TrainAnswer& answer, const Plan& plan);

}  // namespace scalecalc
