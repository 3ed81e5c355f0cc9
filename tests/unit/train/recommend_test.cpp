#include "train/recommend.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plan/mechanisms.h"
#include "plan/ranking.h"

namespace scalecalc {
namespace {

const Catalog& shipped() {
  static const Catalog kCatalog;
  return kCatalog;
}

TrainAnswer asked(double tie, Objective objective = Objective::kTime) {
  TrainQuestion q{.model = "llama3-8b", .hardware = "h100-sxm", .chips = 64};
  q.objective = objective;
  q.variants = true;
  q.top = 400;
  q.tie = tie;
  return answer(q, shipped());
}

bool unmeasured(const RankedPlan& p) {
  const auto& all = p.figures.evidence;
  return std::any_of(all.begin(), all.end(), [](const MechanismEvidence& e) { return !e.measured; });
}

double token_s(const RankedPlan& p) { return 1 / p.figures.tokens_per_s; }

TEST(Recommended, RowsAreStrictlyInOrder) {
  const TrainAnswer a = asked(0.02);
  for (std::size_t i = 1; i < a.plans.size(); ++i) EXPECT_LE(token_s(a.plans[i - 1]), token_s(a.plans[i]));
}

TEST(Recommended, IsTheSimplestWithinTheTieThatLeavesRoom) {
  for (const double tie : {0.0, 0.02, 0.1}) {
    const TrainAnswer a = asked(tie);
    ASSERT_TRUE(a.recommended.has_value());
    const Recommendation& r = *a.recommended;
    ASSERT_TRUE(r.has_room);
    EXPECT_LE(r.plan.plan.memory.total().value(), r.usable * a.hw.hbm_capacity.value());
    double best = 0;  // of those with room that use what was measured
    for (const RankedPlan& p : a.plans) {
      if (unmeasured(p)) continue;
      if (p.plan.memory.total().value() > r.usable * a.hw.hbm_capacity.value()) continue;
      if (best == 0) best = token_s(p);
      EXPECT_TRUE(token_s(p) > (1 + tie) * best || complexity(p.plan.layout) >= complexity(r.plan.plan.layout));
    }
    EXPECT_LE(token_s(r.plan), (1 + tie) * best);
    EXPECT_NEAR(r.behind, token_s(r.plan) / token_s(a.plans.front()) - 1, 1e-12);
  }
}

TEST(Recommended, AWiderTieIsNeverLessSimple) {
  EXPECT_GE(complexity(asked(0).recommended->plan.plan.layout), complexity(asked(0.02).recommended->plan.plan.layout));
}

TEST(Recommended, UnmeasuredMechanismsMustBringMoreThanTheyCouldBeWrongBy) {
  TrainQuestion q{.model = "mixtral-8x7b", .hardware = "tpu-v5p", .chips = 64};  // no run there overlaps experts
  q.top = 400;
  q.variants = true;
  const TrainAnswer a = answer(q, shipped());
  double best = 0;
  double best_measured = 0;
  for (const RankedPlan& p : a.plans) {
    if (p.plan.memory.total().value() > a.recommended->usable * a.hw.hbm_capacity.value()) continue;
    if (best == 0) best = token_s(p);
    if (best_measured == 0 && !unmeasured(p)) best_measured = token_s(p);
  }
  ASSERT_GT(best_measured, 0);
  const Recommendation& r = *a.recommended;
  EXPECT_EQ(unmeasured(r.plan), best_measured > (1 + kUnmeasuredGain) * best);
  // A faster plan that was left aside need not be among those shown: where only a chip's last bytes are kept free, it
  // may be one that moves its optimizer to the host, which those shown need not.
  if (!unmeasured(r.plan) && best_measured > best) {
    EXPECT_TRUE(r.measured_only);
  }
  EXPECT_EQ(r.measured_only, !r.aside.empty());
  EXPECT_GE(token_s(r.plan), best);
  for (const MechanismEvidence& e : r.plan.figures.evidence) {
    if (e.measured) continue;
    for (const std::string& aside : r.aside) EXPECT_FALSE(aside.starts_with(e.mechanism)) << aside;
  }
}

TEST(Recommended, RankedByMemoryItIsPlanOne) {
  const TrainAnswer a = asked(0.02, Objective::kMemory);
  EXPECT_EQ(a.recommended->rank, 1U);
}

TEST(Recommended, WhereNothingLeavesRoomItSaysSo) {
  // 5 % of 85.9 GB are asked for; a chip with just the memory of its best plan has none.
  TrainQuestion q{.model = "llama3-8b", .hardware = "h100-sxm", .chips = 8};
  q.fix = {.fsdp = 8,
           .tp = 1,
           .cp = 1,
           .pp = 1,
           .zero = 3,
           .micro_batch_seqs = 1,
           .remat_layers = 0,
           .remat = Remat::kFull,
           .offload = 0,
           .loss = LossKind::kWhole};
  const double needed = answer(q, shipped()).plans.at(0).plan.memory.total().value();
  q.set = {"hw.hbm.capacity=" + std::to_string(static_cast<long long>(needed * 1.01)) + "B"};
  const TrainAnswer a = answer(q, shipped());
  ASSERT_TRUE(a.recommended.has_value());
  EXPECT_FALSE(a.recommended->has_room);
}

}  // namespace
}  // namespace scalecalc
