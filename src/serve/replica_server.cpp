#include "serve/replica_server.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "serve/serving_cost.h"

namespace scalecalc {
namespace {

ServeStep step_of(const StepLoad& load) {
  ServeStep step{.decode_sequences = load.sequences};
  if (load.sequences > 0) step.context = load.context_tokens / load.sequences;
  if (load.prefill_tokens > 0) {
    step.prefill_sequences = std::max(load.prompts, 1.0);
    step.prefill_tokens = load.prefill_tokens / step.prefill_sequences;
    step.cached = std::max(load.prefill_context - (step.prefill_tokens + 1) / 2, 0.0);
  }
  return step;
}

double tokens_that_fit(const ServeMemory& memory, double context) {
  constexpr double kMost = 1e15;  // caches that do not grow
  const double sequences = std::max(memory.max_batch(context), 1.0);
  return std::min(memory.max_context(sequences) * sequences, kMost);
}

}  // namespace

ServerKind replica_server(const ServeBasis<double>& basis, const ServeLayout& layout, const Slice& slice,
                          const Placement& placement, const ReplicaQuestion& question) {
  const auto lanes = static_cast<double>(layout.attention_dp * layout.pp) *
                     (layout.scheme == ServeScheme::kGathered ? static_cast<double>(layout.tp) : 1);
  const ServeMemory memory(basis, layout);
  const EngineRules& engine = basis.system.engine;
  constexpr std::int64_t kNoLimit = 1 << 20;
  const RequestMix& mix = question.mix;
  const double context = mix.decode_steps() > 0 ? mix.decode_context() : mix.prompt.mean();
  ServerKind out;
  out.rules.admission = engine.reserves_whole ? Admission::kRequestFits : Admission::kPromptFits;
  out.rules.prompt_chunk = static_cast<std::int64_t>(question.chunk);
  out.rules.most_sequences =
      engine.most_sequences > 0 ? static_cast<std::int64_t>(lanes) * engine.most_sequences : kNoLimit;
  out.rules.kv_tokens = tokens_that_fit(memory, context);
  // The cache never holds more sequences than this, so the budget keeps room for all to decode.
  const auto decoding = static_cast<std::int64_t>(
      std::min(std::ceil(out.rules.kv_tokens / context), static_cast<double>(out.rules.most_sequences)));
  out.rules.token_budget = std::max(static_cast<std::int64_t>(lanes * question.chunk), decoding + 1);
  out.rules.prefix_hit = question.prefix_hit;
  const auto cost = std::make_shared<const ServingCost<double>>(basis, layout, slice, placement);
  out.seconds = [cost](const StepLoad& load) { return cost->step(step_of(load)).total().value(); };
  return out;
}

}  // namespace scalecalc
