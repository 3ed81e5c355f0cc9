#include "matmul/matmul_problem.h"

#include <gtest/gtest.h>

#include "base/diagnostic.h"
#include "support/matmul_input.h"

namespace scalecalc {
namespace {

using Messages = std::vector<std::string>;

const test::Sizes kMesh{{"X", 4}, {"Y", 2}};
const test::Sizes kSmallDims{{"I", 64}, {"J", 32}, {"K", 16}};

MatmulProblem read(const std::string& expression, const test::Sizes& mesh = kMesh,
                   const test::Sizes& dims = kSmallDims) {
  return understand(test::matmul_input(expression, mesh, dims));
}

Messages errors_of(const MatmulInput& input) {
  Messages out;
  try {
    understand(input);
  } catch (const UserError& error) {
    for (const Diagnostic& problem : error.diagnostics()) out.push_back(problem.message);
  }
  return out;
}
Messages errors_of(const std::string& expression, const test::Sizes& mesh = kMesh,
                   const test::Sizes& dims = kSmallDims) {
  return errors_of(test::matmul_input(expression, mesh, dims));
}

std::string notation_of_result(const MatmulProblem& problem, std::size_t product = 0) {
  return problem.tables.notation(problem.products.at(product).result);
}

std::vector<std::string> asked_outputs(const MatmulProblem& problem) {
  std::vector<std::string> out;
  const Product& last = problem.products.back();
  for (const Sharding& asked : last.asked) out.push_back(problem.tables.notation(last.result, asked));
  return out;
}

TEST(MatmulProblem, LocalShapesAndBytes) {
  const MatmulProblem found = read("fp32 A[I_XY, J]", kMesh, {{"I", 64}, {"J", 32}});
  const ShardedArray& a = found.operands.front();
  EXPECT_EQ(found.tables.local_shape(a, a.layout), (std::vector<std::int64_t>{8, 32}));
  EXPECT_EQ(value_of(found.tables.bytes(a)), 64 * 32 * 4);
  EXPECT_EQ(value_of(found.tables.local_bytes(a, a.layout)), 8 * 32 * 4);
  EXPECT_EQ(found.tables.notation(a), "A[I_XY, J]");
}

TEST(MatmulProblem, AxisNamesOfSeveralLetters) {
  const test::Sizes mesh{{"data", 4}, {"model", 2}};
  const test::Sizes dims{{"I", 64}, {"J", 32}};
  EXPECT_EQ(read("A[I_{data,model}, J]", mesh, dims).operands[0].layout.cut[0], (AxisList{0, 1}));
  EXPECT_EQ(read("A[I_datamodel, J]", mesh, dims).operands[0].layout.cut[0], (AxisList{0, 1}));
  const MatmulProblem one = read("A[I_model, J]{U_data}", mesh, dims);
  EXPECT_EQ(one.tables.notation(one.operands[0]), "A[I_model, J]{U_data}");
}

TEST(MatmulProblem, AnAxisOfOneChipCutsNothing) {
  EXPECT_EQ(read("A[I_XZ, J]", {{"X", 4}, {"Z", 1}}, {{"I", 64}, {"J", 32}}).operands[0].layout.cut[0], (AxisList{0}));
}

TEST(MatmulProblem, LocalSizesGiveTheWhole) {
  MatmulInput input = test::matmul_input("A[I_X, J]", kMesh, {{"J", 32}});
  input.sizes.push_back({"I", 16, true});
  EXPECT_EQ(understand(input).tables.dims[0].size, 64);
  input.expression = "A[I_X, J] * B[J, I]";
  EXPECT_EQ(errors_of(input), Messages{"--local I: the arrays cut I over 1 and over 4 chips"});
}

TEST(MatmulProblem, WhatAProductSumsOver) {
  const MatmulProblem plain = read("A[I, J] * B[J, K]");
  EXPECT_EQ(plain.products[0].dims_of(LoopKind::kContracted).size(), 1);
  EXPECT_EQ(notation_of_result(plain), "C[I, K]");
  const MatmulProblem batched = read("A[K, I] * B[K, J] -> C[K, I, J]");
  EXPECT_EQ(batched.products[0].dims_of(LoopKind::kBatch).size(), 1);
  EXPECT_FALSE(batched.products[0].contracts());
  const MatmulProblem two = read("A[I, J, K] * B[K, J]");
  EXPECT_EQ(two.products[0].dims_of(LoopKind::kContracted).size(), 2);
  EXPECT_EQ(notation_of_result(two), "C[I]");
}

TEST(MatmulProblem, ResultsInheritTheirShardings) {
  EXPECT_EQ(asked_outputs(read("A[I_X, J] * B[J, K_Y]")), Messages{"C[I_X, K_Y]"});
  EXPECT_EQ(asked_outputs(read("A[I, J_X] * B[J_X, K_Y]")), Messages{"C[I, K_Y]"});
  EXPECT_EQ(asked_outputs(read("A[I_X, J] * B[J_X, K]")), Messages{"C[I_X, K]"});
  EXPECT_EQ(asked_outputs(read("A[I_X, J] * B[J, K_X]")), (Messages{"C[I_X, K]", "C[I, K_X]"}));
  EXPECT_EQ(asked_outputs(read("A[I_XY, J] * B[J, K_X]")), (Messages{"C[I_XY, K]", "C[I_Y, K_X]"}));
  EXPECT_EQ(asked_outputs(read("A[I_X, J] * B[J, K_X] -> C[I, K]")), Messages{"C[I, K]"});
}

TEST(MatmulProblem, Chains) {
  const test::Sizes dims{{"B", 64}, {"D", 32}, {"F", 128}};
  const MatmulProblem found = read("In[B, D_XY] * W_in[D, F_XY] * W_out[F_XY, D] -> Out[B, D_XY]", kMesh, dims);
  EXPECT_EQ(notation_of_result(found, 0), "T1[B, F_XY]");
  EXPECT_EQ(notation_of_result(found, 1), "Out[B, D_XY]");
  EXPECT_TRUE(found.products[0].asked.empty()) << "it stays as it comes out";
  // Experts lead both operands and come back; d_model comes back, but does not lead the weights.
  const MatmulProblem moe = read("In[E_X, B, D] * W1[E_X, D, F] * W2[E_X, F, D] -> Out[E_X, B, D]", kMesh,
                                 {{"E", 8}, {"B", 64}, {"D", 32}, {"F", 128}});
  EXPECT_EQ(notation_of_result(moe, 0), "T1[E_X, B, F]");
  EXPECT_EQ(moe.products[0].dims_of(LoopKind::kBatch).size(), 1);
  EXPECT_NE(moe.assumptions.back().text.find("E is kept, not summed over"), std::string::npos);
}

TEST(MatmulProblem, FormatsOfResults) {
  const MatmulProblem mixed = read("A[I, J] * int8 B[J, K]");
  EXPECT_EQ(mixed.products[0].result.dtype, DType::kBf16);
  EXPECT_EQ(read("int8 A[I, J] * int8 B[J, K]").products[0].result.dtype, DType::kInt8);
  EXPECT_EQ(read("int8 A[I, J] * int8 B[J, K] -> fp32 C[I, K]").products[0].result.dtype, DType::kFp32);
  MatmulInput input = test::matmul_input("A[I, J] * B[J, K]", kMesh, kSmallDims);
  input.dtype = DType::kFp8;
  EXPECT_EQ(understand(input).products[0].result.dtype, DType::kFp8);
}

TEST(MatmulProblem, IllegalShardings) {
  EXPECT_EQ(errors_of("A[I_X, J_X] * B[J, K]"), Messages{"mesh axis X stands twice in A"});
  EXPECT_EQ(errors_of("A[I_X, J]{U_X} * B[J, K]"), Messages{"mesh axis X stands twice in A"});
  EXPECT_EQ(errors_of("A[I_Z, J] * B[J, K]"), Messages{"the mesh has no axis 'Z'"});
  EXPECT_EQ(errors_of("A[I, J] * B[J, K_X]", kMesh, {{"I", 64}, {"J", 32}, {"K", 10}}),
            Messages{"K = 10 does not divide over the 4 chips of X"});
  EXPECT_EQ(errors_of("A[I_XY, J]", {{"X", 2}, {"Y", 2}, {"XY", 2}}, {{"I", 64}, {"J", 32}}),
            Messages{"'XY' may be read as X, Y or as XY"});
}

TEST(MatmulProblem, ImpossibleProducts) {
  EXPECT_EQ(errors_of("A[I, J] * B[J, K] -> C[I]"), Messages{"dimension K of B is missing in C"});
  EXPECT_EQ(errors_of("A[I, J] * B[J, K] -> C[I, L]", kMesh, {{"I", 64}, {"J", 32}, {"K", 16}, {"L", 8}}),
            (Messages{"dimension L of C is in neither A nor B", "dimension K of B is missing in C"}));
  EXPECT_EQ(errors_of("A[I] * B[K] -> C[I, K]{U_X}", kMesh, {{"I", 64}, {"K", 16}}),
            Messages{"C holds no partial sums: this product sums over nothing"});
  EXPECT_EQ(errors_of("A[I, I] * B[I, K]", kMesh, {{"I", 64}, {"K", 16}}), Messages{"dimension I stands twice in A"});
  EXPECT_EQ(errors_of("A[I, J] * A[J, K]"), Messages{"two arrays are called A"});
}

TEST(MatmulProblem, SizesMissingAndUnknownAreToldTogether) {
  EXPECT_EQ(errors_of("A[I, J] * B[J, K]", kMesh, {{"I", 64}, {"M", 16}}),
            (Messages{"the expression has no dimension 'M'", "how large is J?", "how large is K?"}));
}

}  // namespace
}  // namespace scalecalc
