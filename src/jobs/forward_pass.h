// A pass over whole sequences by a model that does not train: a teacher, a reward model. It is what an engine's prefill
// is, the same operations on a layout made for them, with weights in their own format and nothing kept for a backward
// pass; but the head runs on every token where losses need it. A training step's forward would hold the frozen model
// to a layout chosen for gradients and optimizer state that it has none of.
#pragma once

#include <cstdint>
#include <vector>

#include "serve/serve_question.h"
#include "serve/serving_cost.h"

namespace scalecalc {

struct ForwardLoad {
  double sequences = 0;     ///< of a pass
  double tokens = 0;        ///< of each
  bool all_logits = false;  ///< the head runs on every token
};

struct ForwardPass {
  ServeLayout layout;
  std::int64_t chips = 0;
  double seconds = 0;       ///< of all sequences
  double weight_bytes = 0;  ///< of a chip
  double memory_bytes = 0;  ///< of a chip, weights, activations, logits and the runtime
  double at_once = 0;       ///< sequences of a replica's step
  double batches = 0;       ///< such steps one after another
  Slice slice{};
  Placement placement{};
};

/// The layouts on exactly so many chips that no other beats in time and in memory, fastest first; those over `room`
/// bytes of a chip are left out. Empty if none fits or the count is not built. Sequences go through in batches of one
/// engine step's tokens, on all replicas at once.
std::vector<ForwardPass> forward_passes(const ServeBasis<double>& basis, std::int64_t chips, const ForwardLoad& load,
                                        double room, const ServePins& fix = {}, const ServePins& max = {});

/// One of the pass's batches with its formulas.
SecondsOf<Traced> explain_pass(const ServingSystem& system, const ForwardLoad& load, const ForwardPass& pass);

/// The slice that an engine is placed on; nothing if the count is not built. Long boxes of the same count lose links.
std::optional<Slice> engine_slice(const HardwareSpec& hw, std::int64_t chips);

}  // namespace scalecalc
