// Enumerates all ways to run a sharded matmul on a mesh, for `scalecalc matmul`.
#include "matmul/matmul_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "base/progress.h"
#include "base/text.h"
#include "matmul/matmul_problem.h"

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
  Search(const MatmulProblem& problem, const SearchCosts& costs, const Stop& stop)
      : problem_(problem), costs_(costs), stop_(stop) {
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
    Progress products("products", problem_.products.size());
    for (std::size_t p = 0; p < problem_.products.size(); ++p) {
      plans = extend(p, plans);
      products.add();
    }
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
        if (should_stop(stop_)) throw Stopped();
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
      own.clear();
      own.push_back(std::move(plan));
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
  const Stop& stop_;
  std::vector<std::unique_ptr<ShardingGraph>> operands_;
  std::vector<std::unique_ptr<ShardingGraph>> results_;
  AxisMask usable_ = 0;
};

}  // namespace

std::vector<MatmulPlan> all_plans(const MatmulProblem& problem, const SearchCosts& costs, const Stop& stop) {
  return Search(problem, costs, stop).run();
}

std::vector<std::string> PlanText::steps(const MatmulPlan& plan) const {
  std::vector<std::string> out;
  const auto add = [&](const ShardedArray& array, const Route& route) {
    for (const ReshardStep& own : route.steps) out.push_back(step(array, own));
  };
  for (std::size_t p = 0; p < plan.products.size(); ++p) {
    const ProductPlan& product = plan.products[p];
    const ShardedArray& left = problem_.left_of(p);
    const ShardedArray& right = problem_.right_of(p);
    add(left, product.to_left);
    add(right, product.to_right);
    const bool chain = plan.products.size() > 1;
    out.push_back(chain ? fmt::format("multiply {} by {}", left.name, right.name) : "multiply");
    add(problem_.products[p].result, product.to_result);
  }
  return out;
}

std::string PlanText::step(const ShardedArray& array, const ReshardStep& done) const {
  const Mesh& mesh = problem_.tables.mesh;
  std::vector<std::string> into;
  std::vector<std::string> from;
  for (std::size_t d = 0; d < array.dims.size(); ++d) {
    const AxisList& before = done.from.cut[d];
    const AxisList& after = done.to.cut[d];
    const std::string& dim = problem_.tables.dims[array.dims[d]].name;
    if (after.size() > before.size()) into.push_back(tail(dim, after, before.size()));
    if (after.size() < before.size()) from.push_back(tail(dim, before, after.size()));
  }
  std::string out = fmt::format("{} {}", name_of(done.kind), array.name);
  if (done.kind != StepKind::kSlice) out += " over " + mesh.text(mesh.list(done.axes));
  if (done.kind == StepKind::kAllToAll) out += " from " + join(from, ", ");
  if (!into.empty()) out += " into " + join(into, ", ");
  return out;
}

std::string PlanText::tail(const std::string& dim, const AxisList& axes, std::size_t first) const {
  const AxisList list(axes.begin() + static_cast<std::ptrdiff_t>(first), axes.end());
  return dim + "_" + problem_.tables.mesh.text(list);
}

// Which dimensions a product sums over, and how its result lies if the question does not say.

namespace {

bool has(const std::vector<std::size_t>& dims, std::size_t dim) {
  return std::find(dims.begin(), dims.end(), dim) != dims.end();
}

class Products {
 public:
  Products(const NotedExpression& noted, const std::vector<std::optional<ShardedArray>>& results,
           MatmulProblem& problem, std::vector<Diagnostic>& problems)
      : noted_(noted), results_(results), problem_(problem), problems_(problems) {}

  void all() {
    for (std::size_t i = 0; i < results_.size() && problems_.empty(); ++i) one(i);
  }

 private:
  const std::string& name(std::size_t dim) const { return problem_.tables.dims[dim].name; }
  bool last(std::size_t i) const { return i + 1 == results_.size(); }

