// A sharded matmul understood: the notation with the sizes of its dimensions and the mesh.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/explained.h"
#include "matmul/sharding.h"
#include "spec/dtype.h"

namespace scalecalc {

// The scaling book's named-axis notation (chapter 3) as text:
//
//   A[I_X, J_Y] * B[J_Y, K] -> C[I_X, K]
//
// I_X: dimension I is cut over mesh axis X; I_XY, I_{XY} or I_{X,Y}: over X and then Y; {U_X} behind an array: it holds
// partial sums that still have to be added over X. A format stands before the array: bf16[I, J], int8 A[I, J] or
// A: int8[I, J]. A chain A * B * W -> C is read from the left; a result may be written after any product. The result
// of the last one may be left out. A single array and an arrow, A[I_X, J] -> A[I, J_X], lies otherwise afterwards. "·",
// "×" and "@" stand for *, "→" for ->.
//
// Only syntax here; what the names mean is read further on.

/// A piece of the expression and the byte at which it starts.
struct NotedWord {
  std::string text;
  std::size_t at = 0;
};

struct NotedDimension {
  NotedWord name;
  std::vector<NotedWord> axes;  ///< as written: "XY" may be one axis or two, only the mesh knows
};

struct NotedArray {
  NotedWord name;  ///< empty if only a format stands there
  std::optional<DType> dtype;
  std::vector<NotedDimension> dims;
  std::vector<NotedWord> partial;  ///< axes of {U_X}
};

struct NotedExpression {
  std::string text;
  std::vector<NotedArray> operands;
  std::vector<std::optional<NotedArray>> results;  ///< behind each product; one shorter than `operands`
  std::optional<NotedArray> target;                ///< of a single array, "A[I_X, J] -> A[I, J_X]": as it is to lie
};

/// UserError with the place, what stands there and what was expected.
NotedExpression parse_notation(std::string_view text);

/// A complaint about a part of the expression, with a caret under it.
Diagnostic notation_problem(const std::string& expression, std::size_t at, std::size_t length, std::string message,
                            std::string hint = "");
inline Diagnostic notation_problem(const std::string& expression, const NotedWord& word, std::string message,
                                   std::string hint = "") {
  return notation_problem(expression, word.at, word.text.size(), std::move(message), std::move(hint));
}

struct GivenSize {
  std::string dim;
  std::int64_t size = 1;
  bool local = false;  ///< what one chip holds of it; the whole follows from the sharding
};

struct MatmulInput {
  std::string expression;
  Mesh mesh;
  std::vector<GivenSize> sizes;
  std::optional<DType> dtype;  ///< of arrays the expression gives no format; bf16 unless given
};

/// What a product does with a dimension.
enum class LoopKind {
  kLeft,        ///< of the left operand and the result
  kRight,       ///< of the right operand and the result
  kBatch,       ///< of all three
  kContracted,  ///< of both operands, summed over
};

struct Loop {
  std::size_t dim = 0;
  LoopKind kind = LoopKind::kLeft;
};

/// One multiplication. Its left operand is the first array or the result before.
struct Product {
  std::vector<Loop> loops;  ///< each dimension of its operands once: left, batch, contracted, right
  ShardedArray result;      ///< laid out as written, or as it follows from the operands' shardings
  bool written = false;
  /// Layouts the result may end in: the one written, or, behind the last product, those that follow from the operands
  /// (several if one mesh axis cuts both operands). Empty: a result inside a chain stays as it comes out.
  std::vector<Sharding> asked;

  bool contracts() const;
  std::vector<std::size_t> dims_of(LoopKind kind) const;
};

struct MatmulProblem {
  std::string expression;
  ShardingTables tables;
  std::vector<ShardedArray> operands;  ///< one: a single array, nothing is multiplied
  std::optional<Sharding> target;      ///< of a single array: how it is to lie
  std::vector<Product> products;
  std::vector<Assumption> assumptions;

  /// Operands of a product as given (a result inside a chain: as it follows from the shardings before it).
  const ShardedArray& left_of(std::size_t product) const;
  const ShardedArray& right_of(std::size_t product) const { return operands[product + 1]; }
};

/// UserError with every problem found: unknown axes and dimensions, an axis twice in an array, sizes that are missing
/// or do not divide, products that cannot be.
MatmulProblem understand(const MatmulInput& input);

/// Loops and results of the products. `noted` is what was written, for places in messages.
void understand_products(const NotedExpression& noted, const std::vector<std::optional<ShardedArray>>& results,
                         MatmulProblem& problem, std::vector<Diagnostic>& problems);

/// Layouts of a product's result that follow from its operands: a dimension keeps its cut, partial sums are added up. A
/// mesh axis that cuts dimensions of both operands stays on one of the two, which gives two layouts.
std::vector<Sharding> inherited_layouts(const Product& product, const ShardedArray& left, const ShardedArray& right);

}  // namespace scalecalc
