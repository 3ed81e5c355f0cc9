#include "train/run_class.h"

#include <gtest/gtest.h>

#include <cmath>

namespace scalecalc {
namespace {

TEST(RunClasses, TheFirstThatHoldsNamesTheRun) {
  ModelSpec model;
  model.d_model = 4096;
  EXPECT_EQ(run_class(model, 4096, 8), RunClass::kDense);
  EXPECT_EQ(run_class(model, 16384, 8), RunClass::kLongContext);
  EXPECT_EQ(run_class(model, 16384, 512), RunClass::kLargeScale);
  model.d_model = 2048;
  EXPECT_EQ(run_class(model, 4096, 8), RunClass::kSmallSteps);
  model.moe = MoeSpec{};
  EXPECT_EQ(run_class(model, 4096, 8), RunClass::kMoe);
}

TEST(StepBands, AModelsErrorAddsInSquares) {
  const StepBand corners{9, 12};
  const StepBand same = step_band(corners, 10, 0);
  EXPECT_EQ(same.low, 9);
  EXPECT_EQ(same.high, 12);
  const StepBand wide = step_band(corners, 10, 0.2);
  EXPECT_NEAR(wide.low, 10 * std::exp(-std::sqrt(std::pow(std::log(10.0 / 9), 2) + 0.04)), 1e-12);
  EXPECT_NEAR(wide.high, 10 * std::exp(std::sqrt(std::pow(std::log(1.2), 2) + 0.04)), 1e-12);
  EXPECT_NEAR(step_band({10, 10}, 10, 0.2).high, 10 * std::exp(0.2), 1e-12) << "every coefficient known";
}

}  // namespace
}  // namespace scalecalc