  void one(std::size_t i) {
    const ShardedArray& left = problem_.left_of(i);
    const ShardedArray& right = problem_.right_of(i);
    Product product;
    product.written = results_[i].has_value();
    const std::vector<std::size_t> batch = batch_dims(i, left, right);
    const auto add = [&](const ShardedArray& array, LoopKind kind, auto&& belongs) {
      for (const std::size_t d : array.dims) {
        if (belongs(d)) product.loops.push_back({d, kind});
      }
    };
    add(left, LoopKind::kBatch, [&](std::size_t d) { return has(batch, d); });
    add(left, LoopKind::kLeft, [&](std::size_t d) { return !has(right.dims, d); });
    add(left, LoopKind::kContracted, [&](std::size_t d) { return has(right.dims, d) && !has(batch, d); });
    add(right, LoopKind::kRight, [&](std::size_t d) { return !has(left.dims, d); });
    product.result = product.written ? *results_[i] : unwritten_result(i, product);
    if (product.written) check_result(i, product);
    if (!problems_.empty()) return;
    result_format(i, left, right, product);
    result_layouts(i, left, right, product);
    problem_.products.push_back(std::move(product));
  }

  /// Shared dimensions that are not summed over.
  std::vector<std::size_t> batch_dims(std::size_t i, const ShardedArray& left, const ShardedArray& right) {
    std::vector<std::size_t> out;
    if (results_[i]) {
      for (const std::size_t d : left.dims) {
        if (has(right.dims, d) && has(results_[i]->dims, d)) out.push_back(d);
      }
      return out;
    }
    // A result inside a chain that is not written: dimensions that lead both operands and come back later. A weight's
    // d_model comes back too, but does not lead it.
    for (std::size_t d = 0; d < std::min(left.dims.size(), right.dims.size()); ++d) {
      if (left.dims[d] != right.dims[d] || !comes_back(i, left.dims[d])) break;
      out.push_back(left.dims[d]);
    }
    if (out.empty()) return out;
    std::vector<std::string> names;
    for (const std::size_t d : out) names.push_back(name(d));
    problem_.assumptions.push_back(Assumption{
        fmt::format("{} is kept, not summed over, in the product of {} and {}, which it leads and after which it "
                    "comes back",
                    join_and(names), left.name, right.name),
        "write the result: A * B -> T[...] * W", "as batched matmuls are written"}
                                       .as("kept")
                                       .is(join(names, ",")));
    return out;
  }

  /// In a later operand, and in the next result that is written.
  bool comes_back(std::size_t i, std::size_t dim) const {
    if (last(i)) return false;
    for (std::size_t j = i + 1; j < results_.size(); ++j) {
      if (!has(problem_.right_of(j).dims, dim)) continue;
      const auto written = std::find_if(results_.begin() + static_cast<std::ptrdiff_t>(j), results_.end(),
                                        [](const auto& result) { return result.has_value(); });
      return written == results_.end() || has((*written)->dims, dim);
    }
    return false;
  }

  ShardedArray unwritten_result(std::size_t i, const Product& product) const {
    ShardedArray out;
    std::vector<std::string> taken;
    for (const ShardedArray& operand : problem_.operands) taken.push_back(operand.name);
    for (const auto& result : results_) taken.push_back(result ? result->name : "");
    for (const Product& earlier : problem_.products) taken.push_back(earlier.result.name);
    out.name = last(i) ? std::string(1, static_cast<char>('A' + static_cast<char>(problem_.operands.size() % 26)))
                       : fmt::format("T{}", i + 1);
    while (std::find(taken.begin(), taken.end(), out.name) != taken.end()) out.name += "2";
    for (const LoopKind kind : {LoopKind::kBatch, LoopKind::kLeft, LoopKind::kRight}) {
      for (const std::size_t d : product.dims_of(kind)) out.dims.push_back(d);
    }
    return out;
  }

  void check_result(std::size_t i, const Product& product) {
    const NotedArray& noted = *noted_.results[i];
    const ShardedArray& left = problem_.left_of(i);
    const ShardedArray& right = problem_.right_of(i);
    for (std::size_t d = 0; d < product.result.dims.size(); ++d) {
      const std::size_t dim = product.result.dims[d];
      if (has(left.dims, dim) || has(right.dims, dim)) continue;
      complain(noted.dims[d].name,
               fmt::format("dimension {} of {} is in neither {} nor {}", name(dim), product.result.name, left.name,
                           right.name),
               "a result has dimensions of its operands only");
    }
    for (const Loop& loop : product.loops) {
      if (loop.kind == LoopKind::kContracted || has(product.result.dims, loop.dim)) continue;
      const ShardedArray& only = loop.kind == LoopKind::kLeft ? left : right;
      complain(noted.name.text.empty() ? NotedWord{"[", noted.name.at} : noted.name,
               fmt::format("dimension {} of {} is missing in {}", name(loop.dim), only.name, product.result.name),
               fmt::format("only dimensions that both operands share are summed over: write {} into the result",
                           name(loop.dim)));
    }
    if (product.result.layout.partial != 0 && !product.contracts()) {
      complain(noted.partial.front(),
               fmt::format("{} holds no partial sums: this product sums over nothing", product.result.name),
               "leave {U_...} out");
    }
  }

