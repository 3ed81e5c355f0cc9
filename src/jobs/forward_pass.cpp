#include "jobs/forward_pass.h"

#include <algorithm>
#include <cmath>

#include "base/scalar.h"
#include "serve/serve_memory.h"
#include "serve/serve_search.h"

namespace scalecalc {
namespace {

constexpr double kLogitBytes = 4;  // logits are reduced to probabilities in fp32

/// Sequences that a rank takes in one step.
double at_a_time(const ServeBasis<double>& basis, const ForwardLoad& load) {
  return std::max(1.0, std::floor(basis.system.chunk_tokens / load.tokens));
}

double memory_of(const ServeBasis<double>& basis, const ServeLayout& layout, const ForwardLoad& load) {
  const double fixed = ServeMemory(basis, layout).parts(0, 0).total();
  const double rows = load.all_logits ? at_a_time(basis, load) * load.tokens : 0;
  return fixed + rows * to_double(basis.system.model->vocab) * kLogitBytes / to_double(layout.tp * layout.cp);
}

ServeStep batch_of(const ForwardLoad& load, double sequences) {
  return {.prefill_sequences = sequences, .prefill_tokens = load.tokens, .all_logits = load.all_logits};
}

/// Sequences of a replica's step, and how many such steps there are.
void fill_batches(const ServeBasis<double>& basis, const ForwardLoad& load, ForwardPass& pass) {
  const ServeLayout& layout = pass.layout;
  const double ranks =
      to_double(layout.attention_dp * layout.pp) * (layout.scheme == ServeScheme::kGathered ? to_double(layout.tp) : 1);
  const double share = std::ceil(load.sequences / to_double(layout.dp));
  pass.at_once = std::min(share, ranks * at_a_time(basis, load));
  pass.batches = std::ceil(share / pass.at_once);
}

}  // namespace

SecondsOf<Traced> explain_pass(const ServingSystem& system, const ForwardLoad& load, const ForwardPass& pass) {
  const ServeBasis<Traced> basis(Reader<Traced>{}, system);
  return ServingCost<Traced>(basis, pass.layout, pass.slice, pass.placement).step(batch_of(load, pass.at_once)).total();
}

std::optional<Slice> engine_slice(const HardwareSpec& hw, std::int64_t chips) {
  const std::vector<Slice> found = slices_of(hw, chips, 1);
  if (found.empty()) return std::nullopt;
  const auto longest = [](const Slice& s) {
    return s.shape.empty() ? 0 : *std::max_element(s.shape.begin(), s.shape.end());
  };
  return *std::min_element(found.begin(), found.end(),
                           [&](const Slice& a, const Slice& b) { return longest(a) < longest(b); });
}

std::vector<ForwardPass> forward_passes(const ServeBasis<double>& basis, std::int64_t chips, const ForwardLoad& load,
                                        double room, const ServePins& fix, const ServePins& max) {
  const HardwareSpec& hw = *basis.system.hw;
  const std::optional<Slice> slice = engine_slice(hw, chips);
  if (!slice) return {};
  std::vector<ForwardPass> all;
  for (const ServeLayout& layout : serve_layouts(*basis.system.model, hw, chips, fix, max)) {
    const double memory = memory_of(basis, layout, load);
    if (memory > room || placed(hw, *slice, layout).empty()) continue;
    ForwardPass pass{.layout = layout, .chips = chips, .memory_bytes = memory, .slice = *slice};
    pass.weight_bytes = ServeMemory(basis, layout).parts(0, 0).weights;
    pass.placement = best_placement(basis, layout, *slice);
    fill_batches(basis, load, pass);
    const ServingCost<double> cost(basis, layout, *slice, pass.placement);
    pass.seconds = pass.batches * cost.step(batch_of(load, pass.at_once)).total().value();
    all.push_back(std::move(pass));
  }
  std::stable_sort(all.begin(), all.end(), [](const ForwardPass& a, const ForwardPass& b) {
    return a.seconds != b.seconds ? a.seconds < b.seconds : a.memory_bytes < b.memory_bytes;
  });
  std::vector<ForwardPass> front;
  for (const ForwardPass& pass : all) {
    if (front.empty() || pass.memory_bytes < front.back().memory_bytes) front.push_back(pass);
  }
  return front;
}

}  // namespace scalecalc
