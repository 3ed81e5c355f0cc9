#include "serve/traffic.h"

#include <gtest/gtest.h>

#include "serve/queueing.h"
#include "support/serving_engine.h"

namespace scalecalc {
namespace {

using test::LinearEngine;
using test::roomy_rules;

FleetDemand demand(double rate) {
  FleetDemand out;
  out.mix = {.prompt = Lengths({{200, 2000, 1}}), .generate = Lengths({{20, 200, 1}})};
  out.rate = rate;
  out.requests = 600;
  out.limits = {.ttft_s = 0.25, .tpot_s = 0.020};
  return out;
}

/// An engine `speed` times as fast.
ReplicaKind kind(double speed, double chips, double usd) {
  return {.server = {[speed](const StepLoad& load) { return LinearEngine{}(load) / speed; }, roomy_rules()},
          .chips = chips,
          .usd_per_hour = usd};
}

bool carries(const FleetDemand& d, const ReplicaKind& k, std::int64_t replicas) {
  const double rate = d.rate / static_cast<double>(replicas);
  const auto requests = poisson_requests(d.mix, rate, d.requests, d.seed);
  return rate <= largest_rate(k.server.seconds, k.server.rules, d.mix) &&
         meets(simulate_queue(requests, k.server).figures, d.limits);
}

/// The first count that carries the demand.
std::int64_t counted(const FleetDemand& d, const ReplicaKind& k) {
  for (std::int64_t n = 1; n < 100; ++n) {
    if (carries(d, k, n)) return n;
  }
  return 0;
}

TEST(SmallestCount, FindsTheFirstOfAny) {
  for (std::int64_t answer = 3; answer <= 70; ++answer) {
    EXPECT_EQ(smallest_count(3, 70, [&](std::int64_t n) { return n >= answer; }), answer);
  }
  EXPECT_EQ(smallest_count(3, 70, [](std::int64_t) { return false; }), std::nullopt);
  EXPECT_EQ(smallest_count(3, 3, [](std::int64_t) { return true; }), 3);
}

TEST(HighestRate, IsFoundToAPartIn500) {
  for (const double answer : {0.01, 3.0, 77.7, 99.9}) {
    const double found = highest_rate(100, [&](double rate) { return rate <= answer; });
    EXPECT_LE(found, answer);
    EXPECT_GE(found, answer / 1.003);
  }
  EXPECT_EQ(highest_rate(100, [](double) { return false; }), 0);
}

TEST(HighestRate, IsWhatTheSimulationCarries) {
  FleetDemand d = demand(1);
  const ReplicaKind k = kind(1, 8, 0);
  const double largest = largest_rate(k.server.seconds, k.server.rules, d.mix);
  const auto holds = [&](double rate) {
    d.rate = rate;
    return carries(d, k, 1);
  };
  const double found = highest_rate(largest, holds);
  EXPECT_GT(found, 0);
  // Nothing a step of half a per cent above does.
  for (double rate = found * 1.005; rate < largest; rate *= 1.02) EXPECT_FALSE(holds(rate)) << rate;
}

TEST(Fleet, ARouterThatLooksAtTheQueuesNeedsNoMoreReplicas) {
  for (const double rate : {20.0, 77.0, 150.0}) {
    FleetDemand d = demand(rate);
    d.requests = 3000;
    const std::optional<Fleet> random = fewest_replicas(d, kind(1, 8, 0));
    d.routing = RequestRouting::kLeastLoaded;
    const std::optional<Fleet> routed = fewest_replicas(d, kind(1, 8, 0));
    ASSERT_TRUE(random && routed);
    EXPECT_LE(routed->replicas, random->replicas) << rate;
  }
}

TEST(Fleet, FewestReplicasByTryingAll) {
  for (const double rate : {1.0, 20.0, 77.0, 150.0}) {
    for (const double speed : {1.0, 2.0}) {
      const std::optional<Fleet> found = fewest_replicas(demand(rate), kind(speed, 8, 0));
      ASSERT_TRUE(found);
      EXPECT_EQ(found->replicas, counted(demand(rate), kind(speed, 8, 0))) << rate << " " << speed;
      EXPECT_EQ(found->chips, static_cast<double>(found->replicas) * 8);
      EXPECT_LE(found->replica.ttft_s.p95, 0.25);
    }
  }
}

TEST(Fleet, ALimitNoReplicaKeepsHasNoFleet) {
  FleetDemand d = demand(5);
  d.most_replicas = 64;
  d.limits.tpot_s = 1e-3;
  EXPECT_FALSE(fewest_replicas(d, kind(1, 8, 0)));
}

TEST(Fleet, BestOfKindsByTryingAll) {
  const std::vector<ReplicaKind> kinds{kind(1, 4, 5), kind(2, 6, 16), kind(4, 16, 22), kind(0.1, 1, 1)};
  for (const double rate : {2.0, 30.0, 120.0}) {
    for (const FleetGoal goal : {FleetGoal::kChips, FleetGoal::kCost}) {
      FleetDemand d = demand(rate);
      d.most_replicas = 99;
      double least = std::numeric_limits<double>::infinity();
      std::size_t which = 0;
      for (std::size_t i = 0; i < kinds.size(); ++i) {
        const std::int64_t n = counted(d, kinds[i]);
        if (n == 0) continue;
        const double each = goal == FleetGoal::kChips ? kinds[i].chips : kinds[i].usd_per_hour;
        if (static_cast<double>(n) * each < least) {
          least = static_cast<double>(n) * each;
          which = i;
        }
      }
      const std::optional<Fleet> found = best_fleet(d, kinds, goal);
      ASSERT_TRUE(found);
      EXPECT_EQ(found->kind, which) << rate;
      EXPECT_EQ(goal == FleetGoal::kChips ? found->chips : found->usd_per_hour, least);
    }
  }
}

TEST(Fleet, FewestServersOfEachPoolByTryingAll) {
  FleetDemand d = demand(60);
  const ServerKind server{LinearEngine{}, roomy_rules()};
  DisaggregatedPools pools{.prefill = server, .decode = server};
  pools.decode.rules.most_sequences = 32;
  pools.transfer_s = [](double tokens) { return 1e-6 * tokens; };
  const auto requests = poisson_requests(d.mix, d.rate, d.requests, d.seed);
  const auto found = fewest_servers(d, pools, 16);
  ASSERT_TRUE(found);
  std::int64_t fewest = 100;
  for (std::int64_t prefill = 1; prefill <= 8; ++prefill) {
    for (std::int64_t decode = 1; decode <= 8; ++decode) {
      pools.prefill_servers = prefill;
      pools.decode_servers = decode;
      const DisaggregatedResult r = simulate_disaggregated(requests, pools);
      if (r.decode.stable && meets(r.both.figures, d.limits)) fewest = std::min(fewest, prefill + decode);
    }
  }
  EXPECT_EQ(found->prefill_servers + found->decode_servers, fewest);
  EXPECT_TRUE(meets(found->result.both.figures, d.limits));
}

/// Twenty at once every ten seconds: pools are sized for the bursts, not for as many spread at random.
TEST(Fleet, PoolsAreSizedForTheArrivalsOfATrace) {
  FleetDemand d = demand(60.0 / 20);
  for (int i = 0; i < 60; ++i) d.mix.rows.push_back({.arrival_s = i / 20 * 10.0, .prompt = 1000, .generate = 50});
  d.mix.has_arrivals = true;
  d.requests = 60;
  const ServerKind server{LinearEngine{}, roomy_rules()};
  const auto found = fewest_servers(d, {.prefill = server, .decode = server}, 32);
  ASSERT_TRUE(found);
  const std::vector<RequestTimes>& requests = found->result.both.requests;
  EXPECT_EQ(requests[19].arrival_s, requests[0].arrival_s);
  EXPECT_EQ(requests[20].arrival_s - requests[19].arrival_s, 10);
}

}  // namespace
}  // namespace scalecalc
