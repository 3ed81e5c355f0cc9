#include "serve/stage_layers.h"

#include <gtest/gtest.h>

#include "serve/serving_cost.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

/// Of 62 layers every sixth is full, the others keep a window of 1,024 tokens, as Gemma 3's 27B has them.
ModelSpec windowed_model() {
  ModelSpec model = test::dense_model(62);
  model.attention.kv_heads = 16;
  model.attention.head_dim = 128;
  model.attention.window = 1024;
  model.kinds.push_back({MixerKind::kSliding, FfnKind::kDense});
  for (std::size_t i = 0; i < model.layer_kind.size(); ++i) model.layer_kind[i] = i % 6 == 5 ? 0 : 1;
  return model;
}

LayersByKind of_kinds(std::int64_t first, std::int64_t second) { return {first, second}; }

ServeMemory memory_of(const ModelSpec& model, const ServeLayout& layout) {
  const HardwareSpec hw = test::switched_chip();
  ServingSystem system{.model = &model, .hw = &hw, .efficiency = hw.efficiency};
  system.engine.counts_runtime = false;
  return {ServeBasis<double>({}, system), layout};
}

/// 62 = 8 x 7 + 6: all stages but the first and the last have eight.
TEST(StageLayers, OfOneKindTheLongestStageIsTheFullest) {
  EXPECT_EQ(fullest_stages(test::dense_model(8), 1), std::vector{of_kinds(8, 0)});
  EXPECT_EQ(fullest_stages(test::dense_model(8), 4), std::vector{of_kinds(2, 0)});
  EXPECT_EQ(fullest_stages(test::dense_model(62), 8), std::vector{of_kinds(8, 0)});
}

/// 62 = 8 x 7 + 6, so stages of 7, 8, 8, 8, 8, 8, 8 and 7 begin at layers 0, 7, 15, 23, 31, 39, 47 and 55. Full are 5,
/// 11, 17, 23, 29, 35, 41, 47, 53 and 59: both 23 and 29 on the fourth stage, 47 and 53 on the seventh, one elsewhere.
TEST(StageLayers, AStageOfEightHasOneFullLayerOrTwo) {
  EXPECT_EQ(fullest_stages(windowed_model(), 8), (std::vector{of_kinds(1, 7), of_kinds(2, 6)}));
}

/// Eight layers of which the first alone is dense, on three stages of 3, 3 and 2.
TEST(StageLayers, ADenseLayerIsOnTheFirstStage) {
  EXPECT_EQ(fullest_stages(test::moe_model(8), 3), (std::vector{of_kinds(1, 2), of_kinds(0, 3)}));
}

/// Keys and values of 16 heads of 128 in 16 bits: 2 x 16 x 128 x 2 = 8,192 bytes a token and layer.
TEST(StageLayers, TheFullestCacheHasTwoFullLayers) {
  const ModelSpec model = windowed_model();
  const ServeMemory memory = memory_of(model, {.pp = 8});
  EXPECT_DOUBLE_EQ(memory.sequence_bytes(100000), 8192.0 * (2 * 100000 + 6 * 1024));
  EXPECT_DOUBLE_EQ(memory.sequence_bytes(1000), 8192.0 * 8 * 1000) << "no window is full";
  // All layers weigh the same, so that the stage with two full ones is the one that limits the batch.
  const double fit = std::floor(memory.cache_room() / (8192.0 * (2 * 100000 + 6 * 1024)));
  ASSERT_GT(fit, 1);
  EXPECT_EQ(memory.max_batch(100000), fit);
  EXPECT_DOUBLE_EQ(memory.parts(fit, 100000).kv, fit * 8192.0 * (2 * 100000 + 6 * 1024));
  EXPECT_GE(memory.max_context(fit), 100000);
  EXPECT_LT(memory.max_context(fit + 1), 100000);
}

/// One sequence for each stage: that with two full layers reads the weights of eight layers, two whole caches and six
/// windows, and the seven others wait for it. A layer has 1,024 x (2,048 + 4,096 + 2,048) weights of attention and
/// three times 1,024 x 4,096 of its MLP; memory gives 1 TB/s.
TEST(StageLayers, AllWaitForTheStageOfTwoFullLayers) {
  const ModelSpec model = windowed_model();
  const HardwareSpec hw = test::switched_chip();
  ServingSystem system{.model = &model, .hw = &hw, .efficiency = ideal_efficiency(hw.efficiency)};
  const ServingCost<double> cost = serving_cost(system, {.pp = 8}, slices_of(hw, 8, 1).front());
  const double weights = 8 * 2 * (1024 * 8192.0 + 3 * 1024 * 4096.0);
  const double cache = 8192.0 * (2 * 100000 + 6 * 1024);
  const double step = 8 * (weights + cache) / 1e12;
  EXPECT_NEAR(cost.decode_step(8, 100000).total().value(), step, 0.02 * step);
}

/// 8 layers on 3 stages of 3, 3 and 2: three eighths of weights and cache, and the head.
TEST(StageLayers, OfOneKindEveryStageHasItsShare) {
  const ModelSpec model = test::dense_model(8);
  EXPECT_DOUBLE_EQ(memory_of(model, {.pp = 3}).sequence_bytes(1000), memory_of(model, {}).sequence_bytes(1000) * 3 / 8);
  const double head = 2 * 32000.0 * 1024;
  EXPECT_NEAR(memory_of(model, {.pp = 3}).parts(0, 0).weights - head,
              (memory_of(model, {}).parts(0, 0).weights - 2 * head) * 3 / 8, 1e4);
}

/// Four layers on two stages: two dense ones that keep all tokens, and two of experts with a window of 64. One stage
/// has most weights and the other most cache, but none has both.
TEST(StageLayers, WeightsAndCachesAreOfTheSameStage) {
  ModelSpec model = test::moe_model(4);
  model.attention.window = 64;
  model.kinds = {{MixerKind::kFull, FfnKind::kDense}, {MixerKind::kSliding, FfnKind::kMoe}};
  model.layer_kind = {0, 0, 1, 1};
  const ServeMemory memory = memory_of(model, {.pp = 2});
  // 4 heads of 64 in 16 bits: 1,024 bytes a token and layer.
  EXPECT_DOUBLE_EQ(memory.sequence_bytes(4096), 2 * 1024.0 * 4096);
  // Nine experts have three matrices of 1,024 x 1,024 each, a dense MLP has three of 1,024 x 4,096; and there is a
  // router.
  const double square = 2 * 1024.0 * 1024;
  const double heavy = memory.parts(0, 0).weights;
  const double light = memory.parts(1e4, 4096).weights;
  EXPECT_NEAR(heavy - light, 2 * (9 * 3 - 3 * 4) * square, 1e5);
  // Each stage holds its own caches beside its own weights: long contexts fill the light one first,
  const double capacity = test::switched_chip().hbm_capacity.value();
  EXPECT_EQ(memory.max_batch(4096), std::floor((capacity - light) / (2 * 1024.0 * 4096)));
  // short ones, of which both keep as much, the heavy one.
  EXPECT_EQ(memory.max_batch(64), std::floor((capacity - heavy) / (2 * 1024.0 * 64)));
}

}  // namespace
}  // namespace scalecalc
