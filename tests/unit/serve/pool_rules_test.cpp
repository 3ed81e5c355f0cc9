#include <gtest/gtest.h>

#include <algorithm>

#include "base/diagnostic.h"
#include "serve/serve_question.h"
#include "serve/serve_search.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

/// Prompts on one kind of chip, tokens on another.
ServeQuestion two_kinds(ServeObjective objective) {
  ServeQuestion q;
  q.model = "llama3-8b";
  q.hardware = {"h100-sxm"};
  q.prefill_hardware = "l40s";
  q.disaggregate = Disaggregation::kOn;
  q.objective = objective;
  q.chips = 2;
  q.prompt = 2048;
  q.generate = 128;
  q.price = 2;
  q.top = 1000;
  return q;
}

TEST(PoolsOfTwoKinds, APointPaysForBoth) {
  const ServeAnswer answer = serve_answer(two_kinds(ServeObjective::kCost), Catalog{});
  ASSERT_TRUE(answer.best && answer.prefill_system);
  const ServeSystem& own = answer.systems.at(0);
  const ServeSystem& other = answer.systems.at(*answer.prefill_system);
  for (const ServePoint& p : answer.points) {
    ASSERT_TRUE(p.pools && p.usd_per_million_output && p.joules_per_output_token);
    const auto decode = static_cast<double>(p.pools->decode_chips);
    const auto prefill = static_cast<double>(p.pools->prefill_chips);
    const double usd = decode * *own.usd_per_chip_hour + prefill * *other.usd_per_chip_hour;
    EXPECT_NEAR(*p.usd_per_million_output, usd / 3600 * 1e6 / p.tokens_per_s, 1e-9 * usd * 1e6 / p.tokens_per_s);
    const double watts = decode * facility_watts(*own.hw, answer.question.power, serving_activity(p.time, 0)) +
                         prefill * facility_watts(*other.hw, answer.question.power, serving_activity(p.time, 1));
    EXPECT_NEAR(*p.joules_per_output_token * p.tokens_per_s, watts, 1e-9 * watts);
  }
}

/// As many prefill replicas as pay: no other number of them is better.
TEST(PoolsOfTwoKinds, NoOtherNumberOfReplicasIsBetter) {
  for (const ServeObjective objective :
       {ServeObjective::kCost, ServeObjective::kThroughput, ServeObjective::kLatency}) {
    ServeQuestion q = two_kinds(objective);
    const ServeAnswer free = serve_answer(q, Catalog{});
    ASSERT_TRUE(free.best);
    const auto better = [&](const ServePoint& a, const ServePoint& b) {
      if (objective == ServeObjective::kCost) return *a.usd_per_million_output / *b.usd_per_million_output;
      if (objective == ServeObjective::kThroughput) return b.tokens_per_s_per_chip() / a.tokens_per_s_per_chip();
      return a.request_s / b.request_s;
    };
    for (const std::int64_t replicas : {1, 2, 3, 5, 8}) {
      q.prefill_fix.dp = replicas;
      const ServeAnswer pinned = serve_answer(q, Catalog{});
      if (!pinned.best) continue;
      EXPECT_LE(better(*free.best, *pinned.best), 1 + 1e-9) << replicas;
    }
  }
}

TEST(PoolRules, PinsThatLeaveNothingForTheOtherPoolAreTold) {
  ServeQuestion q = two_kinds(ServeObjective::kThroughput);
  q.prefill_hardware.clear();
  q.prefill_fix.tp = 2;
  const ServeAnswer answer = serve_answer(q, Catalog{});
  EXPECT_FALSE(answer.best);
  EXPECT_TRUE(std::any_of(answer.notes.begin(), answer.notes.end(), [](const std::string& note) {
    return note.find("take 2 of 2 chips") != std::string::npos;
  })) << (answer.notes.empty() ? "" : answer.notes.front());
}

