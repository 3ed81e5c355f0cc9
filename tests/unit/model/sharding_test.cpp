#include "model/sharding.h"

#include <gtest/gtest.h>

#include "support/fixtures.h"

namespace scalecalc {
namespace {

using Reasons = std::vector<std::string>;

TEST(Sharding, EveryMixerSaysWhatDoesNotDivide) {
  ModelSpec model = test::hybrid_model();
  EXPECT_EQ(undivided_heads(model, 8), Reasons{});
  EXPECT_EQ(undivided_heads(model, 16), (Reasons{"tp 16 does not divide the 8 key heads of the linear layers"}))
      << "4 KV heads and 4 groups are repeated";
  EXPECT_EQ(undivided_heads(model, 3).size(), 8U);
  model.kinds = {{MixerKind::kFull, FfnKind::kDense}};
  EXPECT_EQ(undivided_heads(model, 16), Reasons{}) << "only layers the model has";
}

TEST(Sharding, WidthsOfGroupsAndSharedExpertsDivide) {
  ModelSpec model = test::hybrid_model();
  EXPECT_EQ(undivided_widths(model, 8), Reasons{});
  model.kinds[1].d_ff = 2044;
  model.moe->shared_d_ff = 1020;
  EXPECT_EQ(undivided_widths(model, 8),
            (Reasons{"tp 8 does not divide d_ff 2044", "tp 8 does not divide the shared experts' d_ff 1020"}));
}

TEST(Sharding, AnUnusedWidthDoesNotBind) {
  ModelSpec model = test::moe_model(4);
  model.kinds = {{MixerKind::kFull, FfnKind::kMoe}};
  model.layer_kind.assign(4, 0);
  model.mlp.d_ff = 4095;
  EXPECT_EQ(undivided_widths(model, 8), Reasons{});
}

}  // namespace
}  // namespace scalecalc
