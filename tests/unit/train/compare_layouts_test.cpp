#include "train/compare_layouts.h"

#include <gtest/gtest.h>

#include "unit/train/sample_answer.h"

namespace scalecalc {
namespace {

TEST(ComparePlans, ALargerBatchIsNoSlowerPlan) {
  const RankedPlan best = sample_plan();
  RankedPlan other = best;
  other.plan.batch_seqs *= 2;
  other.plan.step_s *= 2;
  for (auto& [cause, seconds] : other.figures.time_s) seconds *= 2;
  const PlanComparison c = compare_plans(best, other);
  EXPECT_DOUBLE_EQ(c.slower, 0);
  EXPECT_DOUBLE_EQ(c.scale, 0.5);
  EXPECT_TRUE(c.time_s.empty());
  EXPECT_TRUE(c.memory_bytes.empty());
  EXPECT_TRUE(c.dimensions.empty());
}

TEST(ComparePlans, ListsWhatDiffersTheLargestFirst) {
  const RankedPlan best = sample_plan();
  RankedPlan other = best;
  other.plan.layout.tp = 8;
  other.plan.layout.remat = Remat::kFull;
  other.plan.slice = {.chips = 16, .shape = {2, 2, 4}, .wraps = {}};
  other.plan.step_s = 2.5;
  other.figures.time_s = {{"compute", 1.25}, {"hbm", 0.25}, {"tp_exposed", 0.75}, {"dp_exposed", 0.25}};
  other.figures.memory_bytes = {{"weights", 10e9}, {"optimizer", 45e9}, {"logits", 0}, {"reserve", 1e9}};
  const PlanComparison c = compare_plans(best, other);
  EXPECT_DOUBLE_EQ(c.slower, 0.25);
  ASSERT_EQ(c.time_s.size(), 3u);
  EXPECT_EQ(c.time_s[0].name, "tp_exposed");
  EXPECT_DOUBLE_EQ(c.time_s[0].change(), 0.5);
  EXPECT_EQ(c.time_s[1].name, "compute");  // of equals the order of the causes
  EXPECT_DOUBLE_EQ(c.time_s[1].change(), -0.25);
  ASSERT_EQ(c.memory_bytes.size(), 2u);
  EXPECT_EQ(c.memory_bytes[0].name, "optimizer");
  ASSERT_EQ(c.dimensions.size(), 3u);
  EXPECT_EQ(c.dimensions[0].name, "machine");
  EXPECT_EQ(c.dimensions[1].name, "tp");
  EXPECT_EQ(c.dimensions[2].name, "remat");
  EXPECT_EQ(c.dimensions[2].best, "selective");
  EXPECT_EQ(c.dimensions[2].other, "full");
}

}  // namespace
}  // namespace scalecalc
