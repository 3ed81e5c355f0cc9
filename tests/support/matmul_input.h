// Questions about sharded matmuls for tests.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "matmul/matmul.h"

namespace scalecalc::test {

using Sizes = std::vector<std::pair<std::string, std::int64_t>>;

inline MatmulInput matmul_input(const std::string& expression, const Sizes& mesh, const Sizes& dims) {
  MatmulInput out;
  out.expression = expression;
  for (const auto& [name, size] : mesh) out.mesh.axes.push_back({name, size, {size}});
  for (const auto& [name, size] : dims) out.sizes.push_back({name, size, false});
  return out;
}

}  // namespace scalecalc::test
