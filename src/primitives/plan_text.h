// A plan of a sharded matmul in words: "slice X into D_X", "multiply", "all-reduce Z over X".
#pragma once

#include <string>
#include <vector>

#include "primitives/matmul_search.h"

namespace scalecalc {

class PlanText {
 public:
  /// Keeps a reference to `problem`.
  explicit PlanText(const MatmulProblem& problem) : problem_(problem) {}

  std::vector<std::string> steps(const MatmulPlan& plan) const;
  /// "reduce-scatter C over Y into K_Y".
  std::string step(const ShardedArray& array, const ReshardStep& done) const;

 private:
  std::string tail(const std::string& dim, const AxisList& axes, std::size_t first) const;

  const MatmulProblem& problem_;
};

}  // namespace scalecalc
