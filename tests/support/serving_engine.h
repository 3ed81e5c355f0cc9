// Engines as formulas, for tests of queueing.
#pragma once

#include <algorithm>

#include "serve/queue_server.h"

namespace scalecalc::test {

/// Overhead, a token of a cache, a sequence, a prefill token and a pair of keys, in seconds.
struct LinearEngine {
  double overhead = 5e-3;
  double cached_token = 2e-8;
  double sequence = 2e-5;
  double prefill_token = 2e-5;
  double prefill_pair = 1e-9;

  double operator()(const StepLoad& load) const {
    return overhead + cached_token * load.context_tokens + sequence * load.sequences +
           load.prefill_tokens * (prefill_token + prefill_pair * load.prefill_context);
  }
};

/// The weights read or the tokens computed, whichever is longer, and the cache.
struct RooflineEngine {
  double weights = 10e-3;
  double token = 2e-5;
  double cached_token = 2e-8;

  double operator()(const StepLoad& load) const {
    return std::max(weights, token * (load.sequences + load.prefill_tokens)) + cached_token * load.context_tokens;
  }
};

inline QueueRules roomy_rules() {
  QueueRules rules;
  rules.kv_tokens = 4e6;
  return rules;
}

}  // namespace scalecalc::test
