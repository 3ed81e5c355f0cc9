// All ways to run a sharded matmul: each mesh axis cuts one of the loops of a product (a dimension of either operand)
// or none, in which case its chips repeat the work. That fixes how the operands must lie before the multiplication and
// how the result comes out of it; the cheapest routes (sharding.h) lead there and on to the layout asked for.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/stop.h"
#include "matmul/matmul_problem.h"
#include "matmul/sharding.h"

namespace scalecalc {

/// Axes that cut each loop of a product, in the order of Product::loops.
using LoopCut = std::vector<AxisList>;

struct ProductPlan {
  LoopCut cut;
  Sharding left_given, left;  ///< before and at the multiplication
  Sharding right_given, right;
  Sharding produced, result;  ///< behind it, and after the last collective
  Route to_left, to_right, to_result;
};

struct MatmulPlan {
  std::vector<ProductPlan> products;
  double compute_s = 0;
  double communication_s = 0;
  std::size_t steps = 0;  ///< slices and collectives
  std::size_t collectives = 0;
  bool detour = false;  ///< moves data over axes that could have been left alone, because that is faster
};

struct SearchCosts {
  CollectiveSeconds collective;
  std::function<double(std::size_t product, const LoopCut& cut)> compute;
};

/// Of one product: every cut, by the fastest routes and, where those use axes that need not take part, by the plain
/// ones too. Of a chain: every cut of the last product with those ways through the others that none beats in both
/// compute and communication. Stopped if asked to end before.
std::vector<MatmulPlan> all_plans(const MatmulProblem& problem, const SearchCosts& costs, const Stop& stop);

// A plan of a sharded matmul in words: "slice X into D_X", "multiply", "all-reduce Z over X".
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
