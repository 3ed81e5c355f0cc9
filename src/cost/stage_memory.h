// The memory of many layouts that share what their stages hold: memory_use in parts, to the last bit.
#pragma once

#include <span>
#include <vector>

#include "cost/step.h"

namespace scalecalc {

/// What each stage holds whatever its recipe: weights, gradients, optimizer state and buffers, nothing offloaded.
std::vector<MemoryUse<double>> memory_of_state(const StepInput<double>& in);
/// Puts the same behind what `out` has.
void memory_of_state(const StepInput<double>& in, std::vector<MemoryUse<double>>& out);

/// memory_use of any recipe and offload, `states` being memory_of_state of this sharding.
MemoryUse<double> memory_use_on(const StepInput<double>& in, std::span<const MemoryUse<double>> states);

/// For a layout with several choices of what is offloaded: what each stage holds before, and memory_use of a choice.
std::vector<MemoryUse<double>> memory_before_offload(const StepInput<double>& in,
                                                     std::span<const MemoryUse<double>> states);
MemoryUse<double> memory_use(const StepInput<double>& in, const std::vector<MemoryUse<double>>& before_offload);

/// The part of a sharding, `state` being what its stage holds.
StageBytes state_bytes(const StepInput<double>& in, const StageShape& stage, const MemoryUse<double>& state);

}  // namespace scalecalc
