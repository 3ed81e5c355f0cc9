// The software that is assumed to train a model where nobody names one.
#pragma once

#include <cstdint>
#include <string>

#include "spec/hardware_spec.h"
#include "spec/model_spec.h"

namespace scalecalc {

/// Weights, gradients and Adam's moments in fp32, what FSDP2 shards of a parameter.
inline constexpr double kStateBytes = 16;
/// Of the memory of one host's chips, what those may take, and of one chip's what the layers' inputs of a sequence.
inline constexpr double kSmallShare = 0.5;

/// Tokens of a sequence where nobody says: as the model was trained, else its longest, at most 8,192.
std::int64_t usual_seq(const ModelSpec& model);

/// The family's stack; its `small_model_stack` for a dense model that plain sharding trains, without a pipeline and
/// without cutting sequences: both of the above fit. docs/stacks.md.
std::string usual_stack(const HardwareSpec& hw, const ModelSpec& model, std::int64_t seq);

}  // namespace scalecalc
