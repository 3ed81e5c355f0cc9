#include "serve/queue_server.h"

#include <gtest/gtest.h>

#include <algorithm>
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
