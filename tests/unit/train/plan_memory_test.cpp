// What a plan says of its memory: the band, the verdict, the stages; and where its experts lie.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "plan/dimensions.h"
#include "plan/places.h"
#include "support/fixtures.h"
#include "train/figures.h"
#include "train/question.h"

namespace scalecalc {
namespace {

TEST(PlanMemory, TheVerdictLeavesRoomForTheErrorOfTheRules) {
  HardwareSpec hw = test::torus_chip();
  hw.hbm_capacity = Bytes(100);
  const StackMemory rules{.error = 0.25};
  EXPECT_DOUBLE_EQ(usable_share(rules), 0.8);  // 80 x 1.25 = 100
  const auto verdict = [&](double bytes) {
    return memory_verdict(hw, rules, MemoryUse<double>{.weights = Bytes(bytes)});
  };
  EXPECT_EQ(verdict(80), MemoryVerdict::kFits);
  EXPECT_EQ(verdict(80.1), MemoryVerdict::kTight);
  EXPECT_EQ(verdict(100), MemoryVerdict::kTight);
  EXPECT_EQ(verdict(100.1), MemoryVerdict::kDoesNotFit);
  hw.host_ram = Bytes(8);
  EXPECT_EQ(memory_verdict(hw, rules, MemoryUse<double>{.weights = Bytes(1), .host = Bytes(1e9)}),
            MemoryVerdict::kDoesNotFit);
}

TrainAnswer plans_pinned(const std::string& model, const LayoutFilter& fix) {
  TrainQuestion q{.model = model, .hardware = "h100-sxm", .chips = 64, .stack = "any", .fix = fix, .top = 4};
  return answer(q, Catalog());
}

double bytes_of(const std::vector<std::pair<std::string, double>>& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), 0.0, [](double sum, const auto& b) { return sum + b.second; });
}

TEST(PlanMemory, TheFullestStageIsThePlansMemoryAndTheLayersAreAllThere) {
  for (const auto& [fix, schedule] :
       {std::pair{LayoutFilter{.pp = 8}, "any"}, std::pair{LayoutFilter{.pp = 4, .schedule = Schedule::k1F1B}, "1f1b"},
        std::pair{LayoutFilter{.pp = 4, .schedule = Schedule::kInterleaved}, "chunks"},
        std::pair{LayoutFilter{.pp = 4, .schedule = Schedule::kDualPipe}, "both ends"},
        std::pair{LayoutFilter{.pp = 1}, "one stage"}}) {
    const TrainAnswer a = plans_pinned("llama3-8b", fix);  // 32 layers
    ASSERT_FALSE(a.plans.empty()) << schedule;
    for (const RankedPlan& p : a.plans) {
      const std::vector<StageMemory>& stages = p.figures.memory_by_stage;
      ASSERT_EQ(stages.size(), static_cast<std::size_t>(p.plan.layout.pp));
      double most = 0;
      std::int64_t layers = 0;
      for (const StageMemory& stage : stages) {
        most = std::max(most, bytes_of(stage.bytes));
        layers += stage.layers;
      }
      EXPECT_DOUBLE_EQ(most, p.plan.memory.total().value()) << schedule;
      EXPECT_EQ(layers, 32 * (p.plan.layout.schedule == Schedule::kDualPipe ? 2 : 1)) << schedule;
      EXPECT_DOUBLE_EQ(p.figures.memory_band.high, most * (1 + a.workload.memory.error));
    }
  }
}

TEST(PlanMemory, AStageBehindTheFirstKeepsFewerMicrobatchesIn1F1B) {
  const TrainAnswer a = plans_pinned("llama3-8b", {.pp = 4, .schedule = Schedule::k1F1B});
  const std::vector<StageMemory>& stages = a.plans.front().figures.memory_by_stage;
  const auto activations = [&](std::size_t stage) { return stages[stage].bytes[3].second; };
  ASSERT_EQ(stages[0].bytes[3].first, "activations");
  EXPECT_GT(activations(0), activations(1));
  EXPECT_GT(activations(1), activations(2));
}

TEST(PlanPlacement, ExpertsSayWhereTheyLie) {
  const TrainAnswer a = plans_pinned("mixtral-8x7b", {.ep = 8});
  ASSERT_FALSE(a.plans.empty());
  for (const RankedPlan& p : a.plans) {
    const Group group = expert_group(p.plan.placement, p.plan.layout);
    EXPECT_EQ(group.size(), 8);
    const auto& places = p.figures.placement;
    const auto ep =
        std::find_if(places.begin(), places.end(), [](const PlacedGroup& at) { return at.dimension == "ep"; });
    ASSERT_NE(ep, places.end());
    EXPECT_EQ(ep->where, placed_group("ep", a.hw, p.plan.slice, group).where);
    std::int64_t members = 1;
    for (const PlacedPart& part : ep->parts) members *= part.members;
    EXPECT_EQ(members, 8) << ep->where;
  }
  for (const RankedPlan& p : plans_pinned("mixtral-8x7b", {.ep = 1}).plans) {
    for (const PlacedGroup& group : p.figures.placement) EXPECT_NE(group.dimension, "ep");
  }
}

/// What is listed on a smaller machine is found again by its degrees, and by --why-not.
TEST(PlanPins, APlanOnFewerChipsIsReproduced) {
  TrainQuestion q{.model = "llama3.2-1b", .hardware = "h100-sxm", .chips = 24};
  q.batch_seqs = 32;
  q.seq = 2048;
  q.objective = Objective::kChips;
  const TrainAnswer a = answer(q, Catalog());
  ASSERT_FALSE(a.plans.empty());
  const Plan& small = a.plans.front().plan;
  ASSERT_LT(small.layout.chips(), 24);
  TrainQuestion again = q;
  again.objective = Objective::kTime;
  again.fix = pins_of(small.layout);
  const TrainAnswer b = answer(again, Catalog());
  // The search of fewer chips goes below half of them only where the fewest are asked for.
  if (small.layout.chips() * 2 > 24) {
    ASSERT_FALSE(b.plans.empty());
    EXPECT_EQ(b.plans.front().plan.layout, small.layout);
  }
  q.fix = pins_of(small.layout);
  const TrainAnswer c = answer(q, Catalog());
  ASSERT_FALSE(c.plans.empty());
  EXPECT_EQ(c.plans.front().plan.layout, small.layout);
  EXPECT_EQ(c.plans.front().plan.step_s, small.step_s);
  q.fix = {};
  q.why_not = {pins_of(small.layout)};
  const TrainAnswer d = answer(q, Catalog());
  EXPECT_EQ(d.why_not.front().outcome, LayoutOutcome::kBest);
}

}  // namespace
}  // namespace scalecalc
