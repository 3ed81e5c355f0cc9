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

double least_on_stages(const StageStateFloor& state, const PassFloor& pass, const Layout& layout,
                       const std::vector<StageShape>& stages, double logits) {
  const auto r = static_cast<std::size_t>(layout.remat);
  const bool paired = pairs_experts(layout);
  const auto moves = [&](std::uint8_t part) { return (layout.offload & part) != 0; };
  const auto two_of = [](double layers) { return std::min(1.0, 2 / std::max(1.0, layers)); };
  const double sequences = static_cast<double>(layout.micro_batch_seqs);
  double most = 0;
  for (const StageShape& stage : stages) {
    StageStateFloor::Bytes held;
    const auto hold = [&](const StageStateFloor::Bytes& each, double count) {
      held.weights += each.weights * count;
      held.gradients += each.gradients * count;
      held.optimizer += each.optimizer * count;
    };
    double kept = 0, away = 0, working = 0, beside = 0, layers = 0, layers_away = 0;
    for (std::size_t k = 0; k < pass.layers.size(); ++k) {
      if (stage.layers[k] == 0) continue;
      const PassFloor::Layer& layer = pass.layers[k];
      const double count = stage.layers[k], treated = treated_layers(layout, stage, k);
      hold(state.layers[k], count);
      layers += count;
      kept += layer.kept[r] * treated + layer.kept[0] * (count - treated);
      working = std::max(working, layer.working[r]);
      beside = std::max(beside, layer.paired);
      const double offloaded = offloaded_layers(layout, stage, k);
      away += layer.kept[r] * offloaded;
      layers_away += offloaded;
    }
    if (stage.head || stage.embedding) hold(stage.head ? state.head : state.embedding, 1);
    if (moves(kOffloadWeights)) held.weights *= two_of(layers);
    if (moves(kOffloadOptimizer)) held.optimizer *= two_of(layers);
    const double flight =
        in_flight(layout.schedule, layout.pp, layout.vpp, stage.first, layout.grad_accum) / stage.parts;
    double passing = kept * flight + working + (paired ? beside : 0) + (stage.head ? logits : 0);
    if (moves(kOffloadActivations)) passing -= away * std::max(0.0, flight - two_of(layers_away));
    most =
        std::max(most, held.weights + held.gradients + held.optimizer + sequences * passing * (1 + pass.fragmentation));
  }
  constexpr double kRounding = 1 - 1e-9;
  return kRounding * most;
}

}  // namespace scalecalc