TEST(ServeRules, TheBestOfAllIsAsGoodAsTheBestOfEachWidth) {
  // Of many tokens the fastest layout for one is best, of few that which takes prompts in best.
  for (const auto& [objective, generate] :
       {std::pair(ServeObjective::kThroughput, 128), std::pair(ServeObjective::kThroughput, 2),
        std::pair(ServeObjective::kLatency, 128), std::pair(ServeObjective::kLatency, 2)}) {
    ServeQuestion q = two_kinds(objective);
    q.prefill_hardware.clear();
    q.disaggregate = Disaggregation::kOff;
    q.chips = 8;
    q.batches = {16};
    q.generate = generate;
    const ServeAnswer all = serve_answer(q, Catalog{});
    ASSERT_TRUE(all.best);
    for (const std::int64_t tp : {1, 2, 4, 8}) {
      q.fix.tp = tp;
      const ServeAnswer one = serve_answer(q, Catalog{});
      ASSERT_TRUE(one.best) << tp;
      if (objective == ServeObjective::kThroughput) {
        EXPECT_GE(all.best->tokens_per_s_per_chip(), one.best->tokens_per_s_per_chip() * (1 - 1e-12)) << tp;
      } else {
        EXPECT_LE(all.best->request_s, one.best->request_s * (1 + 1e-12)) << tp;
      }
    }
  }
}

/// Half of a prompt that is kept is not computed: less than two thirds of the time.
TEST(ServeRules, WhatAPrefixCacheKeepsIsNotComputed) {
  ServeQuestion q = two_kinds(ServeObjective::kThroughput);
  q.prefill_hardware.clear();
  q.disaggregate = Disaggregation::kOff;
  q.chips = 1;
  q.batches = {4};
  q.prompt = 8192;
  const ServeAnswer none = serve_answer(q, Catalog{});
  q.prefix_hit = 0.5;
  const ServeAnswer half = serve_answer(q, Catalog{});
  ASSERT_TRUE(none.best && half.best);
  EXPECT_LT(half.best->prefill_s, 0.67 * none.best->prefill_s);
  EXPECT_GT(half.best->prefill_s, 0.4 * none.best->prefill_s);
}

/// A limit that the fastest just meets is none of those that nothing meets.
TEST(ServeRules, ALimitThatIsJustMetIsNotNamed) {
  ServeQuestion q = two_kinds(ServeObjective::kThroughput);
  q.prefill_hardware.clear();
  q.disaggregate = Disaggregation::kOff;
  const ServeAnswer free = serve_answer(q, Catalog{});
  const auto fastest = std::min_element(free.points.begin(), free.points.end(),
                                        [](const ServePoint& a, const ServePoint& b) { return a.tpot_s < b.tpot_s; });
  ASSERT_NE(fastest, free.points.end());
  q.slo_tpot = fastest->tpot_s;
  q.slo_ttft = 1e-6;
  const ServeAnswer none = serve_answer(q, Catalog{});
  EXPECT_FALSE(none.best);
  ASSERT_EQ(none.limits.size(), 1U);
  EXPECT_EQ(none.limits.front().name, "ttft");
}

/// By throughput a price changes nothing of the front.
TEST(ServeRules, AFrontByThroughputHasNoPrices) {
  std::vector<ServePoint> points(2);
  points[0].chips = points[1].chips = 1;
  points[0].tpot_s = 0.01, points[0].tokens_per_s = 100, points[0].usd_per_million_output = 1;
  points[1].tpot_s = 0.02, points[1].tokens_per_s = 200, points[1].usd_per_million_output = 2;
  mark_pareto(points, ServeObjective::kThroughput);
  EXPECT_TRUE(points[0].pareto && points[1].pareto);
  mark_pareto(points, ServeObjective::kCost);
  EXPECT_TRUE(points[0].pareto);
  EXPECT_FALSE(points[1].pareto);
}

/// Layouts are asked once for all pools that may feed them: eight times the chips, with 60 times the splits, are not
/// 200 times the work. Counts of what is asked, whatever a machine's speed.
TEST(PoolsOfOneKind, WorkGrowsAboutAsTheChips) {
  for (const ServeObjective objective :
       {ServeObjective::kKnee, ServeObjective::kThroughput, ServeObjective::kLatency, ServeObjective::kCost}) {
    const auto evaluated = [&](std::int64_t chips) {
      ServeQuestion q;
      q.model = "mixtral-8x7b";
      q.hardware = {"h100-sxm"};
      q.disaggregate = Disaggregation::kOn;
      q.objective = objective;
      q.chips = chips;
      q.prompt = 4989;
      q.generate = 1000;
      const ServeAnswer answer = serve_answer(q, Catalog{});
      EXPECT_TRUE(answer.best);
      return static_cast<double>(answer.evaluated);
    };
    EXPECT_LT(evaluated(256), 2 * (256 / 32) * evaluated(32)) << static_cast<int>(objective);
  }
}

}  // namespace
}  // namespace scalecalc
