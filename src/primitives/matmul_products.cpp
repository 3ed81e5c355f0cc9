// Which dimensions a product sums over, and how its result lies if the question does not say.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "primitives/matmul_problem.h"

namespace scalecalc {
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
    problem_.assumptions.push_back(
        {fmt::format("{} is kept, not summed over, in the product of {} and {}, which it leads and after which it "
                     "comes back",
                     join_and(names), left.name, right.name),
         "write the result: A * B -> T[...] * W", "as batched matmuls are written"});
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
    problem_.assumptions.push_back(
        {fmt::format("{} in {}, the wider format of its operands", product.result.name, name_of(product.result.dtype)),
         fmt::format("{} {}[...]", name_of(product.result.dtype), product.result.name), ""});
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
