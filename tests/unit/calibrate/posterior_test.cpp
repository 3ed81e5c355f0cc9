#include "calibrate/posterior.h"

#include <gtest/gtest.h>

#include <cmath>

namespace scalecalc {
namespace {

TEST(Posterior, WhatNoRowInformsKeepsItsPrior) {
  const Posterior none(3, {});
  EXPECT_DOUBLE_EQ(none.variance(1), 1);
  EXPECT_DOUBLE_EQ(none.degrees_of_freedom(), 0);
  const Posterior one(2, {{{0.5, 0}, 12}});
  EXPECT_NEAR(one.variance(0), 1 / (1 + 12 * 0.25), 1e-12);
  EXPECT_NEAR(one.variance(1), 1, 1e-12);
  EXPECT_NEAR(one.degrees_of_freedom(), 3.0 / 4, 1e-12);
}

/// Two parameters of which only the sum shows: each stays uncertain, the sum does not.
TEST(Posterior, KnowsSumsBetterThanTheirParts) {
  const Posterior sum(2, {{{1, 1}, 1e6}});
  EXPECT_NEAR(sum.variance(0), 0.5, 1e-5);
  EXPECT_NEAR(sum.variance(Slopes{1, 1}), 0, 1e-5);
  EXPECT_NEAR(sum.covariance({1, 0}, {0, 1}), -0.5, 1e-5);
  EXPECT_NEAR(sum.degrees_of_freedom(), 1, 1e-5);
}

/// What a run is expected to tell is what it tells once it is there.
TEST(Posterior, ForeseesWhatARunWillTell) {
  std::vector<InformingRow> rows{{{0.3, -0.2, 0.8}, 40}, {{0.1, 0.9, 0.0}, 10}};
  const Posterior before(3, rows);
  const Slopes run{0.7, 0.4, -0.1};
  const Slopes prediction{0.2, 0.5, 0.6};
  rows.push_back({run, 25});
  const Posterior after(3, rows);
  EXPECT_NEAR(before.variance(prediction) - before.lessened(prediction, run, 1.0 / 25), after.variance(prediction),
              1e-12);
}

}  // namespace
}  // namespace scalecalc
