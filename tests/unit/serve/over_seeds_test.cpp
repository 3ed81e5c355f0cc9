#include "serve/over_seeds.h"

#include <gtest/gtest.h>

#include <cmath>

namespace scalecalc {
namespace {

/// A run whose figures are all made of one number.
QueueFigures run_of(double x) {
  QueueFigures out{.requests = 10, .span_s = 100 * x};
  out.ttft_s = {.mean = x, .p50 = 2 * x, .p90 = 3 * x, .p95 = 4 * x, .p99 = 5 * x};
  out.latency_s = {.mean = 10 * x, .p50 = 11 * x};
  out.wait_s = {.mean = x / 2};
  out.tpot_s = Percentiles{.mean = x / 10};
  out.inter_token_s = Percentiles{.mean = x / 20};
  out.output_tokens_per_s = 1000 * x;
  out.requests_per_s = 7 * x;
  out.steps = 3;
  out.evictions = 2;
  out.recomputed_tokens = 40;
  out.found_shares = {x / 100, x / 200, x / 400};
  return out;
}

TEST(OverSeeds, FiguresAreMeansAndCountsAreSums) {
  const QueueFigures mean = mean_of({run_of(1), run_of(2), run_of(6)});
  EXPECT_DOUBLE_EQ(mean.ttft_s.mean, 3);
  EXPECT_DOUBLE_EQ(mean.ttft_s.p50, 6);
  EXPECT_DOUBLE_EQ(mean.ttft_s.p90, 9);
  EXPECT_DOUBLE_EQ(mean.ttft_s.p95, 12);
  EXPECT_DOUBLE_EQ(mean.ttft_s.p99, 15);
  EXPECT_DOUBLE_EQ(mean.latency_s.mean, 30);
  EXPECT_DOUBLE_EQ(mean.wait_s.mean, 1.5);
  EXPECT_DOUBLE_EQ(mean.tpot_s->mean, 0.3);
  EXPECT_DOUBLE_EQ(mean.inter_token_s->mean, 0.15);
  EXPECT_DOUBLE_EQ(mean.span_s, 300);
  EXPECT_DOUBLE_EQ(mean.requests_per_s, 21);
  EXPECT_DOUBLE_EQ(mean.output_tokens_per_s, 3000);
  EXPECT_DOUBLE_EQ(mean.found_share(), 0.03 + 0.015 + 0.0075);
  EXPECT_EQ(mean.requests, 30);
  EXPECT_EQ(mean.steps, 9);
  EXPECT_EQ(mean.evictions, 6);
  EXPECT_EQ(mean.recomputed_tokens, 120);
}

/// Student's t of 97.5 % times the deviation of the mean: of 1 and 3 that is 1, of 1, 2 and 3 it is 1 / sqrt(3); of 1
/// to 4 sqrt(5/12), of 1 to 5 sqrt(1/2).
TEST(OverSeeds, AMeanIsCertainToStudentsT) {
  const auto of = [](const std::vector<double>& values) {
    std::vector<QueueFigures> runs;
    for (const double x : values) runs.push_back(run_of(x));
    return errors_of(runs);
  };
  EXPECT_EQ(of({5}).ttft_s, 0);
  EXPECT_NEAR(of({1, 3}).ttft_s, 12.706, 1e-9);
  EXPECT_NEAR(of({1, 2, 3}).ttft_s, 4.303 / std::sqrt(3), 1e-9);
  EXPECT_NEAR(of({1, 2, 3, 4}).ttft_s, 3.182 * std::sqrt(5.0 / 12), 1e-9);
  const MeanErrors five = of({1, 2, 3, 4, 5});
  const double deviation = 2.776 * std::sqrt(0.5);
  EXPECT_NEAR(five.ttft_s, deviation, 1e-9);
  EXPECT_NEAR(five.tpot_s, deviation / 10, 1e-9);
  EXPECT_NEAR(five.inter_token_s, deviation / 20, 1e-9);
  EXPECT_NEAR(five.latency_s, 10 * deviation, 1e-9);
  EXPECT_NEAR(five.wait_s, deviation / 2, 1e-9);
  EXPECT_NEAR(five.output_tokens_per_s, 1000 * deviation, 1e-9);
}

/// Parts of a run: twenty of twenty requests, of which every part has one that waits a second more than the part before
/// and answers of two lengths; tokens come in pairs, so that clients' gaps are twice the mean of a token's.
TEST(OverSeeds, PartsOfARunDifferByWhatTheirRequestsDo) {
  QueueResult run;
  run.figures.tpot_s = Percentiles{.mean = 0.1};
  run.figures.inter_token_s = Percentiles{.mean = 0.2};
  for (int i = 0; i < 400; ++i) {
    const double part = i / 20, at = i;
    RequestTimes r{.arrival_s = at, .admitted_s = at, .first_token_s = at + 1};
    if (i % 20 == 0) {
      r.admitted_s += part;
      r.first_token_s += part;
    }
    // One in two answers has 11 tokens, a tenth of a second each, and a hundredth more for each part; the others one.
    r.generate = i % 2 == 0 ? 11 : 1;
    r.finished_s = r.first_token_s + (r.generate > 1 ? 10 * (0.1 + 0.01 * part) : 0);
    run.requests.push_back(r);
  }
  // 0 to 19 have the variance 35, their mean's deviation is sqrt(35 / 20).
  const double deviation = 2.093 * std::sqrt(35.0 / 20);
  const std::optional<MeanErrors> errors = errors_of(run);
  ASSERT_TRUE(errors);
  EXPECT_NEAR(errors->ttft_s, deviation / 20, 1e-9);
  EXPECT_NEAR(errors->wait_s, deviation / 20, 1e-9);
  EXPECT_NEAR(errors->tpot_s, 0.01 * deviation, 1e-9);
  EXPECT_NEAR(errors->inter_token_s, 2 * 0.01 * deviation, 1e-9);
  EXPECT_NEAR(errors->latency_s, deviation * (1.0 / 20 + 0.1 / 2), 1e-9);
  // Of answers of one token there is nothing between tokens.
  for (RequestTimes& r : run.requests) r.generate = 1;
  run.figures.tpot_s = run.figures.inter_token_s = std::nullopt;
  EXPECT_EQ(errors_of(run)->tpot_s, 0);
  EXPECT_EQ(errors_of(run)->inter_token_s, 0);
}

}  // namespace
}  // namespace scalecalc
