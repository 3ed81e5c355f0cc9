// What a step of an inference engine computes, and how long it takes: all that queueing knows of an engine.
#pragma once

#include <cstdint>
#include <functional>

namespace scalecalc {

struct StepLoad {
  double sequences = 0;        ///< decoding, one token each
  double context_tokens = 0;   ///< keys they attend to, their own token included, all sequences together
  double prompts = 0;          ///< with a chunk in the step
  double prefill_tokens = 0;   ///< of prompts, all chunks together
  double prefill_context = 0;  ///< keys a prefill token attends to on average: o + (c + 1) / 2 in a chunk of c after o
};

/// Seconds of one step; positive, not falling in any member of the load.
using StepSeconds = std::function<double(const StepLoad&)>;

/// What joins a step. Orca (OSDI 2022) section 4: a scheduler that decides anew each iteration.
enum class Batching {
  kChunkedPrefill,  ///< decodes first, chunks of prompts fill the budget: Sarathi-Serve (arXiv:2403.02310) section 4
  kPrefillFirst,    ///< prompts in steps of their own, before any decode: vLLM (arXiv:2309.06180) as published
};

/// When a request may join.
enum class Admission {
  kPromptFits,   ///< its prompt fits; it may be evicted later
  kRequestFits,  ///< prompt and whole generation fit, nobody is evicted: TensorRT-LLM's GUARANTEED_NO_EVICT
};

/// The scheduler's limits. Defaults are vLLM's.
struct QueueRules {
  Batching batching = Batching::kChunkedPrefill;
  Admission admission = Admission::kPromptFits;
  std::int64_t token_budget = 8192;   ///< tokens a step computes at most
  std::int64_t prompt_chunk = 8192;   ///< of one prompt; less than the budget where ranks take prompts of their own
  std::int64_t most_sequences = 256;  ///< sequences with memory at once
  double kv_tokens = 0;               ///< tokens the cache holds
  std::int64_t block_tokens = 16;     ///< the cache is given out in blocks: vLLM section 4
  double prefix_hit = 0;              ///< share of a prompt found in the cache, in whole blocks; never its last token
  double kv_kept_free = 0.01;         ///< of the cache, for those that run, when another joins: vLLM's watermark
};

/// Tokens the cache's whole blocks hold.
inline std::int64_t cache_tokens(const QueueRules& rules) {
  return static_cast<std::int64_t>(rules.kv_tokens) / rules.block_tokens * rules.block_tokens;
}

/// Tokens of a prompt that need no prefill.
inline std::int64_t cached_tokens(const QueueRules& rules, std::int64_t prompt) {
  const auto hit = static_cast<std::int64_t>(rules.prefix_hit * static_cast<double>(prompt));
  const std::int64_t whole_blocks = hit / rules.block_tokens * rules.block_tokens;
  return whole_blocks < prompt ? whole_blocks : prompt - 1;
}

}  // namespace scalecalc
