#include "sensitivity/codesign.h"

#include <gtest/gtest.h>

#include "support/errors.h"

namespace scalecalc {
namespace {

TEST(SetRange, IsToldFromASingleValue) {
  EXPECT_TRUE(is_set_range("hw.hbm.bandwidth=2TB/s..8TB/s*2"));
  EXPECT_TRUE(is_set_range("hw.hbm.bandwidth=2TB/s,3TB/s"));
  EXPECT_FALSE(is_set_range("hw.hbm.bandwidth=3.35TB/s"));
  EXPECT_FALSE(is_set_range("hw.hbm..bandwidth"));
}

TEST(SetRange, HasTheValuesInTheirUnit) {
  const SetRange range = parse_set_range("hw.hbm.bandwidth=2TB/s..8TB/s*2");
  EXPECT_EQ(range.path, "hw.hbm.bandwidth");
  EXPECT_EQ(range.numbers, (std::vector<double>{2e12, 4e12, 8e12}));
  EXPECT_EQ(range.unit, kByteDim - kSecondDim);
  for (std::size_t i = 0; i < range.values.size(); ++i) {
    const auto again = parse_quantity(range.values[i], UnitKind::kBytesPerSecond);
    EXPECT_EQ(std::get<double>(again), range.numbers[i]);
  }
  EXPECT_EQ(parse_set_range("model.vocab=32000,64000").numbers, (std::vector<double>{32000, 64000}));
  EXPECT_EQ(parse_set_range("hw.compute.matmul.bf16=1PFLOP/s..2PFLOP/s*2").unit, kFlopDim - kSecondDim);
  EXPECT_EQ(parse_set_range("hw.network.0.latency=1us,2us").unit, kSecondDim);
  EXPECT_EQ(parse_set_range("hw.efficiency.hbm=40%,80%").numbers, (std::vector<double>{0.4, 0.8}));
}

TEST(SetRange, WrongOnesAreErrors) {
  EXPECT_THROW(parse_set_range("hw.hbm.bandwidth=2TB/s..8TBs"), UserError);
  EXPECT_THROW(parse_set_range("hw.hbm.bandwidth=8TB/s..2TB/s"), UserError);
}

TrainQuestion small_job() {
  TrainQuestion q{.model = "gpt2-1.5b", .hardware = "h100-sxm", .chips = 8};
  q.batch_seqs = 64;
  return q;
}

TEST(Codesign, IsAGridWhoseLastRangeMovesFastest) {
  const Codesign out = codesign(
      small_job(),
      {parse_set_range("hw.hbm.bandwidth=2TB/s,4TB/s"), parse_set_range("hw.compute.matmul.bf16=500TFLOP/s,1PFLOP/s")},
      nullptr, Catalog(), {});
  ASSERT_EQ(out.points.size(), 4U);
  EXPECT_EQ(out.points[1].at, (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(out.points[2].at, (std::vector<std::size_t>{1, 0}));
  EXPECT_LT(out.points[3].plan->plan.step_s, out.points[0].plan->plan.step_s);
  // More FLOP/s at the same HBM: what HBM does matters more.
  EXPECT_LT(out.points[1].elasticity.hbm, out.points[0].elasticity.hbm);
}

TEST(Codesign, EachPointIsTheQuestionWithThoseValues) {
  const Codesign out = codesign(small_job(), {parse_set_range("hw.hbm.bandwidth=2TB/s,4TB/s")}, nullptr, Catalog(), {});
  TrainQuestion same = small_job();
  same.set = {"hw.hbm.bandwidth=4TB/s"};
  EXPECT_EQ(out.points[1].plan->plan.step_s, answer(same, Catalog()).plans.front().plan.step_s);
}

TEST(Codesign, APlanMayBeKept) {
  const Plan plan = answer(small_job(), Catalog()).plans.front().plan;
  const Codesign out = codesign(small_job(), {parse_set_range("hw.hbm.bandwidth=1TB/s,2TB/s")}, &plan, Catalog(), {});
  for (const CodesignPoint& point : out.points) EXPECT_EQ(point.plan->plan.layout, plan.layout);
  EXPECT_GT(out.points[0].plan->plan.step_s, out.points[1].plan->plan.step_s);
}

TEST(Codesign, AMachineTooSmallHasNoPlan) {
  const Codesign out = codesign(small_job(), {parse_set_range("hw.hbm.capacity=1GB,80GB")}, nullptr, Catalog(), {});
  EXPECT_FALSE(out.points[0].plan);
  EXPECT_TRUE(out.points[1].plan);
}

TEST(Codesign, TooManyPointsAreRefused) {
  const SetRange range = parse_set_range("model.vocab=1000..50000+100");
  EXPECT_THROW(codesign(small_job(), {range, range}, nullptr, Catalog(), {}), UserError);
}

TEST(Codesign, StopsWhenAsked) {
  const Codesign out =
      codesign(small_job(), {parse_set_range("hw.hbm.bandwidth=2TB/s,4TB/s")}, nullptr, Catalog(), [] { return true; });
  EXPECT_FALSE(out.complete);
  EXPECT_TRUE(out.points.empty());
}

}  // namespace
}  // namespace scalecalc
