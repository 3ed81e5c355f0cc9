#include "serve/queue_server.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace scalecalc {
namespace {

TEST(GapLog, QuantilesAreThoseOfTheGapsOneByOne) {
  GapLog log;
  std::vector<double> all;
  const auto run = [&](double first, double last, int steps, int times) {
    log.add_run(first, last, steps, times);
    for (int i = 0; i < steps; ++i) {
      const double gap = steps == 1 ? first : first + (last - first) * i / (steps - 1);
      for (int t = 0; t < times; ++t) all.push_back(gap);
    }
  };
  run(0.010, 0.012, 21, 3);
  run(0.011, 0.020, 10, 1);
  run(0.500, 0.500, 1, 4);
  run(0.015, 0.015, 8, 2);
  run(0.030, 0.020, 5, 2);  // a window may shorten steps
  std::sort(all.begin(), all.end());
  ASSERT_EQ(log.count(), static_cast<std::int64_t>(all.size()));
  double sum = 0;
  for (const double gap : all) sum += gap;
  EXPECT_NEAR(log.mean(), sum / static_cast<double>(all.size()), 1e-12);
  for (std::size_t rank = 1; rank <= all.size(); ++rank) {
    const double p = (static_cast<double>(rank) - 0.5) / static_cast<double>(all.size());
    EXPECT_NEAR(log.quantile(p), all[rank - 1], 1e-8 * all[rank - 1]) << rank;
  }
}

TEST(GapLog, OneGap) {
  GapLog log;
  log.add(0.25);
  log.add(0.25, 3);
  EXPECT_EQ(log.count(), 4);
  EXPECT_NEAR(log.quantile(0.99), 0.25, 1e-9);
}

/// More than 65,536 runs are counted by size: quantiles are then known to one in 1,024, from above.
TEST(GapLog, OfManyRunsQuantilesAreKnownToOneInAThousand) {
  constexpr int kRuns = 70'000;
  GapLog log;
  std::vector<double> all;
  double sum = 0;
  for (int i = 0; i < kRuns; ++i) {
    // From a microsecond to a thousand seconds, each run of two gaps, every third twice over.
    const double first = 1e-6 * std::pow(1e9, i / (kRuns - 1.0));
    const std::int64_t times = i % 3 == 0 ? 2 : 1;
    log.add_run(first, 1.5 * first, 2, times);
    for (std::int64_t t = 0; t < times; ++t) {
      all.push_back(first);
      all.push_back(1.5 * first);
      sum += 2.5 * first;
    }
  }
  std::sort(all.begin(), all.end());
  ASSERT_EQ(log.count(), static_cast<std::int64_t>(all.size()));
  EXPECT_NEAR(log.mean(), sum / static_cast<double>(all.size()), 1e-9 * log.mean());
  for (const double p : {0.001, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0}) {
    const double exact = all[static_cast<std::size_t>(std::ceil(p * static_cast<double>(all.size()))) - 1];
    EXPECT_GE(log.quantile(p), exact * (1 - 1e-9)) << p;
    EXPECT_LE(log.quantile(p), exact * (1 + 1.0 / 1024)) << p;
  }
  // Two such logs are as one of twice as many.
  GapLog twice = log;
  twice.add_all(log);
  EXPECT_EQ(twice.count(), 2 * log.count());
  EXPECT_NEAR(twice.mean(), log.mean(), 1e-9 * log.mean());
  EXPECT_EQ(twice.quantile(0.5), log.quantile(0.5));
  GapLog empty;
  empty.add_all(log);
  EXPECT_EQ(empty.quantile(0.9), log.quantile(0.9));
}

TEST(GapLog, NoGapIsNoRun) {
  GapLog log;
  log.add_run(1, 2, 0, 3);
  log.add_run(1, 2, 3, 0);
  EXPECT_EQ(log.count(), 0);
  EXPECT_EQ(log.mean(), 0);
}

TEST(GapLog, TakesAnotherIn) {
  GapLog a;
  a.add(1);
  GapLog b;
  b.add_run(2, 3, 2, 1);
  a.add_all(b);
  EXPECT_EQ(a.count(), 3);
  EXPECT_DOUBLE_EQ(a.mean(), 2);
}

}  // namespace
}  // namespace scalecalc
