// Bounds the memory of a member's stages from below under one recomputation policy, for the search.
#include "plan/stage_floor.h"

#include <algorithm>
#include <limits>

#include "cost/stage_parameters.h"

namespace scalecalc {

PassFloor pass_floor(const StepInput<double>& in) {
  const NetworkCost<double>& net = *in.network;
  const double sequences = static_cast<double>(in.layout.micro_batch_seqs);
  const double share = std::min(1.0, in.workload->memory.layer_share);
  PassFloor out;
  for (const LayerCost<double>& kind : net.kinds) {
    PassFloor::Layer& layer = out.layers.emplace_back();
    for (std::size_t r = 0; r < kRematCount; ++r) {
      layer.kept[r] = kind.saved[r].value() / sequences;
      layer.working[r] = (kind.saved[0] - kind.saved[r] + kind.workspace).value() * share / sequences;
    }
    layer.paired = kind.saved[0].value() * share / sequences;
  }
  const double modules = static_cast<double>(in.model->mtp_layers);
  for (std::size_t l = 0; l < kLossCount; ++l) {
    out.logits[l] =
        (net.logits[l] + net.head.saved[0] * (1 + modules) + net.mtp.saved[0] * modules).value() / sequences;
  }
  out.least_logits = *std::min_element(out.logits.begin(), out.logits.end());
  out.fragmentation = std::max(0.0, in.workload->memory.fragmentation.value);
  return out;
}

StageStateFloor no_state(std::size_t kinds) {
  constexpr double kAny = std::numeric_limits<double>::infinity();
  const StageStateFloor::Bytes any{kAny, kAny, kAny};
  return {.layers = std::vector(kinds, any), .embedding = any, .head = any};
}

void lower(StageStateFloor& floor, const StepInput<double>& in, std::int32_t parts) {
  const auto lower_to = [&](StageStateFloor::Bytes& least, StageShape of) {
    of.parts = parts;
    const MemoryUse<double> use = state_of(in, of);
    least.weights = std::min(least.weights, use.weights.value());
    least.gradients = std::min(least.gradients, use.gradients.value());
    least.optimizer = std::min(least.optimizer, use.optimizer.value());
  };
  for (std::size_t k = 0; k < floor.layers.size(); ++k) {
    StageShape layer;
    layer.layers[k] = 1;
    lower_to(floor.layers[k], layer);
  }
  lower_to(floor.embedding, {.embedding = true});
  lower_to(floor.head, {.head = true});
}

void stage_floors(const StageStateFloor& state, const Layout& member, const std::vector<StageShape>& stages,
                  std::vector<StageFloor>& out) {
  out.clear();
  for (const StageShape& stage : stages) {
    StageFloor& floor = out.emplace_back();
    const auto hold = [&](const StageStateFloor::Bytes& each, double count) {
      floor.held.weights += each.weights * count;
      floor.held.gradients += each.gradients * count;
      floor.held.optimizer += each.optimizer * count;
    };
    for (std::size_t k = 0; k < state.layers.size(); ++k) {
      if (stage.layers[k] == 0) continue;
      const double count = stage.layers[k];
      hold(state.layers[k], count);
      floor.layers += count;
    }
    if (stage.head || stage.embedding) hold(stage.head ? state.head : state.embedding, 1);
    floor.flight = in_flight(member.schedule, member.pp, member.vpp, stage.first, member.grad_accum) / stage.parts;
    floor.shape = &stage;
  }
}

double least_on_stages(const std::vector<StageFloor>& stages, const PassFloor& pass, const Layout& layout,
                       double logits, double enough) {
  const auto r = static_cast<std::size_t>(layout.remat);
  const bool paired = pairs_experts(layout);
  const auto moves = [&](std::uint8_t part) { return (layout.offload & part) != 0; };
  const bool moves_activations = moves(kOffloadActivations);
  const auto two_of = [](double layers) { return std::min(1.0, 2 / std::max(1.0, layers)); };
  const double sequences = static_cast<double>(layout.micro_batch_seqs);
  constexpr double kRounding = 1 - 1e-9;
  double most = 0;
  for (const StageFloor& floor : stages) {
    const StageShape& stage = *floor.shape;
    double kept = 0, away = 0, working = 0, beside = 0, layers_away = 0;
    for (std::size_t k = 0; k < pass.layers.size(); ++k) {
      if (stage.layers[k] == 0) continue;
      const PassFloor::Layer& layer = pass.layers[k];
      const double count = stage.layers[k];
      const double treated = layout.remat_layers == 0 ? count : treated_layers(layout, stage, k);
      kept += layer.kept[r] * treated + layer.kept[0] * (count - treated);
      working = std::max(working, layer.working[r]);
      beside = std::max(beside, layer.paired);
      if (!moves_activations) continue;
      const double offloaded = offloaded_layers(layout, stage, k);
      away += layer.kept[r] * offloaded;
      layers_away += offloaded;
    }
    double weights = floor.held.weights, optimizer = floor.held.optimizer;
    if (moves(kOffloadWeights)) weights *= two_of(floor.layers);
    if (moves(kOffloadOptimizer)) optimizer *= two_of(floor.layers);
    double passing = kept * floor.flight + working + (paired ? beside : 0) + (stage.head ? logits : 0);
    if (moves_activations) passing -= away * std::max(0.0, floor.flight - two_of(layers_away));
    most = std::max(most, weights + floor.held.gradients + optimizer + sequences * passing * (1 + pass.fragmentation));
    if (kRounding * most > enough) break;
  }
  return kRounding * most;
}

}  // namespace scalecalc
