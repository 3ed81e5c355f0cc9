#include "cost/pipeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

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

using Sizes = std::vector<std::int64_t>;

Sizes dealt(const ModelSpec& model, std::int64_t pp, const ChunkEnds& ends, std::int64_t vpp = 1) {
  Sizes out;
  for (const ChunkShape& chunk : deal(model, pp, vpp, StageSplit::kEven, ends)) out.push_back(chunk.layers);
  return out;
}

TEST(Deal, ChosenEndsLeaveTheRestEvenlyBetween) {
  const ModelSpec model = test::dense_model(32);
  EXPECT_EQ(dealt(model, 4, {}), (Sizes{8, 8, 8, 8}));
  EXPECT_EQ(dealt(model, 4, {8, 6}), (Sizes{8, 9, 9, 6}));
  EXPECT_EQ(dealt(model, 4, {8, 7}), (Sizes{8, 9, 8, 7})) << "odd ones go to the earlier";
  EXPECT_EQ(dealt(model, 2, {7, 3}, 2), (Sizes{7, 11, 11, 3}));
  EXPECT_EQ(dealt(model, 2, {20, 12}), (Sizes{20, 12}));
  EXPECT_EQ(dealt(model, 2, {20, 11}), Sizes{}) << "a layer belongs to nobody";
  EXPECT_EQ(dealt(model, 4, {20, 13}), Sizes{}) << "more than there are";
  EXPECT_EQ(dealt(model, 4, {16, 15}), Sizes{}) << "a stage without any";
  EXPECT_EQ(dealt(model, 1, {16, 16}), Sizes{});
  const std::vector<StageShape> stages = all_stages(model, {.pp = 4, .split = {7, 7}});
  ASSERT_EQ(stages.size(), 4U);
  EXPECT_EQ(stages[0].layers[0], 7);
  EXPECT_EQ(stages[1].layers[0], 9);
  EXPECT_EQ(stages[3].layers[0], 7);
}

/// A layer of this model weighs 15.2M parameters and 4.2M for attention over half of 4,096 tokens, a head of 47,000
/// words 48.1M: 2.48 layers. Stages of 8 take 10.48; 9 between leave 14 for the ends, of which the last may have
/// 9 - 2.48 = 6.
TEST(Deal, EndsWorthChoosingByHand) {
  ModelSpec model = test::dense_model(32);
  model.vocab = 47'000;
  EXPECT_EQ(ends_worth_choosing(model, 4, StageSplit::kEven), (std::vector<ChunkEnds>{{8, 6}, {7, 7}}));
  EXPECT_EQ(ends_worth_choosing(model, 4, StageSplit::kBalanced), (std::vector<ChunkEnds>{{7, 7}}))
      << "the stack's own deal is 8, 9, 9, 6";
  EXPECT_EQ(ends_worth_choosing(model, 2, StageSplit::kEven), (std::vector<ChunkEnds>{{17, 15}}));
  EXPECT_TRUE(ends_worth_choosing(model, 1, StageSplit::kEven).empty());
  EXPECT_TRUE(ends_worth_choosing(model, 64, StageSplit::kEven).empty());
  model.vocab = 1;
  EXPECT_TRUE(ends_worth_choosing(model, 4, StageSplit::kEven).empty()) << "a head that costs nothing";
}

TEST(Deal, WhatIsWorthChoosingCanBeDealtAndIsNotTheDefault) {
  for (std::int64_t layers = 2; layers < 30; ++layers) {
    ModelSpec model = test::dense_model(layers);
    for (const std::int64_t vocab : {1'000, 50'000, 1'000'000}) {
      model.vocab = vocab;
      for (std::int64_t pp = 2; pp <= layers; ++pp) {
        for (const ChunkEnds& ends : ends_worth_choosing(model, pp, StageSplit::kEven)) {
          const Sizes sizes = dealt(model, pp, ends);
          EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}), layers);
          EXPECT_GE(*std::min_element(sizes.begin(), sizes.end() - 1), 1) << "only the head may stand alone";
          EXPECT_NE(sizes, dealt(model, pp, {}));
        }
      }
    }
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
