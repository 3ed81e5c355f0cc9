#include "primitives/matmul_search.h"

#include <algorithm>
#include <map>
#include <memory>

namespace scalecalc {
namespace {

constexpr double kSame = 1e-9;

using CutKey = std::vector<AxisMask>;

/// Plans of one kind compete: by the loops' cuts, by where the result lies, and by whether they make detours.
struct Kind {
  CutKey cut;
  Sharding result;
  bool detour = false;
  friend auto operator<=>(const Kind&, const Kind&) = default;
};
using Kept = std::map<Kind, std::vector<MatmulPlan>>;

AxisMask moved_axes(const Route& route) {
  AxisMask out = 0;
  for (const ReshardStep& step : route.steps) out |= step.axes;
  return out;
}

std::size_t collectives_of(const Route& route) {
  return static_cast<std::size_t>(std::count_if(route.steps.begin(), route.steps.end(),
                                                [](const ReshardStep& s) { return s.kind != StepKind::kSlice; }));
}

/// How an array of these dimensions must lie so that each chip has its part of the loops.
Sharding needed(const std::vector<std::size_t>& dims, const Product& product, const LoopCut& cut) {
  Sharding out;
  for (const std::size_t dim : dims) {
    const auto loop = std::find_if(product.loops.begin(), product.loops.end(),
                                   [&](const Loop& candidate) { return candidate.dim == dim; });
    out.cut.push_back(cut[static_cast<std::size_t>(loop - product.loops.begin())]);
  }
  return out;
}

AxisMask summed_axes(const Product& product, const LoopCut& cut) {
  AxisMask out = 0;
  for (std::size_t i = 0; i < cut.size(); ++i) {
    if (product.loops[i].kind == LoopKind::kContracted) out |= mask_of(cut[i]);
  }
  return out;
}

/// The same cut whatever the order of axes within a loop.
CutKey key_of(const LoopCut& cut) {
  CutKey out;
  for (const AxisList& list : cut) out.push_back(mask_of(list));
  return out;
}

double time_of(const MatmulPlan& plan) { return std::max(plan.compute_s, plan.communication_s); }

/// Better by the time, then by communication, then by the number of steps.
bool better(const MatmulPlan& a, const MatmulPlan& b) {
  const auto differ = [](double x, double y) { return std::abs(x - y) > kSame * std::max(x, y); };
  if (differ(time_of(a), time_of(b))) return time_of(a) < time_of(b);
  if (differ(a.communication_s, b.communication_s)) return a.communication_s < b.communication_s;
  return a.steps < b.steps;
}

/// No worse in compute, communication and, if those are equal, steps.
bool covers(const MatmulPlan& a, const MatmulPlan& b) {
  const auto no_worse = [](double x, double y) { return x <= y * (1 + kSame); };
  if (!no_worse(a.compute_s, b.compute_s) || !no_worse(a.communication_s, b.communication_s)) return false;
  const bool equal = no_worse(b.compute_s, a.compute_s) && no_worse(b.communication_s, a.communication_s);
  return !equal || a.steps <= b.steps;
}

void keep_undominated(std::vector<MatmulPlan>& plans, MatmulPlan plan) {
  if (std::any_of(plans.begin(), plans.end(), [&](const MatmulPlan& known) { return covers(known, plan); })) return;
  std::erase_if(plans, [&](const MatmulPlan& known) { return covers(plan, known); });
  plans.push_back(std::move(plan));
}

class Search {
 public:
  Search(const MatmulProblem& problem, const SearchCosts& costs) : problem_(problem), costs_(costs) {
    const AxisMask all = (AxisMask{1} << mesh().axes.size()) - 1;
    for (const ShardedArray& operand : problem.operands) {
      operands_.push_back(
          std::make_unique<ShardingGraph>(problem.tables, operand, operand.layout.partial, costs_.collective));
    }
    for (const Product& product : problem.products) {
      results_.push_back(std::make_unique<ShardingGraph>(problem.tables, product.result, product.contracts() ? all : 0,
                                                         costs_.collective));
    }
    for (const MeshAxis& axis : mesh().axes) {
      if (axis.size > 1) usable_ |= AxisMask{1} << (&axis - mesh().axes.data());
    }
  }

  std::vector<MatmulPlan> run() {
    std::vector<MatmulPlan> plans(1);
    for (std::size_t p = 0; p < problem_.products.size(); ++p) plans = extend(p, plans);
    return plans;
  }

 private:
  const Mesh& mesh() const { return problem_.tables.mesh; }

  ShardingGraph& left_graph(std::size_t p) { return p == 0 ? *operands_.front() : *results_[p - 1]; }
  const Sharding& left_layout(std::size_t p, const MatmulPlan& before) const {
    return p == 0 ? problem_.operands.front().layout : before.products.back().result;
  }

