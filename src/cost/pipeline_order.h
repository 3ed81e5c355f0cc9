// The order in which a stage works through its microbatches, for schedules that fix it.
#pragma once

#include <cstdint>
#include <vector>

#include "cost/pipeline_sim.h"

namespace scalecalc {

/// One thing a stage does: a forward or a backward of a microbatch through a chunk, or a weight gradient put off.
struct PipelineTask {
  bool forward = true;
  std::int64_t chunk = 0;
  std::int64_t microbatch = 0;
  bool puts_off = false;  ///< a backward that leaves its weight gradients for later
  bool weights = false;   ///< the oldest weight gradients put off; chunk and microbatch mean nothing
};

/// What stage `stage` does, in order: GPipe, 1F1B, interleaved 1F1B and DualPipe. InternalError for other schedules and
/// for microbatches the schedule cannot run.
std::vector<PipelineTask> pipeline_order(const PipelineRun& run, std::int64_t stage);

}  // namespace scalecalc
