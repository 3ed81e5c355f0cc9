// The least that layouts take on a chip, before they are looked at one by one.
#pragma once

#include <array>
#include <cstdint>

#include "cost/step.h"
#include "plan/stack_verdicts.h"

namespace scalecalc {

/// Bytes that activations of one sequence in a microbatch take at least.
struct ActivationFloor {
  std::array<double, kRematCount> kept{};     ///< by all layers of a model, by remat policy
  std::array<double, kRematCount> working{};  ///< beside it while one layer runs again
  double offloaded = 0;                       ///< by a stage whose activations are offloaded, under any policy
};
/// `in` has any microbatch of the inner degrees, the whole model on one stage, and the longest sequences' share of its
/// costs: all of these grow by a line in the sequences.
ActivationFloor activation_floor(const StepInput<double>& in);

/// Weights, gradients and optimizer state of a whole model at least, by what is offloaded of them (kOffloadOptimizer,
/// kOffloadWeights).
using StateFloor = std::array<double, 4>;
/// Lowers it to what `in` takes, of a sharding, the whole model on one stage.
void lower(StateFloor& floor, const StepInput<double>& in);

/// No more than any layout takes on its fullest chip, but for the reserve, of members that differ in their microbatch:
/// the fullest stage takes no less than the mean one, a stage keeps one microbatch at least, and only stages with
/// layers run one.
struct LeastMemory {
  double state = 0;     ///< of all stages
  double sequence = 0;  ///< the same of each in a microbatch
  double stages = 1;

  double of(std::int64_t sequences) const {
    constexpr double kRounding = 1 - 1e-9;
    return kRounding * (state + static_cast<double>(sequences) * sequence) / stages;
  }
};
LeastMemory least_memory(const StateFloor& state, const ActivationFloor& activations, const RecipeVerdict& recipes,
                         std::int64_t pp, double stages_with_layers);

}  // namespace scalecalc
