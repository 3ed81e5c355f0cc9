// What became of a layout somebody had in mind: every outcome, on questions small enough to search in an instant.
#include "train/layout_judge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "plan/dimensions.h"

namespace scalecalc {
namespace {

TrainQuestion small() {
  return {.model = "llama3-8b", .hardware = "h100-sxm", .chips = 64, .stack = "megatron", .top = 5};
}

TrainAnswer ask_with_pins(TrainQuestion question, const LayoutFilter& pins) {
  question.why_not = {pins};
  return answer(question, Catalog());
}

LayoutVerdict verdict(const TrainQuestion& question, const LayoutFilter& pins) {
  return ask_with_pins(question, pins).why_not.at(0);
}

bool has(const std::vector<std::string>& lines, const std::string& text) {
  return std::any_of(lines.begin(), lines.end(), [&](const auto& l) { return l.find(text) != std::string::npos; });
}

double total_change(const std::vector<ComparedFigure>& figures) {
  double out = 0;
  for (const ComparedFigure& f : figures) out += f.change();
  return out;
}

TEST(WhyNot, ADegreeTheHeadsDoNotDivideByIsIllegalWithTheNearestLegal) {
  const LayoutVerdict v = verdict(small(), {.tp = 64});
  EXPECT_EQ(v.outcome, LayoutOutcome::kIllegal);
  EXPECT_EQ(v.obstacles, (std::vector<std::string>{"tp 64 does not divide the 32 attention heads"}));
  EXPECT_EQ(v.remedies, (std::vector<std::string>{"tp: the nearest legal is 32"}));
  EXPECT_FALSE(v.plan || v.against_best || v.rank);
}

TEST(WhyNot, OfTwoIllegalPinsEachIsNamedWithItsNearest) {
  const LayoutVerdict v = verdict(small(), {.tp = 3, .pp = 64});
  EXPECT_EQ(v.outcome, LayoutOutcome::kIllegal);
  EXPECT_TRUE(has(v.obstacles, "tp 3 does not divide the 32 attention heads"));
  EXPECT_TRUE(has(v.obstacles, "pp 64 is more than the 32 layers"));
  EXPECT_TRUE(has(v.remedies, "tp: the nearest legal are 2 and 4"));
  EXPECT_TRUE(has(v.remedies, "pp: the nearest legal is 32"));
}

TEST(WhyNot, EveryIllegalLayoutNamesARule) {
  const std::pair<LayoutFilter, const char*> cases[] = {
      {{.fsdp = 8, .zero = 0}, "fsdp 8 shards weights, which zero 0 does not"},
      {{.dp = 64, .fsdp = 1, .cp = 1, .zero = 3}, "dp 64 counts whole copies: ZeRO-3 over 64 ranks is fsdp=64"},
      {{.pp = 4, .vpp = 2, .schedule = Schedule::k1F1B}, "vpp 2 is the interleaved schedule or GPipe, not 1f1b"},
      {{.pp = 1, .schedule = Schedule::kInterleaved}, "the interleaved schedule needs pp above 1"},
      {{.ep = 2}, "has no experts"},
      {{.dp = 64, .tp = 1, .cp = 1, .pp = 1, .micro_batch_seqs = 3},
       "mb 3 does not divide the 8 sequences of each data rank"},
      {{.tp = 1, .cp = 1, .pp = 1, .micro_batch_seqs = 2, .grad_accum = 2},
       "mb 2 x ga 2 = 4 sequences, not the 8 sequences of each data rank"},
      {{.tp = 5}, "does not divide 64 chips"},
      {{.pp = 4, .vpp = 2, .grad_accum = 2}, "2 is no multiple of 4"},
      {{.tp = 1, .cp = 1, .pp = 4, .vpp = 2, .micro_batch_seqs = 16},
       "microbatches in groups of pp 4: at mb 16 the 32 sequences of each data rank make no whole group"},
  };
  for (const auto& [pins, rule] : cases) {
    const LayoutVerdict v = verdict(small(), pins);
    EXPECT_EQ(v.outcome, LayoutOutcome::kIllegal) << pins_text(pins);
    EXPECT_TRUE(has(v.obstacles, rule)) << pins_text(pins) << ": " << (v.obstacles.empty() ? "" : v.obstacles.front());
  }
}

TEST(WhyNot, Zero1WithinGroupsOfDataRanksIsLegal) {
  const LayoutVerdict v = verdict(small(), {.dp = 8, .fsdp = 8, .tp = 1, .cp = 1, .pp = 1, .zero = 1});
  EXPECT_NE(v.outcome, LayoutOutcome::kIllegal);
  ASSERT_TRUE(v.plan);
  EXPECT_EQ(v.plan->plan.layout.fsdp, 8);
}

TEST(WhyNot, ALegalLayoutNeverGetsAnObstacle) {
  TrainQuestion q{.model = "mixtral-8x7b", .hardware = "tpu-v5p", .chips = 64, .top = 20};
  q.variants = true;
  for (const RankedPlan& plan : answer(q, Catalog()).plans) {
    const LayoutVerdict v = verdict(q, pins_of(plan.plan.layout));
    EXPECT_NE(v.outcome, LayoutOutcome::kIllegal) << pins_text(v.pins);
    EXPECT_TRUE(v.obstacles.empty());
  }
}

TEST(WhyNot, OutOfMemorySaysTheLeastAndWhatWasSeenToFit) {
  TrainQuestion q{.model = "llama3-70b", .hardware = "h100-sxm", .chips = 64, .top = 3};
  const TrainAnswer a = ask_with_pins(q, {.tp = 1, .pp = 1, .zero = 1});
  const LayoutVerdict& v = a.why_not.at(0);
  ASSERT_EQ(v.outcome, LayoutOutcome::kOutOfMemory);
  ASSERT_TRUE(v.plan && v.against_best);
  EXPECT_GT(v.plan->plan.memory.total().value(), a.hw.hbm_capacity.value());
  EXPECT_EQ(v.plan->plan.layout.tp, 1);
  ASSERT_FALSE(v.against_best->memory_bytes.empty());
  EXPECT_EQ(v.against_best->memory_bytes.front().name, "gradients");
  ASSERT_TRUE(has(v.remedies, "with zero 3 instead of 1 it fits"));
  // What is offered was searched: asking for it fits.
  q.fix = {.tp = 1, .pp = 1, .zero = 3};
  EXPECT_FALSE(answer(q, Catalog()).plans.empty());
}

TEST(WhyNot, AnOutrankedLayoutIsTakenApartAgainstPlanOne) {
  const TrainAnswer a = ask_with_pins(small(), {.tp = 8});
  const LayoutVerdict& v = a.why_not.at(0);
  ASSERT_EQ(v.outcome, LayoutOutcome::kOutranked);
  ASSERT_TRUE(v.plan && v.against_best);
  EXPECT_EQ(v.plan->plan.layout.tp, 8);
  const PlanComparison& c = *v.against_best;
  EXPECT_GT(c.slower, 0.01);
  const double best = a.plans.front().plan.step_s;
  EXPECT_NEAR(total_change(c.time_s), c.slower * best, 1e-9);
  EXPECT_TRUE(std::is_sorted(c.time_s.begin(), c.time_s.end(),
                             [](const auto& x, const auto& y) { return std::abs(x.change()) > std::abs(y.change()); }));
  EXPECT_NEAR(total_change(c.memory_bytes),
              v.plan->plan.memory.total().value() - a.plans.front().plan.memory.total().value(), 1);
  EXPECT_TRUE(std::any_of(c.dimensions.begin(), c.dimensions.end(),
                          [](const auto& d) { return d.name == "tp" && d.best == "1" && d.other == "8"; }));
}

TEST(WhyNot, LargerBatchesAreNoSlowerPlans) {
  TrainQuestion q = small();
  q.batch_seqs = 500;  // plans may run 448 to 512
  const TrainAnswer a = ask_with_pins(q, {.tp = 8});
  const PlanComparison& c = *a.why_not.at(0).against_best;
  const RankedPlan& theirs = *a.why_not.at(0).plan;
  EXPECT_DOUBLE_EQ(c.slower, a.plans.front().figures.tokens_per_s / theirs.figures.tokens_per_s - 1);
}

TEST(WhyNot, APlanWithinAPerCentOfTheBestIsATie) {
  const TrainAnswer a = ask_with_pins(small(), {.cp = 1});
  const LayoutVerdict& v = a.why_not.at(0);
  EXPECT_EQ(v.outcome, LayoutOutcome::kTied);
  EXPECT_LE(v.against_best->slower, 0.01);
  ASSERT_TRUE(v.rank.has_value());
  EXPECT_EQ(a.plans.at(*v.rank - 1).plan.layout, v.plan->plan.layout);
}

TEST(WhyNot, TheBestPlanItselfIsRecognized) {
  const LayoutVerdict v = verdict(small(), {.tp = 1, .cp = 2, .pp = 1});
  EXPECT_EQ(v.outcome, LayoutOutcome::kBest);
  EXPECT_EQ(v.rank, 1u);
}

TEST(WhyNot, NothingThatFitsLeavesNothingToCompareWith) {
  const LayoutVerdict v =
      verdict({.model = "llama3-70b", .hardware = "h100-sxm", .chips = 4, .fix = {.offload = 0}}, {.tp = 4});
  EXPECT_EQ(v.outcome, LayoutOutcome::kOutOfMemory);
  EXPECT_FALSE(v.against_best.has_value());
  EXPECT_TRUE(has(v.remedies, "--chips "));
}

TEST(WhyNot, EveryObjectiveJudgesByWhatItRanks) {
  for (const Objective objective : {Objective::kTime, Objective::kCost, Objective::kMemory, Objective::kChips}) {
    TrainQuestion q = small();
    q.objective = objective;
    const TrainAnswer a = answer(q, Catalog());
    for (const RankedPlan& plan : a.plans) {
      const LayoutVerdict v = verdict(q, pins_of(plan.plan.layout));
      if (plan.plan.slice.chips != 64) continue;  // pinned data ranks ask about the whole machine
      ASSERT_TRUE(v.rank.has_value());
      EXPECT_EQ(*v.rank == 1, v.outcome == LayoutOutcome::kBest);
      EXPECT_NE(v.outcome, LayoutOutcome::kBetter);
    }
  }
}

}  // namespace
}  // namespace scalecalc