  void result_format(std::size_t i, const ShardedArray& left, const ShardedArray& right, Product& product) {
    if (noted_.results[i] && noted_.results[i]->dtype) return;
    const bool right_is_wider = bytes_per_element(left.dtype) < bytes_per_element(right.dtype);
    product.result.dtype = right_is_wider ? right.dtype : left.dtype;
    if (product.result.dtype == DType::kBf16 && left.dtype == right.dtype) return;
    problem_.assumptions.push_back(Assumption{
        fmt::format("{} in {}, the wider format of its operands", product.result.name, name_of(product.result.dtype)),
        fmt::format("{} {}[...]", name_of(product.result.dtype), product.result.name), ""}
                                       .as("dtype." + product.result.name)
                                       .is(name_of(product.result.dtype)));
  }

  void result_layouts(std::size_t i, const ShardedArray& left, const ShardedArray& right, Product& product) {
    if (product.written) {
      product.asked = {product.result.layout};
      return;
    }
    std::vector<Sharding> inherited = inherited_layouts(product, left, right);
    product.result.layout = inherited.front();
    if (last(i)) product.asked = std::move(inherited);
  }

  void complain(const NotedWord& word, std::string message, std::string hint) {
    problems_.push_back(notation_problem(noted_.text, word, std::move(message), std::move(hint)));
  }

  const NotedExpression& noted_;
  const std::vector<std::optional<ShardedArray>>& results_;
  MatmulProblem& problem_;
  std::vector<Diagnostic>& problems_;
};

AxisList cut_of(const ShardedArray& array, std::size_t dim) {
  const auto at = std::find(array.dims.begin(), array.dims.end(), dim);
  if (at == array.dims.end()) return {};
  return array.layout.cut[static_cast<std::size_t>(at - array.dims.begin())];
}

/// The dimensions of the result as one operand cuts them.
Sharding seen_from(const Product& product, const ShardedArray& operand) {
  Sharding out;
  for (const std::size_t d : product.result.dims) out.cut.push_back(cut_of(operand, d));
  return out;
}

/// `cut` without the axes of `gone`.
Sharding without(Sharding layout, AxisMask gone) {
  for (AxisList& list : layout.cut) {
    std::erase_if(list, [&](std::uint8_t axis) { return (gone >> axis & 1U) != 0; });
  }
  return layout;
}

}  // namespace

void understand_products(const NotedExpression& noted, const std::vector<std::optional<ShardedArray>>& results,
                         MatmulProblem& problem, std::vector<Diagnostic>& problems) {
  Products(noted, results, problem, problems).all();
}

std::vector<Sharding> inherited_layouts(const Product& product, const ShardedArray& left, const ShardedArray& right) {
  const Sharding of_left = seen_from(product, left);
  const Sharding of_right = seen_from(product, right);
  const AxisMask contested = of_left.axes() & of_right.axes();
  std::vector<Sharding> out;
  // Every subset of the contested axes goes to the right operand's dimensions, the rest to the left's.
  for (AxisMask to_right = contested;; to_right = (to_right - 1) & contested) {
    const Sharding a = without(of_left, to_right);
    const Sharding b = without(of_right, contested & ~to_right);
    for (const bool left_first : {false, true}) {
      Sharding layout;
      for (std::size_t d = 0; d < a.cut.size(); ++d) {
        const bool take_left = !a.cut[d].empty() && (left_first || b.cut[d].empty());
        layout.cut.push_back(take_left ? a.cut[d] : b.cut[d]);
      }
      if (std::find(out.begin(), out.end(), layout) == out.end()) out.push_back(layout);
    }
    if (to_right == 0) break;
  }
  std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace scalecalc
