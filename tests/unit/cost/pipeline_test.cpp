#include "cost/pipeline.h"

#include <gtest/gtest.h>

#include <numeric>

#include "support/fixtures.h"

namespace scalecalc {
namespace {

/// Llama 3 405B ran 126 layers on 16 stages with one layer fewer on the first and the last (arXiv:2407.21783 3.3.2).
TEST(Partition, OddLayersLeaveTheEndsLighter) {
  const std::vector<StageShape> stages = partition(test::dense_model(126), {.pp = 16, .vpp = 1});
  ASSERT_EQ(stages.size(), 3u);
  EXPECT_EQ(stages[0].layers[0], 7);
  EXPECT_TRUE(stages[0].embedding);
  EXPECT_EQ(stages[1].layers[0], 8);
  EXPECT_EQ(stages[1].first, 1);
  EXPECT_EQ(stages[2].layers[0], 7);
  EXPECT_TRUE(stages[2].head);
}

TEST(Partition, InterleavedChunksGoRound) {
  const std::vector<StageShape> stages = partition(test::dense_model(126), {.pp = 16, .vpp = 8});
  ASSERT_EQ(stages.size(), 3u);
  EXPECT_EQ(stages[0].layers[0], 7) << "its first chunk holds only the embedding";
  EXPECT_EQ(stages[1].layers[0], 8);
}

/// DeepSeek-V3 as Megatron Bridge lays it out on 16 stages (recipes of NeMo 26.04, pp_layout Et*4|(t*4|)*14tmL): two
/// heads and the MTP module weigh as much as four layers, so the last stage holds one.
TEST(Partition, TheHeadAndItsModulesCountAsLayers) {
  const ModelSpec model = test::shipped_model("deepseek-v3");
  const std::vector<StageShape> stages = all_stages(model, {.pp = 16, .vpp = 1});
  const auto layers = [&](std::size_t s) {
    return std::accumulate(stages[s].layers.begin(), stages[s].layers.end(), 0);
  };
  for (std::size_t s = 0; s < 15; ++s) EXPECT_EQ(layers(s), 4) << s;
  EXPECT_EQ(layers(15), 1);
}

/// A stack that deals by cost does so where layers divide as well.
TEST(Partition, BalancedStagesWeighTheHead) {
  ModelSpec model = test::dense_model(8);
  const auto last = [&](StageSplit split) { return all_stages(model, {.pp = 4, .vpp = 1}, split).back().layers[0]; };
  EXPECT_EQ(last(StageSplit::kEven), 2);
  model.vocab = 1;
  EXPECT_EQ(last(StageSplit::kBalanced), 2) << "a head that costs nothing";
  model.vocab = 10'000'000;
  EXPECT_EQ(last(StageSplit::kBalanced), 0) << "a head that costs more than all layers";
}

TEST(Partition, NoLayerIsLostOrDealtTwice) {
  for (const StageSplit split : {StageSplit::kEven, StageSplit::kBalanced}) {
    for (std::int64_t layers = 2; layers < 40; ++layers) {
      for (std::int64_t pp = 1; pp <= layers; ++pp) {
        std::int64_t dealt = 0;
        for (const ChunkShape& chunk : deal(test::dense_model(layers), pp, 1, split)) dealt += chunk.layers;
        EXPECT_EQ(dealt, layers) << layers << " on " << pp;
      }
    }
  }
}

TEST(Partition, KindsKeepTheirOrder) {
  const std::vector<StageShape> stages = partition(test::moe_model(8), {.pp = 4, .vpp = 1});
  EXPECT_EQ(stages[0].layers[0], 1) << "the dense first layer";
  EXPECT_EQ(stages[0].layers[1], 1);
  EXPECT_EQ(stages[1].layers[1], 2);
}

TEST(Deal, ChunksFollowEachOtherAndStagesHoldThem) {
  const ModelSpec model = test::moe_model(10);
  const std::vector<ChunkShape> chunks = deal(model, 3, 2);
  ASSERT_EQ(chunks.size(), 6U);
  std::int64_t next = 0;
  for (const ChunkShape& chunk : chunks) {
    EXPECT_EQ(chunk.first_layer, next);
    next += chunk.layers;
    EXPECT_EQ(chunk.embedding, &chunk == &chunks.front());
    EXPECT_EQ(chunk.head, &chunk == &chunks.back());
  }
  EXPECT_EQ(next, 10);
  const std::vector<StageShape> stages = all_stages(model, {.pp = 3, .vpp = 2});
  ASSERT_EQ(stages.size(), 3U);
  for (std::size_t s = 0; s < stages.size(); ++s) {
    EXPECT_EQ(stages[s].first, static_cast<std::int64_t>(s));
    EXPECT_EQ(stages[s].layers[0] + stages[s].layers[1], chunks[s].layers + chunks[s + 3].layers);
  }
}

TEST(Partition, MoreStagesThanLayersIsNoPartition) {
  EXPECT_TRUE(partition(test::dense_model(4), {.pp = 8, .vpp = 1}).empty());
}

TEST(InFlight, FollowsTheSchedule) {
  EXPECT_EQ(in_flight(Schedule::kNone, 1, 1, 0, 32), 1);
  EXPECT_EQ(in_flight(Schedule::kGpipe, 4, 1, 0, 32), 32);
  EXPECT_EQ(in_flight(Schedule::k1F1B, 4, 1, 0, 32), 4);
  EXPECT_EQ(in_flight(Schedule::k1F1B, 4, 1, 3, 32), 1);
  EXPECT_EQ(in_flight(Schedule::k1F1B, 4, 1, 0, 2), 2) << "never more than there are";
  // pp 4, vpp 2: warm-up of (2-1) 4 + 2 (4-1) + 1 = 11 half-stages.
  EXPECT_EQ(in_flight(Schedule::kInterleaved, 4, 2, 0, 32), 5.5);
}

}  // namespace
}  // namespace scalecalc
