#include "model/accounting.h"

#include <gtest/gtest.h>

#include "config/catalog.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

/// Every shipped model whose official count is exact must be reproduced to the digit from its architecture.
TEST(Parameters, EveryShippedModelMatchesItsOfficialCount) {
  int exact = 0;
  for (const std::string& name : Catalog().names(CatalogKind::kModel)) {
    const ModelSpec model = test::shipped_model(name);
    const double total = count_parameters(model).total;
    if (model.official.exact > 0) {
      EXPECT_EQ(static_cast<std::int64_t>(total), model.official.exact) << name;
      ++exact;
    } else {
      EXPECT_NEAR(total / model.official.stated, 1.0, 0.005) << name;
    }
  }
  EXPECT_GE(exact, 12);
}

struct ActiveCase {
  const char* model;
  double active;                 ///< as the vendor states it
  bool without_input_embedding;  ///< its convention
};

class ActiveParameters : public testing::TestWithParam<ActiveCase> {};

TEST_P(ActiveParameters, MatchTheVendorsFigure) {
  const ActiveCase& c = GetParam();
  const ParameterCount count = count_parameters(test::shipped_model(c.model));
  const double active = count.active - (c.without_input_embedding ? count.embedding : 0);
  EXPECT_NEAR(active / c.active, 1.0, 0.02) << active;
}

INSTANTIATE_TEST_SUITE_P(Moe, ActiveParameters,
                         testing::Values(ActiveCase{"mixtral-8x7b", 12.9e9, false},
                                         ActiveCase{"mixtral-8x22b", 39e9, false},
                                         ActiveCase{"deepseek-v3", 37e9, true},
                                         ActiveCase{"qwen3-235b-a22b", 22e9, false},
                                         ActiveCase{"gpt-oss-120b", 5.13e9, true}));

/// The MTP module of DeepSeek-V3 holds 11,610,068,224 weights of its own (its layer, projection and norms).
TEST(Parameters, MtpModuleIsCountedApart) {
  EXPECT_EQ(static_cast<std::int64_t>(count_parameters(test::shipped_model("deepseek-v3")).mtp), 11610068224);
}

TEST(Parameters, PartsSumToTheTotal) {
  for (const std::string& name : Catalog().names(CatalogKind::kModel)) {
    const ParameterCount c = count_parameters(test::shipped_model(name));
    EXPECT_EQ(c.total, c.embedding + c.head + c.attention + c.mlp + c.experts + c.router + c.norms) << name;
  }
}

/// Book, chapter 4: 18 D F per token for a gated MLP, 12 D (N+K) H for QKVO, 6 D V for the head, 12 T N H for
/// attention.
TEST(TrainingFlops, FollowTheBooksTable) {
  const ModelSpec model = test::dense_model(3);
  const double d = 1024, f = 4096, n = 16, k = 4, h = 64, v = 32000, t = 2048;
  const TrainingFlops flops = training_flops(model, t);
  EXPECT_DOUBLE_EQ(flops.six_n, 3 * (18 * d * f + 12 * d * (n + k) * h) + 6 * d * v);
  EXPECT_DOUBLE_EQ(flops.attention_full, 3 * 12 * t * n * h);
  EXPECT_DOUBLE_EQ(flops.attention_causal, flops.attention_full / 2);
}

TEST(TrainingFlops, WindowsCutTheCausalCountOnly) {
  ModelSpec model = test::dense_model(2);
  const TrainingFlops full = training_flops(model, 4096);
  model.attention.window = 512;
  model.kinds = {{AttentionKind::kSliding, FfnKind::kDense}};
  const TrainingFlops windowed = training_flops(model, 4096);
  EXPECT_EQ(windowed.attention_full, full.attention_full);
  // A query sees 512 tokens, fewer for the first 512: 512 - 512^2 / (2 * 4096) = 480 instead of 2048.
  EXPECT_DOUBLE_EQ(windowed.attention_causal, full.attention_causal * 480 / 2048);
}

TEST(MeanContext, HalfTheSequenceOrTheWindow) {
  EXPECT_EQ(mean_context(1000, 0, true), 500);
  EXPECT_EQ(mean_context(1000, 0, false), 1000);
  EXPECT_EQ(mean_context(1000, 100, false), 100);
  EXPECT_EQ(mean_context(1000, 100, true), 95);
  EXPECT_EQ(mean_context(1000, 2000, true), 500) << "a window longer than the sequence changes nothing";
}

}  // namespace
}  // namespace scalecalc
