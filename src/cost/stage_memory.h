// The memory of many layouts that share what their stages hold: memory_use in parts, to the last bit.
#pragma once

#include <span>
#include <vector>

#include "cost/step.h"

namespace scalecalc {

/// What each stage holds whatever its recipe: weights, gradients, optimizer state and buffers, nothing offloaded.
std::vector<MemoryUse<double>> memory_of_state(const StepInput<double>& in);

/// memory_use of any recipe and offload, `states` being memory_of_state of this sharding.
MemoryUse<double> memory_use_on(const StepInput<double>& in, std::span<const MemoryUse<double>> states);

/// With the activations and logits of a recipe: what memory_use takes for layouts that differ in offload alone.
std::vector<MemoryUse<double>> memory_before_offload(const StepInput<double>& in,
                                                     std::span<const MemoryUse<double>> states);

/// The part of a sharding, `state` being what its stage holds.
StageBytes state_bytes(const StepInput<double>& in, const StageShape& stage, const MemoryUse<double>& state);

}  // namespace scalecalc
