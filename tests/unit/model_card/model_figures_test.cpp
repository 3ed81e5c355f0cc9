#include "model_card/model_figures.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/fixtures.h"

namespace scalecalc {
namespace {

constexpr std::size_t kAttention = 0;
constexpr std::size_t kMlp = 1;
constexpr std::size_t kExperts = 2;
constexpr std::size_t kRouter = 3;
constexpr std::size_t kNorms = 4;
constexpr std::size_t kEmbedding = 5;
constexpr std::size_t kHead = 6;

// Of test::dense_model: Q and O are 1024 x 1024, K and V 1024 x 256; the MLP has three matrices of 1024 x 4096.
constexpr double kAttentionLayer = 2 * 1024 * 1024 + 2 * 1024 * 256;
constexpr double kMlpLayer = 3 * 1024 * 4096;
constexpr double kVocabulary = 32000 * 1024;

ModelQuestion question(double seq = 2048) { return {.seq = seq}; }

double value(const Traced& traced) { return traced.value(); }
double value(const FlopsOf<Traced>& flops) { return flops.value().value(); }
double value(const BytesOf<Traced>& bytes) { return bytes.value().value(); }

TEST(ModelFigures, CountTheParametersOfADenseModelByPart) {
  const ModelFigures f = model_figures(test::dense_model(8), question());
  EXPECT_EQ(value(f.sums.parameters[kAttention]), 8 * kAttentionLayer);
  EXPECT_EQ(value(f.sums.parameters[kMlp]), 8 * kMlpLayer);
  EXPECT_EQ(value(f.sums.parameters[kNorms]), 8 * 2 * 1024 + 1024);
  EXPECT_EQ(value(f.sums.parameters[kEmbedding]), kVocabulary);
  EXPECT_EQ(value(f.sums.parameters[kHead]), kVocabulary);
  EXPECT_EQ(value(f.sums.parameters[kExperts]), 0);
  EXPECT_EQ(value(f.book_total), 8 * (kAttentionLayer + kMlpLayer) + 2 * kVocabulary);
  EXPECT_EQ(value(f.total), value(f.book_total) + 17 * 1024);
  EXPECT_EQ(value(f.active), value(f.total));
  EXPECT_EQ(value(f.bytes), 2 * value(f.total));
  EXPECT_DOUBLE_EQ(value(f.shares[kMlp]), 8 * kMlpLayer / value(f.book_total));
}

TEST(ModelFigures, ATiedMatrixIsCountedOnceAndMultipliedAnyway) {
  ModelSpec model = test::dense_model();
  model.tied_embeddings = true;
  const ModelFigures f = model_figures(model, question());
  EXPECT_EQ(value(f.sums.parameters[kEmbedding]), kVocabulary);
  EXPECT_EQ(value(f.sums.parameters[kHead]), 0);
  EXPECT_EQ(value(f.sums.matmul[kHead]), 2 * kVocabulary);
}

/// A module: a projection of 2 x 1024 to 1024, three norms (two inputs, one output) and one more layer; its FLOPs are
/// those of its matrices, of the head again and of a layer's scores over half of 2,048 tokens.
TEST(ModelFigures, ModulesOfMultiTokenPredictionStandBesideTheTotals) {
  ModelSpec model = test::dense_model(8);
  const ModelFigures without = model_figures(model, question());
  model.mtp_layers = 2;
  model.mtp_kind = 0;
  const ModelFigures with = model_figures(model, question());
  constexpr std::size_t kMtp = 7;
  constexpr double kMatrices = 2 * 1024 * 1024 + kAttentionLayer + kMlpLayer;
  EXPECT_EQ(value(with.sums.parameters[kMtp]), 2 * (kMatrices + 3 * 1024 + 2 * 1024));
  EXPECT_EQ(value(with.sums.matmul[kMtp]), 2 * (2 * (kMatrices + kVocabulary) + 2 * 1024 * 2 * 1024));
  EXPECT_EQ(value(with.total), value(without.total));
  EXPECT_EQ(value(with.training), value(without.training));
}

// Of 8 dense layers of 2,048 causal tokens: scores and values are 2 x 1024 x 2048 / 2 x 2 a token and layer. What
// selective remat runs again is no matmul; the attention part is its four matrices and the scores, the MLP part its
// three.
TEST(ModelFigures, EachRematPolicyRunsItsOwnPartAgain) {
  const ModelFigures f = model_figures(test::dense_model(8), question(2048));
  const auto again = [&](const char* policy) {
    const auto at = std::find_if(f.kept.begin(), f.kept.end(), [&](const auto& row) { return row.policy == policy; });
    return at == f.kept.end() ? -1 : value(*at->again);
  };
  constexpr double kScores = 2.0 * 2 * 1024 * (2048.0 / 2);
  EXPECT_EQ(again("remat none"), 0);
  EXPECT_EQ(again("remat selective"), 0);
  EXPECT_DOUBLE_EQ(again("remat attention"), 8 * (2 * kAttentionLayer + kScores));
  EXPECT_DOUBLE_EQ(again("remat mlp"), 8 * 2 * kMlpLayer);
  EXPECT_DOUBLE_EQ(again("remat full"), 8 * (2 * (kAttentionLayer + kMlpLayer) + kScores));
  EXPECT_DOUBLE_EQ(again("remat full"), again("book: block inputs"));
  EXPECT_DOUBLE_EQ(again("remat attention") + again("remat mlp"), again("remat full"));
}

TEST(ModelFigures, CountTheFlopsOfADenseModelByPart) {
  const ModelFigures f = model_figures(test::dense_model(8), question(2048));
  EXPECT_EQ(value(f.sums.matmul[kAttention]), 2 * 8 * kAttentionLayer);
  EXPECT_EQ(value(f.sums.matmul[kMlp]), 2 * 8 * kMlpLayer);
  EXPECT_EQ(value(f.sums.matmul[kEmbedding]), 0) << "a look-up is no matmul";
  EXPECT_EQ(value(f.sums.matmul[kHead]), 2 * kVocabulary);
  EXPECT_EQ(value(f.sums.scores), 8 * 2.0 * (2048 / 2) * (1024 + 1024));
  EXPECT_EQ(value(f.forward), 2 * (8 * (kAttentionLayer + kMlpLayer) + kVocabulary) + value(f.sums.scores));
  EXPECT_EQ(value(f.two_n), 2 * value(f.active));
  EXPECT_EQ(value(f.six_n), 6 * value(f.active));
}

TEST(ModelFigures, TrainingIsThreeTimesTheForwardPass) {
  for (const ModelSpec& model : {test::dense_model(), test::moe_model(), test::hybrid_model()}) {
    const ModelFigures f = model_figures(model, question());
    EXPECT_EQ(value(f.training), 3 * value(f.forward)) << model.name;
  }
}

TEST(ModelFigures, CausalScoresAreHalfOfTheSquare) {
  ModelQuestion q = question(4096);
  const double causal = value(model_figures(test::dense_model(), q).sums.scores);
  q.causal = false;
  const ModelFigures full = model_figures(test::dense_model(), q);
  EXPECT_EQ(value(full.sums.scores), 2 * causal);
  EXPECT_EQ(full.assumptions.front().text, "attention scores over the whole square, masked half included");
}

TEST(ModelFigures, ScoresEqualTheMatmulsAtTheBreakEvenLength) {
  // Scores of the whole square: 4 T 1024 a layer; matmuls: 2 x the weights of a layer.
  ModelQuestion q = question();
  q.causal = false;
  q.contexts = {(kAttentionLayer + kMlpLayer) / 2048};
  const ModelFigures full = model_figures(test::dense_model(), q);
  ASSERT_TRUE(full.break_even);
  EXPECT_EQ(*full.break_even, q.contexts[0]);
  EXPECT_DOUBLE_EQ(value(full.contexts[0].to_matmul), 1);
  EXPECT_EQ(value(full.break_even_rule), 8 * 1024);
  const ModelFigures causal = model_figures(test::dense_model(), question());
  EXPECT_EQ(*causal.break_even, 2 * q.contexts[0]);
}

TEST(ModelFigures, AWindowMayKeepTheScoresBelowForEver) {
  ModelSpec model = test::dense_model();
  model.attention.window = 256;
  model.kinds[0].mixer = MixerKind::kSliding;
  EXPECT_FALSE(model_figures(model, question()).break_even);
}

TEST(ModelFigures, ContextsShareTheForwardPassBetweenScoresAndTheRest) {
  ModelQuestion q = question();
  q.contexts = {1024, 8192};
  const ModelFigures f = model_figures(test::dense_model(8), q);
  ASSERT_EQ(f.contexts.size(), 2U);
  const double matmuls = 2 * (8 * (kAttentionLayer + kMlpLayer) + kVocabulary);
  for (const ContextFigures& row : f.contexts) {
    const double scores = 8 * 2 * row.seq / 2 * 2048;
    EXPECT_EQ(value(row.forward), matmuls + scores);
    EXPECT_DOUBLE_EQ(value(row.attention_share), scores / (matmuls + scores));
  }
}

TEST(ModelFigures, ActiveParametersLeaveOutTheExpertsATokenDoesNotVisit) {
  // Seven layers of 8 experts, 2 visited: 3 matrices of 1024 x 1024 each, and one shared expert of the same size.
  constexpr double kExpert = 3 * 1024 * 1024;
  const ModelFigures f = model_figures(test::moe_model(8), question());
  EXPECT_EQ(value(f.sums.parameters[kExperts]), 7 * 8 * kExpert);
  EXPECT_EQ(value(f.sums.parameters[kMlp]), kMlpLayer + 7 * kExpert);
  EXPECT_EQ(value(f.sums.parameters[kRouter]), 7 * 1024 * 8);
  EXPECT_EQ(value(f.active), value(f.total) - 7 * 6 * kExpert);
  EXPECT_EQ(value(f.book_active), value(f.active) - 7 * 1024 * 8 - 17 * 1024);
  EXPECT_EQ(value(f.sums.matmul[kExperts]), 2 * 7 * 2 * kExpert);
  ASSERT_EQ(f.layers.size(), 2U);
  EXPECT_EQ(f.layers[0].kind, "full/dense");
  EXPECT_EQ(f.layers[0].layers, 1);
  EXPECT_EQ(f.layers[1].kind, "full/moe");
  EXPECT_EQ(f.layers[1].layers, 7);
  EXPECT_EQ(value(f.layers[1].sums.parameters[kExperts]), 8 * kExpert);
}

TEST(ModelFigures, BooksKeptTensorsCountWidths) {
  ModelQuestion q = question(2048);
  q.batch_seqs = 4;
  const ModelFigures f = model_figures(test::dense_model(8), q);
  ASSERT_EQ(f.kept.size(), 8U);
  const auto kept = [&](std::string_view policy) -> const KeptFigures& {
    for (const KeptFigures& row : f.kept) {
      if (row.policy == policy) return row;
    }
    throw std::out_of_range(std::string(policy));
  };
  EXPECT_EQ(value(kept("book: everything").per_token), 20 * 8 * 1024);
  EXPECT_EQ(value(kept("book: matmul outputs").per_token), 7 * 8 * 1024);
  EXPECT_EQ(value(kept("book: block inputs").bytes), 2.0 * 4 * 2048 * 8 * 1024);
  EXPECT_EQ(value(kept("remat full").per_token), 8 * 1024) << "the layer's input alone";
  EXPECT_GT(value(kept("remat selective").per_token), value(kept("remat full").per_token));
  EXPECT_GT(value(kept("remat none").per_token), value(kept("remat selective").per_token));
}

TEST(ModelFigures, KeysAndValuesOfADenseModelGrowWithEveryToken) {
  ModelQuestion q = question(3000);
  q.kv = DType::kInt8;
  const ModelFigures f = model_figures(test::dense_model(8), q);
  EXPECT_EQ(f.kv_elements_per_token, 8 * 2 * 4 * 64);
  EXPECT_EQ(f.kv_bytes_per_token, 8 * 2 * 4 * 64);
  EXPECT_EQ(f.kv_bytes_per_sequence, 3000 * f.kv_bytes_per_token);
  EXPECT_EQ(f.kv_unlimited_bytes_per_token, f.kv_bytes_per_token);
  EXPECT_EQ(f.kv_state_bytes, 0);
}

TEST(ModelFigures, AWindowKeepsNoMoreThanItsTokens) {
  ModelSpec model = test::dense_model(8);
  model.attention.window = 256;
  model.kinds.push_back({MixerKind::kSliding, FfnKind::kDense});
  for (std::size_t i = 0; i < 8; i += 2) model.layer_kind[i] = 1;
  constexpr double kLayerToken = 2 * 2 * 4 * 64;  // bytes, bf16
  const ModelFigures f = model_figures(model, question(2048));
  EXPECT_EQ(f.kv_bytes_per_token, 8 * kLayerToken);
  EXPECT_EQ(f.kv_unlimited_bytes_per_token, 4 * kLayerToken);
  EXPECT_EQ(f.kv_bytes_per_sequence, 4 * kLayerToken * (2048 + 256));
}

TEST(ModelFigures, ARecurrenceKeepsItsStateWhateverTheLength) {
  ModelSpec model = test::hybrid_model();
  model.kinds = {{MixerKind::kMamba2, FfnKind::kDense}};
  model.layer_kind.assign(3, 0);
  const ModelFigures shorter = model_figures(model, question(16));
  const ModelFigures longer = model_figures(model, question(1 << 19));
  EXPECT_EQ(shorter.kv_bytes_per_token, 0);
  EXPECT_GT(shorter.kv_state_bytes, 0);
  EXPECT_EQ(shorter.kv_bytes_per_sequence, shorter.kv_state_bytes);
  EXPECT_EQ(longer.kv_bytes_per_sequence, shorter.kv_bytes_per_sequence);
  ASSERT_EQ(longer.cache.size(), 1U);
  EXPECT_EQ(longer.cache[0].layers, 3);
  EXPECT_EQ(longer.cache[0].state_elements, 32 * 64 * 64);
  EXPECT_GT(value(longer.sums.scans), 0);
  EXPECT_EQ(value(longer.sums.scores), 0);
  EXPECT_FALSE(longer.break_even);
}

/// Chapter 4, question 5: with as many KV heads as heads and the whole square, scores cost as much as the projections
/// at T = 2 D; with a quarter of the KV heads at D (N + K) / N = 1.25 D, and behind a mask at twice that.
TEST(ModelFigures, ScoresReachTheProjectionsAtTwiceTheWidth) {
  ModelSpec multi_head = test::dense_model();
  multi_head.attention.kv_heads = multi_head.attention.heads;
  ModelQuestion whole = question();
  whole.causal = false;
  EXPECT_EQ(*model_figures(multi_head, whole).projections_equal, 2 * 1024);
  EXPECT_EQ(value(model_figures(multi_head, whole).projections_rule), 2 * 1024);
  EXPECT_EQ(*model_figures(test::dense_model(), whole).projections_equal, 1.25 * 1024);
  EXPECT_NEAR(*model_figures(test::dense_model(), question()).projections_equal, 2.5 * 1024, 1);
}

/// Chapter 4, question 6: with the results of matmuls kept only the scores are run again, 4 T N H a token and layer;
/// with the inputs of blocks alone the whole forward of the layers.
TEST(ModelFigures, WhatIsNotKeptIsRunAgain) {
  ModelQuestion whole = question(2048);
  whole.causal = false;
  const ModelFigures f = model_figures(test::dense_model(8), whole);
  const auto again = [&](std::string_view policy) {
    for (const KeptFigures& kept : f.kept) {
      if (kept.policy == policy) return value(*kept.again);
    }
    return -1.0;
  };
  const double scores = 8 * 4.0 * 2048 * 1024;
  EXPECT_EQ(again("book: everything"), 0);
  EXPECT_EQ(again("book: matmul outputs"), scores);
  EXPECT_EQ(again("book: block inputs"), scores + 8 * 2 * (kAttentionLayer + kMlpLayer));
}

}  // namespace
}  // namespace scalecalc
