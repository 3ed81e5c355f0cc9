// How a software stack runs a step, where stacks differ from one another: the `runtime:` block of stacks/<name>.yaml.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "config/fields.h"

namespace scalecalc {

/// How layers are dealt to pipeline stages (cost/pipeline.h).
enum class StageSplit : std::uint8_t { kEven, kBalanced };
inline constexpr std::array<std::string_view, 2> kStageSplitNames{"even", "balanced"};

/// The defaults belong to no stack.
struct StackRuntime {
  std::string source;  ///< of all that follows
  StageSplit stages = StageSplit::kEven;
  std::string
      gradient_overlap_since;  ///< "2023-12": before it gradients were reduced after the backward; empty: always
  std::map<std::string, double> reduced_bytes;  ///< a gradient that data ranks sum, by precision; absent: fp32
  bool compiled = false;                        ///< a step is one program: the host launches no kernel by itself
  bool quantized_gathers = false;               ///< tensor ranks gather what 8-bit matmuls read in 8 bits
};

/// Reads a `runtime:` block; problems are collected.
StackRuntime read_stack_runtime(const ConfigNode& node, Problems& problems);

}  // namespace scalecalc
