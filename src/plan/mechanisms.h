// What a layout uses, counted: each mechanism is a flag its launcher must be given, a thing that can fail and a thing a
// reader must know. Of plans about as fast the one that uses least is the one to run.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "cost/layout.h"

namespace scalecalc {

struct Mechanism {
  std::string_view name;  ///< "tensor", "zero-bubble"
  int weight = 1;         ///< what it adds to the complexity
  bool (*used)(const Layout&) = nullptr;
};

/// Dimensions above one, then what else makes a layout special. Tensor ranks' sequence sharding, ZeRO stages and remat
/// of all layers by the usual policies are everyday and count nothing.
std::span<const Mechanism> mechanisms();

std::vector<std::string_view> mechanisms_of(const Layout& layout);

/// The sum of the weights. It does not fall when the open parts of a layout (data ranks, pipeline, sharding, remat,
/// offload) are filled in, so that of a family is a lower bound.
int complexity(const Layout& layout);

}  // namespace scalecalc
