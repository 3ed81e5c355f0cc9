// Builds the simulated server of one replica from a serving layout and its costs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/diagnostic.h"
#include "serve/serving_cost.h"
#include "serve/traffic.h"

namespace scalecalc {

namespace {

/// Lanes take sequences and prompts evenly, and the fullest sets the pace: it computes as many prompts as any, the
/// largest chunk among them, but no more of their tokens than a step has room for.
ServeStep step_of(const StepLoad& load, double lanes, double chunk) {
  ServeStep step{.decode_sequences = load.sequences};
  if (load.sequences > 0) step.context = load.context_tokens / load.sequences;
  if (load.prefill_tokens > 0) {
    step.prefill_sequences = std::max(load.prompts, 1.0);
    const double each = load.prefill_tokens / step.prefill_sequences;
    const double fullest = std::ceil(step.prefill_sequences / lanes);
    const double tokens = (fullest - 1) * each + std::max(each, load.largest_chunk);
    step.prefill_tokens =
        std::min(tokens, std::max(std::min(chunk, load.prefill_tokens), load.prefill_tokens / lanes)) / fullest;
    step.cached = std::max(load.prefill_context - (each + 1) / 2, 0.0);
  }
  return step;
}

/// Of each replica, in tokens and seconds for one: every rank keeps its own part beside its own host.
PrefixStore store_of(const PrefixStoreAsked& asked, const HardwareSpec& hw, double rank_bytes, double ranks) {
  if (!hw.host_bandwidth()) {
    throw UserError(fmt::format("--prefix-store: {} publishes no link to its host", hw.name),
                    "--set hw.host.pcie_bandwidth=64GB/s");
  }
  const double bytes = rank_bytes * ranks;
  const double host = rank_bytes / hw.host_bandwidth()->value();
  const double disk = asked.disk_rate ? bytes / *asked.disk_rate : 0;
  return {.host_tokens = asked.host_bytes / bytes,
          .disk_tokens = asked.disk_bytes / bytes,
          .host_token_s = host,
          .disk_token_s = std::max(host, disk)};
}

double tokens_that_fit(const ServeMemory& memory, double context) {
  constexpr double kMost = 1e15;  // caches that do not grow
  const double sequences = std::max(memory.max_batch(context), 1.0);
  return std::min(memory.max_context(sequences) * sequences, kMost);
}

}  // namespace

FrontEnd front_end_of(const EngineRules& engine) {
  return {.request_s = engine.front_end_s,
          .per_client_s = engine.front_end_per_client_s,
          .stream_interval = engine.stream_interval};
}

ServerKind replica_server(const ServeBasis<double>& basis, const ServeLayout& layout, const Slice& slice,
                          const Placement& placement, const ReplicaQuestion& question) {
  const double lanes = serve_lanes(layout);
  const ServeMemory memory(basis, layout);
  const EngineRules& engine = basis.system.engine;
  constexpr std::int64_t kNoLimit = 1 << 20;
  const RequestMix& mix = question.mix;
  const double context = mix.decode_steps() > 0 ? mix.decode_context() : mix.prompt.mean();
  ServerKind out;
  out.rules.admission = engine.reserves_whole ? Admission::kRequestFits : Admission::kPromptFits;
  const double chunk = std::max(1.0, question.chunk * basis.system.rank_chunk(layout) / basis.system.chunk_tokens);
  out.rules.prompt_chunk = static_cast<std::int64_t>(chunk);
  out.rules.lanes = static_cast<std::int64_t>(lanes);
  out.rules.most_sequences =
      engine.most_sequences > 0 ? static_cast<std::int64_t>(lanes) * engine.most_sequences : kNoLimit;
  out.rules.kv_tokens = tokens_that_fit(memory, context);
  // The cache never holds more sequences than this, so the budget keeps room for all to decode.
  const auto decoding = static_cast<std::int64_t>(
      std::min(std::ceil(out.rules.kv_tokens / context), static_cast<double>(out.rules.most_sequences)));
  out.rules.token_budget = std::max(static_cast<std::int64_t>(lanes * chunk), decoding + 1);
  out.rules.prefix_hit = question.prefix_hit;
  out.rules.receive_interval = engine.receive_interval;
  out.rules.prompt_wait_steps = engine.prompt_wait_steps;
  out.rules.prompt_wait_share = engine.prompt_wait_share;
  if (question.store) {
    const double ranks = static_cast<double>(layout.replica_chips()) / memory.sequence_groups();
    out.rules.prefix_store =
        store_of(*question.store, *basis.system.hw, memory.sequence_bytes(context) / context, ranks);
  }
  const auto cost = std::make_shared<const ServingCost<double>>(basis, layout, slice, placement);
  out.seconds = [cost, lanes, chunk](const StepLoad& load) {
    return cost->step(step_of(load, lanes, chunk)).total().value();
  };
  return out;
}

}  // namespace scalecalc
