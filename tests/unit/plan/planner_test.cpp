#include <gtest/gtest.h>

#include <set>

#include "plan/anything_fits.h"
#include "plan/request.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

TEST(Planner, EveryPlanIsLegalAndFits) {
  const HardwareSpec hw = test::switched_chip();
  const ModelSpec model = test::moe_model();
  PlanRequest request = test::request(model, hw, 64);
  request.top = 200;
  request.variants = true;
  std::set<std::string> seen;
  for (const Plan& p : plan(request).plans) {
    const Layout& l = p.layout;
    EXPECT_EQ(l.chips(), p.slice.chips);
    EXPECT_EQ(l.batch_seqs(), static_cast<std::int64_t>(p.batch_seqs));
    EXPECT_EQ(model.attention.heads % l.tp, 0);
    EXPECT_EQ(model.moe->experts % l.ep, 0);
    EXPECT_EQ(l.data() * l.cp * (l.tp / l.etp) % l.ep, 0);
    EXPECT_LE(l.pp, model.layers());
    EXPECT_LE(p.memory.total().value(), hw.hbm_capacity.value());
    EXPECT_NEAR(p.batch_seqs, request.workload.batch_seqs,
                request.workload.batch_seqs * request.workload.batch_tolerance);
    if (l.schedule == Schedule::kInterleaved) {
      EXPECT_EQ(l.grad_accum % l.pp, 0);
    }
  }
}

TEST(Planner, PinsAndLimitsHold) {
  const HardwareSpec hw = test::switched_chip();
  const ModelSpec model = test::dense_model();
  PlanRequest request = test::request(model, hw, 64);
  request.fix = {.tp = 4, .pp = 2, .zero = 1, .remat = Remat::kFull};
  request.max = {.cp = 2};
  const PlanResult result = plan(request);
  ASSERT_FALSE(result.plans.empty());
  for (const Plan& p : result.plans) {
    EXPECT_EQ(p.layout.tp, 4);
    EXPECT_EQ(p.layout.pp, 2);
    EXPECT_EQ(p.layout.zero, 1);
    EXPECT_EQ(p.layout.remat, Remat::kFull);
    EXPECT_LE(p.layout.cp, 2);
  }
  EXPECT_GT(result.stats.rejected[static_cast<std::size_t>(Reject::kPinned)], 0u);
}

/// Only expert ranks exchange, and another microbatch must be there to compute meanwhile; DualPipe always overlaps.
TEST(Planner, ExpertOverlapIsChosenWhereItCanRun) {
  HardwareSpec hw = test::switched_chip();
  hw.efficiency.overlap_ep.value = 0.1;
  hw.efficiency.overlap_ep_paired.value = 0.9;
  const ModelSpec model = test::moe_model();
  PlanRequest request = test::request(model, hw, 16);
  request.top = 400;
  request.variants = true;
  std::set<std::pair<bool, bool>> seen;
  const auto check = [&](const std::optional<bool>& pin) {
    request.fix.ep_overlap = pin;
    for (const Plan& p : plan(request).plans) {
      const Layout& l = p.layout;
      const bool dual = l.schedule == Schedule::kDualPipe;
      seen.emplace(l.ep_overlap, dual);
      if (l.ep_overlap) {
        EXPECT_GT(l.ep, 1);
        EXPECT_GT(l.grad_accum, 1);
      } else {
        EXPECT_FALSE(dual && l.ep > 1);
      }
      if (pin && l.ep > 1) {
        EXPECT_EQ(l.ep_overlap, *pin);
      }
    }
  };
  check(std::nullopt);
  EXPECT_TRUE(seen.contains({true, false}) && seen.contains({false, false}));
  check(true);
  check(false);
  request.fix = {.tp = 1, .cp = 1, .pp = 2, .vpp = 1, .ep = 8, .zero = 1, .micro_batch_seqs = 1, .remat = Remat::kNone};
  request.fix.schedule = Schedule::k1F1B;
  request.fix.ep_overlap = true;
  const Plan on = plan(request).plans.at(0);
  request.fix.ep_overlap = false;
  const Plan off = plan(request).plans.at(0);
  EXPECT_LT(on.time.ep.value(), off.time.ep.value() / 2);
  EXPECT_GT(on.memory.activations.value(), off.memory.activations.value()) << "a layer of the other microbatch";
  EXPECT_GT(on.memory.buffers.value(), off.memory.buffers.value()) << "its tokens on their way to experts";
}

TEST(Planner, NothingFitsReportsTheNearestMiss) {
  HardwareSpec hw = test::switched_chip();
  hw.hbm_capacity = Bytes(1e8);
  const ModelSpec model = test::dense_model();
  const PlanResult result = plan(test::request(model, hw, 8));
  EXPECT_TRUE(result.plans.empty());
  ASSERT_TRUE(result.nearest_miss.has_value());
  EXPECT_GT(result.nearest_miss->memory.total().value(), 1e8);
}

