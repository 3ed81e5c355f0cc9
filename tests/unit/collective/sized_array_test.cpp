#include "collective/collective_place.h"

#include <gtest/gtest.h>

namespace scalecalc {
namespace {

SizedArray array_of(std::string_view text) {
  const auto parsed = parse_sized_array(text);
  EXPECT_TRUE(std::holds_alternative<SizedArray>(parsed)) << std::get<UnitError>(parsed).message;
  return std::get<SizedArray>(parsed);
}

std::string problem_with(std::string_view text) {
  const auto parsed = parse_sized_array(text);
  return std::holds_alternative<UnitError>(parsed) ? std::get<UnitError>(parsed).message : "";
}

TEST(SizedArray, FormatSizesAndSubscripts) {
  const SizedArray array = array_of("bf16[1024_X, 4Ki, 16_384_{X,dcn}]");
  EXPECT_EQ(array.dtype, DType::kBf16);
  ASSERT_EQ(array.dims.size(), 3u);
  EXPECT_EQ(array.dims[0].size, 1024);
  EXPECT_EQ(array.dims[0].subscript, "X");
  EXPECT_EQ(array.dims[1].size, 4096);
  EXPECT_EQ(array.dims[1].subscript, "");
  EXPECT_EQ(array.dims[2].size, 16384) << "an underscore between digits groups them";
  EXPECT_EQ(array.dims[2].subscript, "X,dcn");
}

TEST(SizedArray, ADimensionMayBeDivided) {
  EXPECT_EQ(array_of("int8[28672/8]").dims[0].size, 3584);
  EXPECT_NE(problem_with("int8[10/4]").find("remainder"), std::string::npos);
}

TEST(SizedArray, WhatIsWrongIsNamed) {
  EXPECT_NE(problem_with("bf16").find("brackets"), std::string::npos);
  EXPECT_NE(problem_with("bf61[8]").find("unknown format 'bf61'"), std::string::npos);
  EXPECT_NE(problem_with("bf16[8,]").find("empty"), std::string::npos);
  EXPECT_NE(problem_with("bf16[8x8]").find("8x8"), std::string::npos);
  EXPECT_NE(problem_with("bf16[0]").find("not a dimension"), std::string::npos);
  EXPECT_NE(problem_with("bf16[8_{X]").find("open"), std::string::npos);
  EXPECT_NE(problem_with("bf16[8_{}]").find("no axis"), std::string::npos);
  EXPECT_NE(problem_with(""), "");
}

}  // namespace
}  // namespace scalecalc
