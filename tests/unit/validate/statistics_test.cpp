#include "validate/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace scalecalc {
namespace {

TEST(Statistics, QuantilesLieBetweenNeighbours) {
  EXPECT_DOUBLE_EQ(quantile({4, 1, 3, 2}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile({4, 1, 3, 2}, 0), 1);
  EXPECT_DOUBLE_EQ(quantile({4, 1, 3, 2}, 1), 4);
  EXPECT_DOUBLE_EQ(quantile({10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110}, 0.9), 100);
  EXPECT_DOUBLE_EQ(quantile({7}, 0.9), 7);
}

TEST(Statistics, RankCorrelationsSeeOrderAlone) {
  const std::vector<double> a{1, 2, 3, 4};
  EXPECT_DOUBLE_EQ(*spearman(a, {10, 100, 1000, 10000}), 1);
  EXPECT_DOUBLE_EQ(*kendall(a, {10, 100, 1000, 10000}), 1);
  EXPECT_DOUBLE_EQ(*spearman(a, {4, 3, 2, 1}), -1);
  EXPECT_DOUBLE_EQ(*kendall(a, {4, 3, 2, 1}), -1);
  // One swap of neighbours: 1 - 6 * 2 / (4 * 15); five pairs of six in order.
  EXPECT_DOUBLE_EQ(*spearman(a, {1, 3, 2, 4}), 0.8);
  EXPECT_DOUBLE_EQ(*kendall(a, {1, 3, 2, 4}), 4.0 / 6);
}

TEST(Statistics, TiesShareTheirRank) {
  // Ranks 1, 2.5, 2.5, 4 against 1..4: covariance 4.5, variances 4.5 and 5.
  EXPECT_NEAR(*spearman({1, 2, 2, 3}, {1, 2, 3, 4}), 4.5 / std::sqrt(4.5 * 5), 1e-12);
  // Five of six pairs are ordered in both.
  EXPECT_NEAR(*kendall({1, 2, 2, 3}, {1, 2, 3, 4}), 5 / std::sqrt(5.0 * 6.0), 1e-12);
}

TEST(Statistics, ConstantListsHaveNoOrder) {
  EXPECT_FALSE(spearman({1, 1, 1}, {1, 2, 3}));
  EXPECT_FALSE(kendall({1, 2, 3}, {5, 5, 5}));
  EXPECT_FALSE(spearman({}, {}));
}

}  // namespace
}  // namespace scalecalc
