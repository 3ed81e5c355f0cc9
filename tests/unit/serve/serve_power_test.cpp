// Energy of serving: by what the decode step is to a chip.
#include "serve/serve_search.h"

#include <gtest/gtest.h>

namespace scalecalc {
namespace {

ServeTime<double> step() {
  ServeTime<double> out;
  out.compute = Seconds(0.1);
  out.weights = Seconds(0.4);
  out.kv = Seconds(0.2);
  out.collectives = Seconds(0.2);
  out.overhead = Seconds(0.1);
  return out;
}

TEST(ServingActivity, IsTheStepsAndThePrompts) {
  const StepActivity alone = serving_activity(step(), 0);
  EXPECT_NEAR(alone.computing, 0.1, 1e-12);
  EXPECT_NEAR(alone.reading, 0.6, 1e-12);
  EXPECT_NEAR(alone.waiting, 0.3, 1e-12);
  const StepActivity half = serving_activity(step(), 0.5);
  EXPECT_NEAR(half.computing, 0.55, 1e-12);
  EXPECT_NEAR(half.reading, 0.3, 1e-12);
  EXPECT_NEAR(serving_activity(step(), 1).computing, 1, 1e-12);
}

TEST(FacilityWatts, AreRatedUnlessAskedOtherwise) {
  HardwareSpec hw;
  hw.tdp = Watts(1000);
  hw.chips_per_host = 4;
  hw.host_power = Watts(6000);
  const StepActivity activity = serving_activity(step(), 0);
  EXPECT_EQ(facility_watts(hw, {}, activity), 1000);
  EXPECT_DOUBLE_EQ(facility_watts(hw, {.basis = PowerBasis::kServers, .pue = 1.2}, activity), 1.2 * 1500);
  EXPECT_NEAR(facility_watts(hw, {.basis = PowerBasis::kActivity}, activity), 1000 * (0.1 + 0.42 + 0.15) + 500, 1e-9);
}

TEST(PromptShare, IsWhatTheTimeOfARequestHasBesideItsSteps) {
  ServePoint point;
  point.chips = 16;
  point.decode_step_s = 0.02;
  point.request_s = 0.25;  // of ten tokens
  point.requests_per_s = 1;
  point.tokens_per_s = 10;
  EXPECT_NEAR(prompt_share(point), 0.2, 1e-12);
  point.pools = PoolSplit{.prefill_chips = 4, .decode_chips = 12};
  EXPECT_DOUBLE_EQ(prompt_share(point), 0.25);
}

}  // namespace
}  // namespace scalecalc
