#include "serve/serve_question.h"

#include <gtest/gtest.h>

#include "support/fixtures.h"

namespace scalecalc {
namespace {

DType computed(const HardwareSpec& hw, WeightFormat weights, std::optional<WeightFormat> experts = {}) {
  QuantizationSpec stored;
  stored.weights = weights;
  stored.parts[static_cast<std::size_t>(WeightPart::kExperts)] = experts;
  return usual_compute(stored, hw);
}

TEST(UsualCompute, FloatsComputeAsSuchWhereTheChipCan) {
  const HardwareSpec hopper = test::shipped_chip("h100-sxm");  // bf16, fp8, int8
  EXPECT_EQ(computed(hopper, WeightFormat::kFp8), DType::kFp8);
  EXPECT_EQ(computed(hopper, WeightFormat::kNvfp4), DType::kBf16);
  EXPECT_EQ(computed(test::shipped_chip("b200"), WeightFormat::kNvfp4), DType::kFp4);
  EXPECT_EQ(computed(test::shipped_chip("a100-80g"), WeightFormat::kFp8), DType::kBf16);
}

TEST(UsualCompute, IntegersAreWidened) {
  EXPECT_EQ(computed(test::shipped_chip("h100-sxm"), WeightFormat::kInt8), DType::kBf16);
  EXPECT_EQ(computed(test::shipped_chip("h100-sxm"), WeightFormat::kInt4), DType::kBf16);
}

TEST(UsualCompute, ExpertsOfTheirOwnFormatDecide) {
  EXPECT_EQ(computed(test::shipped_chip("b200"), WeightFormat::kBf16, WeightFormat::kMxfp4), DType::kFp8);
  EXPECT_EQ(computed(test::shipped_chip("h100-sxm"), WeightFormat::kBf16, WeightFormat::kMxfp4), DType::kBf16);
}

}  // namespace
}  // namespace scalecalc
