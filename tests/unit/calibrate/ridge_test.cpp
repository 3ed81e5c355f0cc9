#include "calibrate/serving_calibration.h"

#include <gtest/gtest.h>

#include <cmath>

namespace scalecalc {
namespace {

TEST(Ridge, OneParameterBalancesTheRowsAndThePrior) {
  const RidgeSystem system{.labels = 1, .stray = {0.5}};
  // Minimum of 4 (0.3 + x)^2 / 2 + (x / 0.5)^2 / 2 from x = 0.
  const std::vector<double> step = system.step({{{0}, {1}, 0.3, 4}}, {0});
  ASSERT_EQ(step.size(), 1U);
  EXPECT_NEAR(step[0], -4 * 0.3 / (4 + 4), 1e-12);
  EXPECT_NEAR(system.step({{{0}, {1}, 0.3, 4}}, {0}, 1)[0], -4 * 0.3 / (2 * (4 + 4)), 1e-12) << "damped";
}

TEST(Ridge, LabelsShareWhatTheirRowsSay) {
  // Two coefficients, two labels; both rows have label 0, the second row also label 1.
  const RidgeSystem system{.labels = 2, .stray = {1, 1, 1, 1}};
  const std::vector<RidgeRow> rows{{{0}, {1, 0}, -0.2, 100}, {{0, 1}, {1, 0}, -0.8, 100}};
  const std::vector<double> step = system.step(rows, {0, 0, 0, 0});
  EXPECT_GT(step[1], step[0]) << "what the second row needs beyond the first is its own label's";
  EXPECT_EQ(step[2], 0) << "no row moves with the second coefficient";
  EXPECT_EQ(step[3], 0);
}

TEST(Ridge, RowsNarrowTheSpread) {
  const RidgeSystem system{.labels = 1, .stray = {0.5, 0.5}};
  EXPECT_NEAR(system.spreads({}, {{0}})[0][0], 0.5, 1e-12) << "the prior's without rows";
  const std::vector<double> known = system.spreads({{{0}, {1, 0}, 0, 12}}, {{0}}).front();
  EXPECT_NEAR(known[0], 1 / std::sqrt(12 + 4), 1e-12);
  EXPECT_NEAR(known[1], 0.5, 1e-12);
}

}  // namespace
}  // namespace scalecalc
