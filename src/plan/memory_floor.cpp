// Bounds the memory of a member's layouts from below, so that the search can skip those that cannot fit.
#include "plan/memory_floor.h"

#include <algorithm>
#include <limits>

namespace scalecalc {

ActivationFloor activation_floor(const StepInput<double>& in) {
  const StageShape& model = in.stages->front();
  const double sequences = static_cast<double>(in.layout.micro_batch_seqs);
  const double share = std::min(1.0, in.workload->memory.layer_share);
  ActivationFloor out;
  double offloaded = std::numeric_limits<double>::infinity();
  for (std::size_t r = 0; r < kRematCount; ++r) {
    double working = std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < in.network->kinds.size(); ++k) {
      if (model.layers[k] == 0) continue;
      const LayerCost<double>& kind = in.network->kinds[k];
      out.kept[r] += kind.saved[r].value() * model.layers[k] / sequences;
      const double again = (kind.saved[0] - kind.saved[r] + kind.workspace).value() * share;
      working = std::min(working, again);
      // What one layer keeps is on its way to the host.
      offloaded = std::min(offloaded, kind.saved[r].value() + again);
    }
    out.working[r] = working / sequences;
  }
  out.offloaded = offloaded / sequences;
  return out;
}

void lower(StateFloor& floor, const StepInput<double>& in) {
  const MemoryUse<double> use = state_of(in, in.stages->front());
  for (std::size_t offload = 0; offload < floor.size(); ++offload) {
    double bytes = use.gradients.value();
    if ((offload & kOffloadOptimizer) == 0) bytes += use.optimizer.value();
    if ((offload & kOffloadWeights) == 0) bytes += use.weights.value();
    floor[offload] = std::min(floor[offload], bytes);
  }
}

LeastMemory least_memory(const StateFloor& state, const ActivationFloor& activations, const RecipeVerdict& recipes,
                         std::int64_t pp, double stages_with_layers) {
  double least = std::numeric_limits<double>::infinity();
  if ((recipes.any_offload & kOffloadActivations) != 0) least = stages_with_layers * activations.offloaded;
  for (std::size_t r = 0; r < kRematCount; ++r) {
    if (!recipes.remats[r]) continue;
    least = std::min(least, activations.kept[r] + stages_with_layers * activations.working[r]);
  }
  return {state[recipes.any_offload & 3], least, static_cast<double>(pp)};
}

}  // namespace scalecalc
