#include "model/accounting.h"

#include <gtest/gtest.h>

#include "support/fixtures.h"

namespace scalecalc {
namespace {

/// The MTP module of DeepSeek-V3 holds 11,610,068,224 weights of its own (its layer, projection and norms).
TEST(Parameters, MtpModuleIsCountedApart) {
  EXPECT_EQ(static_cast<std::int64_t>(count_parameters(test::shipped_model("deepseek-v3")).mtp), 11610068224);
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
  model.kinds = {{MixerKind::kSliding, FfnKind::kDense}};
  const TrainingFlops windowed = training_flops(model, 4096);
  EXPECT_EQ(windowed.attention_full, full.attention_full);
  // A query sees 512 tokens, fewer for the first 512: 512 - 512^2 / (2 * 4096) = 480 instead of 2048.
  EXPECT_DOUBLE_EQ(windowed.attention_causal, full.attention_causal * 480 / 2048);
}

TEST(MeanContext, HalfTheSequenceTheWindowOrTheChunk) {
  EXPECT_EQ(mean_context(Reach::kAll, 0.0, 1000.0), 500);
  EXPECT_EQ(mean_context(Reach::kWindow, 100.0, 1000.0), 95);
  EXPECT_EQ(mean_context(Reach::kChosen, 100.0, 1000.0), 95) << "the first tokens have fewer to choose from";
  EXPECT_EQ(mean_context(Reach::kWindow, 2000.0, 1000.0), 500) << "a window longer than the sequence changes nothing";
  EXPECT_EQ(mean_context(Reach::kChunk, 100.0, 1000.0), 50);
  EXPECT_EQ(mean_context(Reach::kChunk, 400.0, 1000.0), (2 * 400.0 * 400 + 200 * 200) / 2000) << "and a rest of 200";
}

}  // namespace
}  // namespace scalecalc
