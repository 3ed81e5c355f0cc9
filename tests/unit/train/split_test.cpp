// Where the layers of the first and the last pipeline stage are worth choosing.
#include <gtest/gtest.h>

#include "plan/dimensions.h"
#include "train/question.h"

namespace scalecalc {
namespace {

TrainQuestion question(const std::string& model, std::int64_t chips, std::int64_t tp, std::int64_t pp) {
  TrainQuestion q{.model = model, .hardware = "h100-sxm", .chips = chips};
  q.fix = {.tp = tp, .cp = 1, .pp = pp, .schedule = Schedule::k1F1B, .offload = std::uint8_t{0}};
  q.top = 1;
  return q;
}

/// 32 layers and a vocabulary of 128k words on 4096: its head weighs more than two layers, so that of four stages of 8
/// the last takes 10. Two layers less on it, one less on the first and 9 between take 9.
TEST(Split, ALargeHeadIsFasterWithALightLastStage) {
  TrainQuestion q = question("llama3-8b", 32, 2, 4);
  const TrainAnswer open = answer(q, Catalog());
  q.fix.split.emplace();
  const TrainAnswer even = answer(q, Catalog());
  ASSERT_FALSE(open.plans.empty() || even.plans.empty());
  EXPECT_EQ(even.plans[0].figures.chunk_layers, (std::vector<std::int64_t>{8, 8, 8, 8}));
  const ChunkEnds chosen = open.plans[0].plan.layout.split;
  EXPECT_TRUE(chosen == (ChunkEnds{7, 7}) || chosen == (ChunkEnds{8, 6})) << chosen.first << ':' << chosen.last;
  EXPECT_LT(open.plans[0].plan.step_s, 0.95 * even.plans[0].plan.step_s);
  EXPECT_GT(open.plans[0].plan.step_s, 0.85 * even.plans[0].plan.step_s) << "9 of 10.4, and what is no layer's time";
  q.fix = pins_of(open.plans[0].plan.layout);
  const TrainAnswer again = answer(q, Catalog());
  ASSERT_FALSE(again.plans.empty());
  EXPECT_EQ(again.plans[0].plan.layout, open.plans[0].plan.layout);
  EXPECT_EQ(again.plans[0].plan.step_s, open.plans[0].plan.step_s);
}

/// 62 layers and 262k words on eight chips, one stage each. As launchers deal 64 with embedding and loss, 7 layers and
/// the embedding are too much for the first stage (87 GB of 86), 7 and the head with its logits for the last (97 GB).
TEST(Split, MemoryMayDecide) {
  TrainQuestion q = question("gemma-3-27b", 8, 1, 8);
  const TrainAnswer open = answer(q, Catalog());
  ASSERT_FALSE(open.plans.empty());
  EXPECT_TRUE(open.plans[0].plan.layout.split.chosen());
  q.fix.split.emplace();
  const TrainAnswer even = answer(q, Catalog());
  EXPECT_TRUE(even.plans.empty());
  ASSERT_TRUE(even.nearest_miss.has_value());
  EXPECT_EQ(even.nearest_miss->figures.chunk_layers, (std::vector<std::int64_t>{7, 8, 8, 8, 8, 8, 8, 7}));
}

TEST(Split, WhatCannotBeDealtIsToldWhy) {
  TrainQuestion q = question("llama3-8b", 32, 2, 4);
  q.fix.split = ChunkEnds{20, 13};
  const TrainAnswer wrong = answer(q, Catalog());
  EXPECT_TRUE(wrong.plans.empty());
  ASSERT_FALSE(wrong.obstacles.empty());
  EXPECT_EQ(wrong.obstacles[0], "split 20:13 cannot deal 32 layers to 4 chunks");
  q = question("llama3-8b", 32, 2, 1);
  q.fix.schedule.reset();
  q.fix.split = ChunkEnds{16, 16};
  EXPECT_EQ(answer(q, Catalog()).obstacles.at(0), "split 16:16 needs pp above 1");
}

/// A stack that deals layers by its own rule is asked for no other.
TEST(Split, NotWhereTheStackCannotBeTold) {
  TrainQuestion q = question("llama3-8b", 32, 2, 4);
  q.stack = "nanotron";
  q.variants = true;
  q.top = 200;
  const TrainAnswer found = answer(q, Catalog());
  ASSERT_FALSE(found.plans.empty());
  for (const RankedPlan& p : found.plans) EXPECT_FALSE(p.plan.layout.split.chosen());
  q.fix.split = ChunkEnds{7, 7};
  EXPECT_TRUE(answer(q, Catalog()).plans.empty());
}

}  // namespace
}  // namespace scalecalc
