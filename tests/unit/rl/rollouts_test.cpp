#include "rl/rollouts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

#include "serve/serve_search.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

constexpr double kEndless = std::numeric_limits<double>::infinity();

RequestMix lengths(std::string_view prompt, std::string_view generate) {
  return {.prompt = std::get<Lengths>(parse_lengths(prompt)), .generate = std::get<Lengths>(parse_lengths(generate))};
}

struct Fixture {
  ModelSpec model = test::dense_model(4);
  HardwareSpec hw = test::switched_chip();
  ServingSystem system{.model = &model, .hw = &hw, .efficiency = ideal_efficiency(hw.efficiency)};

  std::optional<Generation> best(const RolloutLoad& load, std::int64_t chips, double taken = 0) const {
    return Generator(system, load, {}, {}, taken).best(chips, kEndless);
  }
};

TEST(Rollouts, MomentsAreThoseOfPromptAndResponseTogether) {
  const RolloutTokens fixed = rollout_tokens(lengths("100", "300"), 64);
  EXPECT_DOUBLE_EQ(fixed.total(), 400);
  EXPECT_DOUBLE_EQ(fixed.packed(), 400);
  EXPECT_DOUBLE_EQ(fixed.longest, 300);
  const RolloutTokens spread = rollout_tokens(lengths("100", "100:0.5,300:0.5"), 64);
  EXPECT_DOUBLE_EQ(spread.total(), 300);
  EXPECT_DOUBLE_EQ(spread.square, (200.0 * 200 + 400.0 * 400) / 2);
  EXPECT_GT(spread.packed(), spread.total());  // long ones have more of the tokens
}

TEST(Rollouts, TokensOfATraceAreItsRows) {
  RequestMix mix;
  mix.rows = {{.prompt = 10, .generate = 20}, {.prompt = 30, .generate = 40}};
  const RolloutTokens tokens = rollout_tokens(mix, 8);
  EXPECT_DOUBLE_EQ(tokens.total(), 50);
  EXPECT_DOUBLE_EQ(tokens.square, (30.0 * 30 + 70.0 * 70) / 2);
  EXPECT_DOUBLE_EQ(tokens.longest, 40);
}

TEST(Rollouts, AShareHasTheDistributionsMeanAndTheLongestOfAll) {
  const RequestMix mix = lengths("64", "1..1000");
  for (const std::int64_t share : {1, 7, 64, 500}) {
    const std::vector<ServedRequest> requests = rollout_share(mix, 1000, share);
    ASSERT_EQ(requests.size(), static_cast<std::size_t>(share));
    double sum = 0;
    std::int64_t most = 0;
    for (const ServedRequest& r : requests) {
      EXPECT_EQ(r.arrival_s, 0);
      sum += static_cast<double>(r.generate);
      most = std::max(most, r.generate);
    }
    EXPECT_EQ(most, 1000);
    if (share >= 64) {
      EXPECT_NEAR(sum / static_cast<double>(share), 500.5, 10);
    }
  }
}

TEST(Rollouts, LongAndShortResponsesAreMixed) {
  const std::vector<ServedRequest> requests = rollout_share(lengths("64", "1..1000"), 100, 100);
  std::set<std::int64_t> lengths_seen;
  double first_half = 0, second_half = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    lengths_seen.insert(requests[i].generate);
    (i < 50 ? first_half : second_half) += static_cast<double>(requests[i].generate);
  }
  EXPECT_GE(lengths_seen.size(), 99U);
  EXPECT_NEAR(first_half / second_half, 1, 0.1);
}

TEST(Generators, TheBoundIsBelowWhatIsSimulatedAndTheBestIsTheBestOfAll) {
  const Fixture f;
  for (const char* responses : {"256", "1..512", "64:0.9,2048:0.1"}) {
    const RolloutLoad load{.mix = lengths("128", responses), .prompts = 32, .rollouts = 4};
    Generator generator(f.system, load, {}, {});
    const auto best = generator.best(8, kEndless);
    ASSERT_TRUE(best.has_value());
    EXPECT_LE(*generator.bound(8), best->seconds) << responses;
    // Every layout alone, pinned, is no faster.
    for (const ServeLayout& layout : serve_layouts(f.model, f.hw, 8, {}, {})) {
      const ServePins pins{.tp = layout.tp, .pp = layout.pp, .cp = layout.cp, .dp = layout.dp};
      Generator alone(f.system, load, pins, {});
      const auto made = alone.best(8, kEndless);
      if (!made) continue;
      EXPECT_LE(*alone.bound(8), made->seconds * (1 + 1e-12)) << describe(layout) << " " << responses;
      EXPECT_LE(best->seconds, made->seconds) << describe(layout);
    }
  }
}

TEST(Generators, EqualResponsesHaveNoTailAndALongOneHas) {
  const Fixture f;
  const auto even = f.best({.mix = lengths("128", "256"), .prompts = 16, .rollouts = 4}, 8);
  const auto long_one = f.best({.mix = lengths("128", "256:0.99,8192:0.01"), .prompts = 16, .rollouts = 4}, 8);
  ASSERT_TRUE(even && long_one);
  EXPECT_LT(even->tail, 0.05);
  EXPECT_GT(long_one->tail, 0.5);
  EXPECT_GT(long_one->seconds, even->seconds);
}

TEST(Generators, RunningFarAheadNeverWaitsForTheLongestResponse) {
  const Fixture f;
  RolloutLoad load{.mix = lengths("128", "256:0.9,8192:0.1"), .prompts = 64, .rollouts = 4};
  const auto waits = f.best(load, 8);
  load.depth = 8;
  const auto streams = f.best(load, 8);
  ASSERT_TRUE(waits && streams);
  EXPECT_LT(streams->seconds, waits->seconds);
}

TEST(Generators, WhatIsTakenLeavesLessForTheCache) {
  const Fixture f;
  const RolloutLoad load{.mix = lengths("128", "256"), .prompts = 16, .rollouts = 4};
  const double all = f.hw.hbm_capacity.value();
  const auto whole = f.best(load, 8);
  const auto half = f.best(load, 8, all / 2);
  ASSERT_TRUE(whole && half);
  EXPECT_LT(half->kv_bytes, whole->kv_bytes);
  EXPECT_LE(whole->seconds, half->seconds);
  Generator none(f.system, load, {}, {}, all);
  EXPECT_FALSE(none.best(8, kEndless).has_value());
  ASSERT_TRUE(none.shortage().has_value());
  EXPECT_GT(none.shortage()->nearest, 0);
}

}  // namespace
}  // namespace scalecalc