TEST(Planner, BatchSmallerThanTheRanksIsCountedNotRun) {
  const HardwareSpec hw = test::switched_chip();
  const ModelSpec model = test::dense_model();
  PlanRequest request = test::request(model, hw, 64);
  request.workload.batch_seqs = 4;
  const PlanResult result = plan(request);
  for (const Plan& p : result.plans) EXPECT_LE(p.layout.data(), 4);
  EXPECT_GT(result.stats.rejected[static_cast<std::size_t>(Reject::kBatchSmall)], 0u);
}

TEST(Planner, ABatchThatDoesNotDivideIsAdjustedWithinTolerance) {
  const HardwareSpec hw = test::switched_chip();
  const ModelSpec model = test::dense_model();
  PlanRequest request = test::request(model, hw, 56);
  request.workload.batch_seqs = 64;
  request.fix = {.tp = 1, .cp = 1, .pp = 1};
  const PlanResult result = plan(request);
  ASSERT_FALSE(result.plans.empty());
  EXPECT_EQ(result.plans.front().batch_seqs, 56);
}

TEST(Planner, OnePlannerAnswersSeveralGoals) {
  const HardwareSpec hw = test::switched_chip();
  const ModelSpec model = test::dense_model();
  PlanRequest request = test::request(model, hw, 64);
  const std::vector<Slice> half = slices_of(hw, 32, 1);
  request.slices.insert(request.slices.end(), half.begin(), half.end());
  Planner planner(request);
  const PlanResult fastest = planner.best({.objective = Objective::kTime, .top = 3});
  const PlanResult cheapest = planner.best({.objective = Objective::kCost, .top = 1, .fewer_chips = 64});
  ASSERT_EQ(cheapest.plans.size(), 1U);
  EXPECT_EQ(cheapest.plans[0].slice.chips, 32);
  const PlanResult again = planner.best({.objective = Objective::kTime, .top = 3});
  ASSERT_EQ(again.plans.size(), fastest.plans.size());
  for (std::size_t i = 0; i < again.plans.size(); ++i) EXPECT_EQ(again.plans[i].layout, fastest.plans[i].layout);
  EXPECT_EQ(again.stats.candidates, fastest.stats.candidates);
  EXPECT_LE(again.stats.evaluated, fastest.stats.evaluated) << "what was proved is not looked at again";
}

TEST(Planner, PinsThatNoRecipeMeetsLeaveNoPlan) {
  const HardwareSpec hw = test::switched_chip();
  const ModelSpec model = test::dense_model();
  PlanRequest request = test::request(model, hw, 8);
  request.fix.remat = Remat::kNone;
  request.fix.remat_layers = 1;  // of no policy
  const PlanResult result = plan(request);
  EXPECT_TRUE(result.plans.empty());
  EXPECT_EQ(result.stats.candidates, 0U);
  EXPECT_FALSE(anything_fits(request));
}

TEST(Planner, NothingBelowTheLimitIsNoPlan) {
  const HardwareSpec hw = test::switched_chip();
  const ModelSpec model = test::dense_model();
  const PlanRequest request = test::request(model, hw, 8);
  Planner planner(request);
  const Plan best = planner.best({.top = 1}).plans.at(0);
  const double goal = best.step_s / (best.batch_seqs * static_cast<double>(request.workload.seq));
  EXPECT_TRUE(planner.best({.top = 1, .below = goal}).plans.empty());
  EXPECT_EQ(planner.best({.top = 1, .below = goal * 1.0001}).plans.size(), 1U);
}

TEST(Planner, TheSameQuestionGivesTheSameAnswer) {
  const HardwareSpec hw = test::torus_chip();
  const ModelSpec model = test::dense_model();
  const PlanRequest request = test::request(model, hw, 512);
  const PlanResult a = plan(request);
  const PlanResult b = plan(request);
  ASSERT_EQ(a.plans.size(), b.plans.size());
  for (std::size_t i = 0; i < a.plans.size(); ++i) {
    EXPECT_EQ(a.plans[i].layout, b.plans[i].layout);
    EXPECT_EQ(a.plans[i].step_s, b.plans[i].step_s);
    EXPECT_EQ(a.plans[i].placement.dims, b.plans[i].placement.dims);
  }
  EXPECT_EQ(a.stats.candidates, b.stats.candidates);
}

TEST(Planner, OneChipNeedsNoNetwork) {
  const HardwareSpec joined = test::switched_chip();
  HardwareSpec alone = joined;
  alone.network.clear();
  const ModelSpec model = test::moe_model();
  const PlanResult with = plan(test::request(model, joined, 1));
  const PlanResult without = plan(test::request(model, alone, 1));
  ASSERT_FALSE(without.plans.empty());
  ASSERT_EQ(with.plans.size(), without.plans.size());
  for (std::size_t i = 0; i < with.plans.size(); ++i) {
    EXPECT_DOUBLE_EQ(with.plans[i].step_s, without.plans[i].step_s);
  }
}

}  // namespace
}  // namespace scalecalc
