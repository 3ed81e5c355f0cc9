#include "sensitivity/elasticity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/fixtures.h"

namespace scalecalc {
namespace {

struct Planned {
  Planned() {
    request = test::request(model, hw, 64);
    plan = scalecalc::plan(request).plans.at(0);
  }
  ModelSpec model = test::dense_model();
  HardwareSpec hw = test::torus_chip();
  PlanRequest request;
  Plan plan;
};

const InputElasticity& of(const std::vector<InputElasticity>& all, std::string_view name) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const InputElasticity& e) { return e.input.name == name; });
  EXPECT_NE(found, all.end()) << name;
  return *found;
}

TEST(StepAt, AFactorOfOneIsThePlan) {
  const Planned p;
  const StepAt at = step_at(p.request, p.plan, {"hw.hbm.bandwidth"});
  EXPECT_EQ(at.step_s, p.plan.step_s);
  EXPECT_TRUE(at.fits);
  EXPECT_EQ(at.elasticity, at.slope_s / at.step_s);
}

TEST(StepAt, SeveralInputsMoveTogether) {
  const Planned p;
  const StepAt both = step_at(p.request, p.plan, {"hw.hbm.bandwidth", "hw.compute.matmul.bf16"});
  const double apart = step_at(p.request, p.plan, {"hw.hbm.bandwidth"}).slope_s +
                       step_at(p.request, p.plan, {"hw.compute.matmul.bf16"}).slope_s;
  EXPECT_NEAR(both.slope_s, apart, 1e-12 * p.plan.step_s);
}

TEST(StepAt, MemoryIsReadAtTheFactorToo) {
  const Planned p;
  EXPECT_FALSE(step_at(p.request, p.plan, {"layers"}, 1000).fits);
}

/// An ideal chip that only computes: the step is work / rate and nothing else.
TEST(Elasticities, OfAComputeBoundStepIsMinusOne) {
  Planned p;
  p.hw.hbm_bandwidth = BytesPerSecond(1e18);
  p.hw.vector_peak = FlopsPerSecond(1e24);
  p.request = test::request(p.model, p.hw, 1);
  p.hw.hbm_capacity = Bytes(1e15);
  p.plan = plan(p.request).plans.at(0);
  const auto all = elasticities(p.request, p.plan, 0.2, false);
  EXPECT_NEAR(of(all, "hw.compute.matmul.bf16").step_time, -1, 1e-4);
  EXPECT_NEAR(of(all, "hw.compute.matmul.bf16").high.change, 1 / 1.2 - 1, 1e-4);
  EXPECT_NEAR(of(all, "batch").step_time, 1, 1e-3);
  EXPECT_NEAR(of(all, "batch").tokens_per_s, 0, 1e-3);
  EXPECT_EQ(all.front().input.name, "hw.compute.matmul.bf16");
}

TEST(Elasticities, AreSortedByTheirSwingAndObeyTheSumRule) {
  const Planned p;
  const auto all = elasticities(p.request, p.plan, 0.2, true);
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end(), [](const InputElasticity& a, const InputElasticity& b) {
    return a.widest() > b.widest();
  }));
  EXPECT_NEAR(sum_rule(all).sum(), -1, 1e-9);
}

TEST(Elasticities, CoefficientsOnlyWhenAsked) {
  const Planned p;
  const auto few = elasticities(p.request, p.plan, 0.2, false);
  EXPECT_TRUE(std::none_of(few.begin(), few.end(),
                           [](const InputElasticity& e) { return e.input.kind == InputKind::kCoefficient; }));
  const auto all = elasticities(p.request, p.plan, 0.2, true);
  EXPECT_EQ(of(all, "efficiency.hbm").high.value, 1) << "a share of the peak ends at it";
  EXPECT_EQ(of(all, "efficiency.hbm").high.change, 0);
}

/// Every layer of every stage counts: the elasticity by layers and by what stands outside them make up the whole.
TEST(Elasticities, ByLayersIsTheirShareOfTheStep) {
  Planned p;
  p.hw.hbm_capacity = Bytes(1e15);
  p.request = test::request(p.model, p.hw, 1);
  p.plan = plan(p.request).plans.at(0);
  const double once = p.plan.step_s;
  const double share = of(elasticities(p.request, p.plan, 0.2, false), "model.layers").step_time;
  ModelSpec deeper = test::dense_model(16);
  PlanRequest request = p.request;
  request.model = &deeper;
  const double twice = read_plan(Reader<double>{}, request, p.plan).time.total().value();
  EXPECT_NEAR(share, twice / once - 1, 1e-9);  // linear in layers: one stage, nothing hides
}

}  // namespace
}  // namespace scalecalc
