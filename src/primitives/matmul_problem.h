// A sharded matmul understood: the notation (matmul_notation.h) with the sizes of its dimensions and the mesh.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/explained.h"
#include "primitives/matmul_notation.h"
#include "primitives/sharding.h"

namespace scalecalc {

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
  std::vector<Product> products;
  std::vector<Assumption> assumptions;

  /// Operands of a product as given (a result inside a chain: as it follows from the shardings before it).
  const ShardedArray& left_of(std::size_t product) const;
  const ShardedArray& right_of(std::size_t product) const { return operands[product + 1]; }
};

/// UserError with every problem found: unknown axes and dimensions, an axis twice in an array, sizes that are missing
/// or do not divide, products that cannot be.
MatmulProblem understand(const MatmulInput& input);

/// Loops and results of the products (matmul_products.cpp). `noted` is what was written, for places in messages.
void understand_products(const NotedExpression& noted, const std::vector<std::optional<ShardedArray>>& results,
                         MatmulProblem& problem, std::vector<Diagnostic>& problems);

/// Layouts of a product's result that follow from its operands: a dimension keeps its cut, partial sums are added up. A
/// mesh axis that cuts dimensions of both operands stays on one of the two, which gives two layouts.
std::vector<Sharding> inherited_layouts(const Product& product, const ShardedArray& left, const ShardedArray& right);

}  // namespace scalecalc
