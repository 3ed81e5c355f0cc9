// Which of the book's four cases a product is (chapter 3, "Computation With Sharded Arrays"), axis by axis.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "primitives/matmul.h"

namespace scalecalc {
namespace {

class Cases {
 public:
  Cases(const MatmulProblem& problem, std::size_t product)
      : problem_(problem),
        product_(problem.products[product]),
        left_(problem.left_of(product)),
        right_(problem.right_of(product)) {}

  std::vector<AxisCase> axes() const {
    std::vector<AxisCase> out;
    for (std::uint8_t axis = 0; axis < mesh().axes.size(); ++axis) {
      if (mesh().axes[axis].size > 1) out.push_back(of_axis(axis));
    }
    return out;
  }

 private:
  /// The dimension of an array that an axis cuts.
  struct Cut {
    bool cuts = false;
    std::string dim;
    LoopKind kind = LoopKind::kLeft;
    AxisList all;  ///< all axes that cut this dimension
    bool contracted() const { return cuts && kind == LoopKind::kContracted; }
  };

  const Mesh& mesh() const { return problem_.tables.mesh; }

  Cut cut(const ShardedArray& array, std::uint8_t axis) const {
    for (std::size_t d = 0; d < array.dims.size(); ++d) {
      if ((mask_of(array.layout.cut[d]) >> axis & 1U) == 0) continue;
      const auto loop = std::find_if(product_.loops.begin(), product_.loops.end(),
                                     [&](const Loop& l) { return l.dim == array.dims[d]; });
      return {true, problem_.tables.dims[array.dims[d]].name, loop->kind, array.layout.cut[d]};
    }
    return {};
  }

  AxisCase of_axis(std::uint8_t axis) const {
    const Cut a = cut(left_, axis);
    const Cut b = cut(right_, axis);
    const std::string& x = mesh().axes[axis].name;
    AxisCase out{x, 1, ""};
    if (!a.cuts && !b.cuts) {
      out.reason = "cuts neither operand: its chips hold copies, and may take parts of the work";
    } else if (a.cuts && b.cuts) {
      both(a, b, out);
    } else {
      one(a.cuts ? a : b, a.cuts ? left_ : right_, a.cuts ? right_ : left_, out);
    }
    for (const ShardedArray* array : {&left_, &right_}) {
      if ((array->layout.partial >> axis & 1U) != 0) {
        out.reason = fmt::format("{} holds partial sums over it, which are added before the product", array->name);
      }
    }
    return out;
  }

  void one(const Cut& cut, const ShardedArray& owner, const ShardedArray& other, AxisCase& out) const {
    if (cut.contracted()) {
      out.number = 2;
      out.reason = fmt::format("cuts the contracted {} of {} only: gather {}, or slice {} and add up partial sums",
                               cut.dim, owner.name, owner.name, other.name);
      return;
    }
    out.reason = cut.kind == LoopKind::kBatch ? fmt::format("cuts the batch dimension {} of {}; {} is sliced alike",
                                                            cut.dim, owner.name, other.name)
                                              : fmt::format("cuts {} of {}, and so of the result", cut.dim, owner.name);
  }

  void both(const Cut& a, const Cut& b, AxisCase& out) const {
    if (a.dim == b.dim) {
      out.number = a.contracted() ? 3 : 1;
      out.reason =
          a.contracted()
              ? fmt::format("cuts the contracted {} of both: multiply the parts, then add up partial sums", a.dim)
              : fmt::format("cuts the batch dimension {} of both", a.dim);
      if (a.all != b.all) {
        out.reason += fmt::format("; but {} is cut over {} in {} and over {} in {}: one of them must change", a.dim,
                                  mesh().text(a.all), left_.name, mesh().text(b.all), right_.name);
      }
      return;
    }
    if (a.contracted() || b.contracted()) {
      const bool left = a.contracted();
      out.number = 2;
      out.reason = fmt::format(
          "cuts the contracted {} of {}, but {} of {}: one chip would hold parts that do not meet; "
          "gather {} over it, or exchange",
          left ? a.dim : b.dim, (left ? left_ : right_).name, left ? b.dim : a.dim, (left ? right_ : left_).name,
          (left ? left_ : right_).name);
      return;
    }
    out.number = 4;
    out.reason =
        fmt::format("cuts {} of {} and {} of {}, which the result cannot both keep: gather one operand over it", a.dim,
                    left_.name, b.dim, right_.name);
  }

  const MatmulProblem& problem_;
  const Product& product_;
  const ShardedArray& left_;
  const ShardedArray& right_;
};

/// The case that needs most: a conflict before partial sums before a gather.
AxisCase worst(const std::vector<AxisCase>& axes) {
  AxisCase out{"", 1, "no axis cuts a contracted dimension: multiply, nothing is sent"};
  for (const AxisCase& axis : axes) {
    if (axis.number > out.number) out = axis;
  }
  return out;
}

}  // namespace

ProductCase case_of(const MatmulProblem& problem, std::size_t at) {
  const Product& product = problem.products[at];
  const ShardingTables& tables = problem.tables;
  ProductCase out;
  out.notation = fmt::format("{} * {}", tables.notation(problem.left_of(at)), tables.notation(problem.right_of(at)));
  std::vector<std::string> results;
  for (const Sharding& asked : product.asked) results.push_back(tables.notation(product.result, asked));
  if (results.empty()) results.push_back(tables.notation(product.result));
  out.notation += " -> " + join(results, " or ");
  out.axes = Cases(problem, at).axes();
  out.whole = worst(out.axes);
  for (const std::size_t dim : product.dims_of(LoopKind::kContracted)) out.contracted.push_back(tables.dims[dim].name);
  out.flops = product_flops(problem, at);
  return out;
}

}  // namespace scalecalc
