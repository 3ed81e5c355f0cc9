#include "train/curve.h"

#include <gtest/gtest.h>

#include "base/diagnostic.h"

namespace scalecalc {
namespace {

/// A plan that uses `used` chips, makes `rate` tokens a second, and spends its step of 1 s on these causes.
CurvePoint point(std::int64_t chips, std::int64_t used, double rate,
                 std::vector<std::pair<std::string, double>> causes = {{"compute", 1}}) {
  CurvePoint out{.chips = chips, .plan = RankedPlan{}};
  out.plan->plan.layout.dp = used;
  out.plan->plan.step_s = 1;
  out.plan->figures.tokens_per_s = rate;
  out.plan->figures.time_s = std::move(causes);
  return out;
}

CurvePoint none(std::int64_t chips) { return {.chips = chips, .reason = "no such machine"}; }

std::vector<CurvePoint> compared(std::vector<CurvePoint> points, bool may_idle = true) {
  compare_points(points, may_idle);
  return points;
}

TEST(ComparePoints, EfficiencyIsOfTheFirstCountThatHasAPlan) {
  const auto points = compared({none(1), point(2, 2, 10), point(4, 4, 18), point(8, 8, 20)});
  EXPECT_EQ(points[0].speed_up, 0);
  EXPECT_DOUBLE_EQ(points[1].efficiency, 1);
  EXPECT_DOUBLE_EQ(points[2].speed_up, 1.8);
  EXPECT_DOUBLE_EQ(points[2].efficiency, 0.9);
  EXPECT_DOUBLE_EQ(points[3].efficiency, 0.5);
}

TEST(ComparePoints, AFasterPlanOfFewerChipsStandsForMore) {
  const auto points = compared({point(2, 2, 10), point(4, 4, 9), none(6), point(8, 8, 9.5)});
  for (const std::size_t i : {1U, 3U}) {
    EXPECT_EQ(points[i].plan->plan.layout.chips(), 2);
    EXPECT_DOUBLE_EQ(points[i].speed_up, 1);
  }
  EXPECT_DOUBLE_EQ(points[3].efficiency, 0.25);
  EXPECT_FALSE(points[2].plan);
}

TEST(ComparePoints, NotWhereChipsMayNotIdle) {
  const auto points = compared({point(2, 2, 10), point(4, 4, 9)}, false);
  EXPECT_EQ(points[1].plan->plan.layout.chips(), 4);
  EXPECT_DOUBLE_EQ(points[1].speed_up, 0.9);
}

TEST(LinearEnd, IsTheLargestCountOfEnoughEfficiencyAndNamesWhatGrewMost) {
  const auto points = compared({point(1, 1, 10, {{"compute", 0.95}, {"fsdp_exposed", 0.03}, {"bubble", 0.02}}),
                                point(2, 2, 17.9, {{"compute", 0.9}, {"fsdp_exposed", 0.08}, {"bubble", 0.02}}),
                                point(4, 4, 36, {{"compute", 0.91}, {"fsdp_exposed", 0.03}, {"bubble", 0.06}}),
                                point(8, 8, 60, {{"compute", 0.75}, {"fsdp_exposed", 0.15}, {"bubble", 0.1}})});
  const auto end = linear_end(points);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->last, 2U);  // the dip at 2 chips is not the end
  EXPECT_EQ(end->next, 3U);
  EXPECT_EQ(end->cause, "fsdp_exposed");
  EXPECT_DOUBLE_EQ(end->share_before, 0.03);
  EXPECT_DOUBLE_EQ(end->share_after, 0.15);
}

TEST(LinearEnd, IdleChipsAreACause) {
  const auto end = linear_end(compared({point(4, 4, 10), point(8, 5, 11, {{"compute", 0.9}, {"bubble", 0.1}})}));
  ASSERT_TRUE(end);
  EXPECT_EQ(end->cause, "idle");
  EXPECT_DOUBLE_EQ(end->share_before, 0);
  EXPECT_DOUBLE_EQ(end->share_after, 0.375);
}

TEST(LinearEnd, PassesOverCountsWithoutAPlan) {
  const auto end = linear_end(compared({point(4, 4, 10), none(6), point(8, 8, 11, {{"bubble", 1}})}));
  ASSERT_TRUE(end);
  EXPECT_EQ(end->next, 2U);
  EXPECT_EQ(end->cause, "bubble");
}

TEST(LinearEnd, WithoutAnyPlanBeyondThereIsAReasonAndNoCause) {
  const auto end = linear_end(compared({point(4, 4, 10), none(8), none(16)}));
  ASSERT_TRUE(end);
  EXPECT_EQ(end->next, 1U);
  EXPECT_EQ(end->cause, "");
}

TEST(LinearEnd, MayLieBeyondTheRange) {
  const auto end = linear_end(compared({point(4, 4, 10), point(8, 8, 19)}));
  ASSERT_TRUE(end);
  EXPECT_EQ(end->last, 1U);
  EXPECT_FALSE(end->next);
}

TEST(LinearEnd, NeedsAPlanAndTwoPoints) {
  EXPECT_FALSE(linear_end(compared({none(1), none(2)})));
  EXPECT_FALSE(linear_end(compared({point(4, 4, 10)})));
}

CurveQuestion small_question(std::vector<std::int64_t> chips, const char* hw = "h100-sxm") {
  return {.train = {.model = "llama3-8b", .hardware = hw, .chips = chips.back()}, .chips = chips};
}

TEST(TrainCurve, APointIsTheBestPlanOfItsCountAlone) {
  CurveQuestion q = small_question({8, 32});
  q.pareto = true;
  const TrainCurve curve = train_curve(q, Catalog());
  ASSERT_EQ(curve.points.size(), 2U);
  for (const CurvePoint& p : curve.points) {
    TrainQuestion alone = q.train;
    alone.chips = p.chips;
    const TrainAnswer a = answer(alone, Catalog());
    ASSERT_TRUE(p.plan);
    EXPECT_EQ(p.plan->plan.layout, a.plans.front().plan.layout);
    EXPECT_EQ(p.plan->figures.run->cost_usd, a.plans.front().figures.run->cost_usd);
  }
  EXPECT_FALSE(curve.front.empty());
  EXPECT_EQ(curve.machine_sizes, 6U);  // 8, 7, 6 and 5 in one host; 32 and 24, which fill hosts
}

TEST(TrainCurve, CountsWithoutAPlanKeepTheirReason) {
  const TrainCurve torus = train_curve(small_question({64, 100, 16384}, "tpu-v5p"), Catalog());
  EXPECT_TRUE(torus.points[0].plan);
  EXPECT_EQ(torus.points[0].status, PointStatus::kPlanned);
  EXPECT_EQ(torus.points[1].status, PointStatus::kNotBuilt);
  EXPECT_EQ(torus.points[1].reason, "no tpu-v5p slice has 100 chips; the nearest that exist: --chips 64 or 128");
  EXPECT_EQ(torus.points[2].reason,
            "16,384 chips are more than one tpu-v5p pod of 8,960; join pods over its dcn network with --slices 4");
  CurveQuestion without_host = small_question({1, 2});
  without_host.train.fix.offload = 0;
  const TrainCurve short_of_memory = train_curve(without_host, Catalog());
  EXPECT_EQ(short_of_memory.points[0].status, PointStatus::kOutOfMemory);
  EXPECT_TRUE(short_of_memory.points[0].reason.starts_with("the nearest layout needs "))
      << short_of_memory.points[0].reason;
}

TEST(TrainCurve, NoSuchCountAtAllIsAWrongQuestion) {
  EXPECT_THROW(train_curve(small_question({9, 10}), Catalog()), UserError);
}

TEST(TrainCurve, AnInterruptedCurveSaysSoAtEachPoint) {
  const TrainCurve curve = train_curve(small_question({8, 16}), Catalog(), [] { return true; });
  for (const CurvePoint& p : curve.points) EXPECT_EQ(p.status, PointStatus::kInterrupted);
}

}  // namespace
}  // namespace scalecalc
