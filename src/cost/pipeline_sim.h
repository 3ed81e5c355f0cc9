// A pipeline run block by block: a discrete-event simulation of the schedules. The planner's closed forms (bubble,
// microbatches in flight) are tested against it, and `scalecalc trace` draws it.
//
// Schedules: GPipe (Huang et al. 2019), 1F1B and interleaved 1F1B (Narayanan et al. 2021, arXiv:2104.04473 section
// 2.2), zero-bubble ZB-H1, which splits the backward into input and weight gradients and fills idle time with the
// latter (Qi et al. 2023, arXiv:2401.10241), and DualPipe, which runs microbatches from both ends through two copies of
// the model (DeepSeek-V3 report, arXiv:2412.19437 section 3.2.1).
#pragma once

#include <cstdint>
#include <vector>

#include "cost/layout.h"

namespace scalecalc {

/// One microbatch through one chunk of a stage's layers, seconds.
struct ChunkTimes {
  double forward = 0;
  double backward_input = 0;   ///< gradient of the input: what the previous stage waits for
  double backward_weight = 0;  ///< gradient of the weights; schedules that do not split it run it with the input's
};

/// What a stage does after its last backward, seconds.
struct StageTail {
  double reduce_hidden_s = 0;  ///< of the gradient reduction, what runs beside the last backward
  double reduce_s = 0;         ///< and what is left when that is done
  double update_s = 0;
  double gather_s = 0;  ///< updated weights, before the next step can start
};

struct PipelineRun {
  Schedule schedule = Schedule::k1F1B;
  std::int64_t pp = 1;
  std::int64_t vpp = 1;  ///< chunks per stage; DualPipe has 2, one for each direction
  std::int64_t microbatches = 1;
  std::vector<ChunkTimes> chunks;  ///< pp x vpp, in the order of the layers: chunk c on stage c mod pp
  double send_s = 0;  ///< one activation or gradient to a neighbour; beside compute, one at a time and direction
  std::vector<StageTail> tails;  ///< by stage; may be empty
};

enum class BlockKind : std::uint8_t {
  kForward,
  kBackward,
  kBackwardInput,
  kBackwardWeight,
  kSendActivation,
  kSendGradient,
  kReduce,
  kUpdate,
  kGather
};
constexpr bool is_compute(BlockKind kind) { return kind <= BlockKind::kBackwardWeight; }

struct PipelineBlock {
  BlockKind kind = BlockKind::kForward;
  std::int64_t stage = 0;
  std::int64_t chunk = 0;  ///< in the order of the layers
  std::int64_t microbatch = 0;
  double start_s = 0;
  double end_s = 0;
  bool onward = true;  ///< of a send: to the next stage (the last one's next is the first), not to the one before
};

struct Timeline {
  std::vector<PipelineBlock> blocks;   ///< by start; sends belong to the stage that sends
  std::vector<double> busy_s;          ///< compute of each stage
  std::vector<double> peak_in_flight;  ///< microbatches of a whole stage kept at most, by stage
  double compute_end_s = 0;            ///< the last compute block
  double end_s = 0;                    ///< with what follows the last backwards
};

/// InternalError if the schedule cannot run these microbatches (interleaved: not a multiple of pp; DualPipe: an odd pp
/// or fewer microbatches than 2 pp).
Timeline simulate(const PipelineRun& run);

}  // namespace scalecalc
