#include "model/usual_stack.h"

#include <gtest/gtest.h>

#include "support/fixtures.h"

namespace scalecalc {
namespace {

using test::shipped_chip;
using test::shipped_model;

std::string stack_of(const HardwareSpec& hw, const std::string& model, std::int64_t seq = 8192) {
  return usual_stack(hw, shipped_model(model), seq);
}

/// 16 bytes of each parameter against half of 8 x 80 GB: up to 20B.
TEST(UsualStack, ShardingAloneTrainsWhatFitsIntoHalfOfAHost) {
  const HardwareSpec h100 = shipped_chip("h100-sxm");
  EXPECT_EQ(stack_of(h100, "llama3-8b"), "torchtitan");
  EXPECT_EQ(stack_of(h100, "gemma-2-27b"), "megatron");
  EXPECT_EQ(stack_of(h100, "llama3-70b"), "megatron");
  EXPECT_EQ(stack_of(shipped_chip("b200"), "gemma-2-27b"), "torchtitan") << "half of 8 x 180 GB";
}

/// 2 bytes x 32 layers x 4,096 are 262 kB a token: half of 85.9 GB holds 163,840 of them.
TEST(UsualStack, LongSequencesAreCutByTheFamilysStack) {
  const HardwareSpec h100 = shipped_chip("h100-sxm");
  EXPECT_EQ(stack_of(h100, "llama3.1-8b", 131072), "torchtitan");
  EXPECT_EQ(stack_of(h100, "llama3.1-8b", 1048576), "megatron");
}

TEST(UsualStack, ExpertsAreTrainedByTheFamilysStack) {
  EXPECT_EQ(stack_of(shipped_chip("h100-sxm"), "moonlight-16b-a3b"), "megatron");
}

TEST(UsualStack, OtherFamiliesHaveOne) {
  EXPECT_EQ(stack_of(shipped_chip("tpu-v5p"), "llama3-8b"), "maxtext");
  EXPECT_EQ(stack_of(shipped_chip("mi300x"), "llama3-8b"), "megatron");
}

}  // namespace
}  // namespace scalecalc
