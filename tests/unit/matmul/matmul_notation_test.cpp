#include "matmul/matmul_problem.h"

#include <gtest/gtest.h>

namespace scalecalc {
namespace {

std::string notation_error(const std::string& text) {
  try {
    parse_notation(text);
  } catch (const UserError& error) {
    std::string out;
    for (const Diagnostic& problem : error.diagnostics()) out += render(problem);
    return out;
  }
  return "no error";
}

TEST(MatmulNotation, AProductWithItsResult) {
  const NotedExpression found = parse_notation("A[I_X, J_{XY}] * B[J, K_{Y,Z}] -> C[I, K]{U_X}");
  ASSERT_EQ(found.operands.size(), 2);
  ASSERT_EQ(found.results.size(), 1);
  EXPECT_EQ(found.operands[0].name.text, "A");
  EXPECT_EQ(found.operands[0].dims[0].name.text, "I");
  EXPECT_EQ(found.operands[0].dims[0].axes.at(0).text, "X");
  EXPECT_EQ(found.operands[0].dims[1].axes.at(0).text, "XY");
  EXPECT_EQ(found.operands[1].dims[1].axes.at(1).text, "Z");
  EXPECT_TRUE(found.operands[1].dims[0].axes.empty());
  EXPECT_EQ(found.results[0]->partial.at(0).text, "X");
}

TEST(MatmulNotation, SignsOfTheBook) {
  const NotedExpression found = parse_notation("A[I,J]·B[J,K] → C[I,K]");
  EXPECT_EQ(found.operands.size(), 2);
  EXPECT_TRUE(found.results[0]);
  EXPECT_EQ(parse_notation("A[I,J] @ B[J,K]").operands.size(), 2);
  EXPECT_FALSE(parse_notation("A[I,J] × B[J,K]").results[0]);
}

TEST(MatmulNotation, Formats) {
  EXPECT_EQ(parse_notation("int8[I, J]").operands[0].dtype, DType::kInt8);
  EXPECT_EQ(parse_notation("int8[I, J]").operands[0].name.text, "");
  EXPECT_EQ(parse_notation("fp8 A[I]").operands[0].dtype, DType::kFp8);
  EXPECT_EQ(parse_notation("fp8 A[I]").operands[0].name.text, "A");
  EXPECT_EQ(parse_notation("A: fp32[I]").operands[0].dtype, DType::kFp32);
  EXPECT_FALSE(parse_notation("W_in[I]").operands[0].dtype);
  EXPECT_EQ(parse_notation("W_in[I]").operands[0].name.text, "W_in");
}

TEST(MatmulNotation, ChainsAndResultsBetween) {
  const NotedExpression found = parse_notation("A[I,J] * B[J,K] -> T[I,K] * W[K,L] * V[L,M] -> C[I,M]");
  ASSERT_EQ(found.results.size(), 3);
  EXPECT_EQ(found.results[0]->name.text, "T");
  EXPECT_FALSE(found.results[1]);
  EXPECT_EQ(found.results[2]->name.text, "C");
  EXPECT_TRUE(parse_notation("A[I] * B[I] -> C[]").results[0]->dims.empty());
  EXPECT_FALSE(parse_notation("A[I]").target);
  EXPECT_EQ(parse_notation("A[I_X, J] -> A[I, J_X]").target->dims[1].axes.front().text, "X");
}

TEST(MatmulNotation, ErrorsPointAtTheirPlace) {
  EXPECT_EQ(notation_error("A[I_X, J * B[J, K]"),
            "<command line>: error: '*' stands where ',' or ']' was expected\n"
            "     | A[I_X, J * B[J, K]\n"
            "     |          ^\n"
            "hint: for example \"A[I_X, J_Y] * B[J_Y, K] -> C[I_X, K]\"\n");
  // A sign of several bytes is one character.
  EXPECT_NE(notation_error("A[I]·B[I] ? C").find("\n     |           ^\n"), std::string::npos)
      << notation_error("A[I]·B[I] ? C");
}

TEST(MatmulNotation, WhatIsExpected) {
  const auto expect = [](const std::string& text, const std::string& part) {
    EXPECT_NE(notation_error(text).find(part), std::string::npos) << text << "\n" << notation_error(text);
  };
  expect("", "the expression ends where an array such as A[I_X, J] was expected");
  expect("A", "the expression ends where '[' was expected");
  expect("A[I", "the expression ends where ',' or ']' was expected");
  expect("A[1024]", "'1' stands where the name of a dimension was expected");
  expect("A[I_]", "']' stands where the name of a mesh axis was expected");
  expect("A[I_X_Y]", "several axes are written I_XY or I_{X,Y}");
  expect("A[I_{X;Y}]", "';' stands where ',' or '}' was expected");
  expect("A[I]{X}", "partial sums over axis X are written {U_X}");
  expect("A[I] B[I]", "'B' stands where '*', '->' or the end was expected");
  expect("A[I] * B[I] -> C[] -> D[]", "this product has a result already");
  expect("A[I] -> A[I] -> A[I]", "the array has its layout already");
  expect("A[I] -> A[I] * B[I]", "a product stands behind the arrow");
  expect("A: bf17[I]", "'bf17' is no number format");
  expect("bf17[I]", "did you mean 'bf16'?");
  expect("int8 A: bf16[I]", "':' stands where '[' was expected");
}

}  // namespace
}  // namespace scalecalc
