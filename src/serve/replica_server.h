// A layout's replica as a server of the queueing model: the engine's step as its time, the engine's rules as its
// scheduler.
#pragma once

#include "serve/queueing.h"
#include "serve/serve_memory.h"
#include "serve/serve_work.h"
#include "serve/serving_system.h"

namespace scalecalc {

struct ReplicaQuestion {
  RequestMix mix;
  double prefix_hit = 0;
  double chunk = 8192;  ///< most tokens of one prompt in a step
};

/// Attention-data ranks and pipeline stages each take sequences, and chunks of prompts, of their own: the scheduler's
/// limits are theirs together. The cache's tokens are those of sequences of the mix's mean context.
ServerKind replica_server(const ServeBasis<double>& basis, const ServeLayout& layout, const Slice& slice,
                          const Placement& placement, const ReplicaQuestion& question);

}  // namespace scalecalc
