// A plan's step as the pipeline simulation runs it: what each chunk of layers does in a microbatch, how long a transfer
// takes, what each stage does at the end.
#pragma once

#include <cstdint>
#include <vector>

#include "cost/pipeline_sim.h"
#include "cost/step.h"

namespace scalecalc {

/// A layer or an end of the model.
struct ChunkPart {
  enum class Kind : std::uint8_t { kEmbedding, kLayer, kHead };
  Kind kind = Kind::kLayer;
  std::int64_t layer = 0;  ///< index in the model
  PhaseTime<double> forward, backward;
};

struct StepRun {
  PipelineRun run;
  std::vector<ChunkShape> chunks;
  std::vector<std::vector<ChunkPart>> parts;  ///< of each chunk, in the order of its forward
  std::vector<StageShape> stages;             ///< all pp of them
  std::vector<StageEnd<double>> ends;         ///< by stage
  double host_s = 0;                          ///< the host's share of a step, after everything else
};

/// Transfers run beside the stages, so what a schedule exposes of them comes out of the simulation and not of an
/// overlap coefficient. ZeRO-2 reduces gradients in every microbatch; what that exposes is charged after the last, as
/// in step_time.
StepRun step_run(const StepInput<double>& in, const Phases<double>& phases);

}  // namespace scalecalc
