#include "primitives/plan_text.h"

#include <fmt/format.h>

#include "base/text.h"

namespace scalecalc {

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

}  // namespace scalecalc