  std::vector<MatmulPlan> extend(std::size_t p, const std::vector<MatmulPlan>& before) {
    const Product& product = problem_.products[p];
    Kept kept;
    assign_axes(usable_, product.loops.size(), [&](const LoopCut& cut) {
      if (!divides(product, cut)) return;
      for (const MatmulPlan& plan : before) {
        for (const bool plain : {false, true}) add(p, cut, plan, plain, kept);
      }
    });
    std::vector<MatmulPlan> out;
    for (auto& [kind, plans] : kept) std::move(plans.begin(), plans.end(), std::back_inserter(out));
    return out;
  }

  bool divides(const Product& product, const LoopCut& cut) const {
    for (std::size_t i = 0; i < cut.size(); ++i) {
      if (problem_.tables.dims[product.loops[i].dim].size % mesh().ways(cut[i]) != 0) return false;
    }
    return true;
  }

  void add(std::size_t p, const LoopCut& cut, const MatmulPlan& before, bool plain, Kept& kept) {
    const std::optional<ProductPlan> found = plan_product(p, cut, left_layout(p, before), plain);
    if (!found) return;
    MatmulPlan plan = before;
    plan.compute_s += costs_.compute(p, cut);
    for (const Route* route : {&found->to_left, &found->to_right, &found->to_result}) {
      plan.communication_s += route->seconds;
      plan.steps += route->steps.size();
      plan.collectives += collectives_of(*route);
    }
    plan.detour = plan.detour || detours(*found);
    if (plain && plan.detour) return;  // then plain is what the fastest routes are, or there is no plain way
    plan.products.push_back(*found);
    const bool last = p + 1 == problem_.products.size();
    if (last && problem_.products.size() == 1) {
      // Every cut is shown, with and without detours.
      std::vector<MatmulPlan>& own = kept[{key_of(cut), {}, plan.detour}];
      if (!own.empty() && !better(plan, own.front())) return;
      own.assign(1, std::move(plan));
    } else {
      keep_undominated(kept[{last ? key_of(cut) : CutKey{}, found->result, false}], std::move(plan));
    }
  }

  AxisMask unneeded(const Route& route, const Sharding& from, const Sharding& to) const {
    return moved_axes(route) & unmoved(from, to, mesh().axes.size());
  }
  bool detours(const ProductPlan& plan) const {
    return unneeded(plan.to_left, plan.left_given, plan.left) != 0 ||
           unneeded(plan.to_right, plan.right_given, plan.right) != 0 ||
           unneeded(plan.to_result, plan.produced, plan.result) != 0;
  }

  std::optional<Route> find(ShardingGraph& graph, const Sharding& from, const Sharding& to, bool plain) const {
    std::optional<Route> fastest = graph.route(from, to);
    if (!plain || !fastest || unneeded(*fastest, from, to) == 0) return fastest;
    return graph.route(from, to, unmoved(from, to, mesh().axes.size()));
  }

  std::optional<ProductPlan> plan_product(std::size_t p, const LoopCut& cut, const Sharding& left, bool plain) {
    const Product& product = problem_.products[p];
    ProductPlan out{.cut = cut, .left_given = left, .right_given = problem_.right_of(p).layout};
    out.left = needed(problem_.left_of(p).dims, product, cut);
    out.right = needed(problem_.right_of(p).dims, product, cut);
    out.produced = needed(product.result.dims, product, cut);
    out.produced.partial = summed_axes(product, cut);
    std::optional<Route> to_left = find(left_graph(p), left, out.left, plain);
    if (!to_left) return std::nullopt;
    std::optional<Route> to_right = find(*operands_[p + 1], out.right_given, out.right, plain);
    if (!to_right) return std::nullopt;
    out.to_left = std::move(*to_left);
    out.to_right = std::move(*to_right);
    if (product.asked.empty()) {
      out.result = out.produced;
      return out;
    }
    std::optional<Route> to_result;
    for (const Sharding& asked : product.asked) {
      std::optional<Route> route = find(*results_[p], out.produced, asked, plain);
      if (!route || (to_result && route->seconds >= to_result->seconds * (1 - kSame))) continue;
      to_result = std::move(route);
      out.result = asked;
    }
    if (!to_result) return std::nullopt;
    out.to_result = std::move(*to_result);
    return out;
  }

  const MatmulProblem& problem_;
  const SearchCosts& costs_;
  std::vector<std::unique_ptr<ShardingGraph>> operands_;
  std::vector<std::unique_ptr<ShardingGraph>> results_;
  AxisMask usable_ = 0;
};

}  // namespace

std::vector<MatmulPlan> all_plans(const MatmulProblem& problem, const SearchCosts& costs) {
  return Search(problem, costs).run();
}

}  // namespace scalecalc
