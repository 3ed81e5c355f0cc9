#include "serve/tenants.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "serve/serve_question.h"
#include "serve/traffic.h"
#include "support/serving_engine.h"

namespace scalecalc {
namespace {

/// Three requests in four of 1,000 and 100 tokens, the fourth of 3,000 and 500.
RequestMix chat_and_batch() {
  RequestMix mix{.prompt = Lengths::fixed(1000), .generate = Lengths::fixed(100)};
  mix.tenants = {{.name = "chat", .share = 3},
                 {.name = "batch", .share = 1, .prompt = Lengths::fixed(3000), .generate = Lengths::fixed(500)}};
  return of_tenants(mix);
}

TEST(Tenants, AMixHasTheirShares) {
  const RequestMix mix = chat_and_batch();
  EXPECT_DOUBLE_EQ(mix.tenants[0].share, 0.75);
  EXPECT_DOUBLE_EQ(mix.prompt.mean(), 1500);
  EXPECT_DOUBLE_EQ(mix.generate.mean(), 200);
  EXPECT_EQ(mix.largest_cached(), 3000 + 500 - 1);
  // 99 and 499 decode steps of 1,050 and 3,250 keys on average, three to one.
  EXPECT_NEAR(mix.decode_context(), (3 * 99 * 1050.0 + 499 * 3250.0) / (3 * 99 + 499), 1e-6);
  std::map<std::int64_t, int> prompts;
  for (const ServedRequest& row : mix.rows) ++prompts[row.prompt];
  EXPECT_EQ(prompts[1000], 3 * prompts[3000]);
}

TEST(Tenants, LengthsOfOneLieEvenlyAndKnowNothingOfEachOther) {
  RequestMix mix{.prompt = Lengths({{1, 1000, 1}}), .generate = Lengths({{1, 100, 1}})};
  mix.tenants = {{.name = "all"}};
  mix = of_tenants(mix);
  std::array<double, 4> quarters{};
  double prompt = 0, generate = 0;
  for (const ServedRequest& row : mix.rows) {
    quarters[(row.prompt > 500 ? 2U : 0U) + (row.generate > 50 ? 1U : 0U)] += 1;
    prompt += static_cast<double>(row.prompt);
    generate += static_cast<double>(row.generate);
  }
  const auto count = static_cast<double>(mix.rows.size());
  for (const double quarter : quarters) EXPECT_NEAR(quarter / count, 0.25, 0.002);
  EXPECT_NEAR(prompt / count, 500.5, 1);
  EXPECT_NEAR(generate / count, 50.5, 0.1);
}

TEST(Tenants, RequestsAreDrawnWithTheirTenant) {
  const RequestMix mix = chat_and_batch();
  const std::vector<ServedRequest> requests = poisson_requests(mix, 5, 4000, 7);
  const std::vector<std::uint16_t> tenants = drawn_tenants(mix, 4000, 7);
  int others = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(requests[i].prompt, tenants[i] == 0 ? 1000 : 3000);
    others += tenants[i];
  }
  EXPECT_NEAR(others, 1000, 90) << "three standard deviations of a quarter of 4,000";
}

TEST(Tenants, EachIsHeldToItsOwnLimits) {
  RequestMix mix = chat_and_batch();
  mix.tenants[0].limits.ttft_s = 0.5;
  mix.tenants[1].limits.latency_s = 20;
  const std::vector<RequestTimes> times{{0, 0, 0.4, 2, 100}, {0, 0, 3, 19, 500}, {1, 1, 1.45, 3, 100}};
  std::vector<TenantFigures> seen = tenant_figures(mix, times, {0, 1, 0});
  EXPECT_EQ(seen[0].seen.requests, 2);
  EXPECT_DOUBLE_EQ(seen[0].seen.ttft_s.p95, 0.45);
  EXPECT_DOUBLE_EQ(seen[1].seen.ttft_s.mean, 3);
  EXPECT_DOUBLE_EQ(seen[1].seen.tpot_s->mean, 16.0 / 499);
  EXPECT_TRUE(all_meet(seen));
  mix.tenants[0].limits.ttft_s = 0.44;
  seen = tenant_figures(mix, times, {0, 1, 0});
  EXPECT_FALSE(seen[0].met);
  EXPECT_TRUE(seen[1].met);
  EXPECT_TRUE(tenant_figures(mix, {{0, 0, 3, 19, 500}}, {1})[0].met) << "nobody is kept waiting";
}

/// A limit of a few requests asks for more replicas than the same limit of none, and as many as trying all says.
TEST(Tenants, AFleetKeepsTheLimitsOfEach) {
  FleetDemand demand;
  demand.mix = chat_and_batch();
  demand.rate = 40;
  demand.requests = 800;
  const ReplicaKind kind{.server = {test::LinearEngine{}, test::roomy_rules()}, .chips = 1};
  const std::optional<Fleet> free = fewest_replicas(demand, kind);
  ASSERT_TRUE(free);
  const double limit = 0.95 * free->tenants.at(1).seen.ttft_s.p95;  // which that fleet does not keep
  demand.mix.tenants[1].limits.ttft_s = limit;
  const std::optional<Fleet> limited = fewest_replicas(demand, kind);
  ASSERT_TRUE(limited);
  EXPECT_GT(limited->replicas, free->replicas);
  EXPECT_LE(limited->tenants.at(1).seen.ttft_s.p95, limit);
  const auto late = [&](std::int64_t replicas) {
    const double rate = demand.rate / static_cast<double>(replicas);
    const auto requests = poisson_requests(demand.mix, rate, demand.requests, demand.seed);
    const QueueResult result = simulate_queue(requests, kind.server);
    std::vector<double> times;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (requests[i].prompt == 3000) times.push_back(result.requests[i].ttft_s());
    }
    std::sort(times.begin(), times.end());
    return times[static_cast<std::size_t>(std::ceil(0.95 * static_cast<double>(times.size()))) - 1] > limit;
  };
  EXPECT_FALSE(late(limited->replicas));
  EXPECT_TRUE(late(limited->replicas - 1));
}

/// Tokens leave as fast as requests bring them, and Little's law: of all replicas, whichever way they are simulated.
TEST(Traffic, ThroughputAndRequestsAreThoseOfAllReplicas) {
  ServeQuestion q;
  q.model = "llama3-8b";
  q.hardware = {"h100-sxm"};
  q.chips = 4;
  q.prompt = 500;
  q.generate = 100;
  q.fix.dp = 4;
  const ServeAnswer answer = serve_answer(q, Catalog{});
  ASSERT_TRUE(answer.best);
  for (const auto routing : {std::optional<RequestRouting>{}, std::optional(RequestRouting::kLeastLoaded)}) {
    TrafficAsked asked{.mix = {.prompt = Lengths::fixed(500), .generate = Lengths::fixed(100)}, .rate = 20};
    asked.requests = 2000;
    asked.routing = routing;
    const std::optional<TrafficAnswer> found = answer_traffic(answer, asked);
    ASSERT_TRUE(found);
    EXPECT_NEAR(found->figures.output_tokens_per_s / (20 * 100), 1, 0.06);
    EXPECT_NEAR(found->figures.mean_in_system / (20 * found->figures.latency_s.mean), 1, 0.06);
  }
}

ServeQuestion on_pools() {
  ServeQuestion q;
  q.model = "llama3-8b";
  q.hardware = {"h100-sxm"};
  q.chips = 4;
  q.prompt = 2000;
  q.generate = 150;
  q.disaggregate = Disaggregation::kOn;
  q.fix.tp = q.fix.pp = 1;
  q.slo_ttft = 0.5;
  return q;
}

double most_carried(const ServeQuestion& question) {
  const ServeAnswer answer = serve_answer(question, Catalog{});
  TrafficAsked asked{.mix = {.prompt = Lengths::fixed(2000), .generate = Lengths::fixed(150)}};
  asked.most = true;
  asked.requests = 300;
  const std::optional<TrafficAnswer> found = answer.best ? answer_traffic(answer, asked) : std::nullopt;
  return found ? found->asked.rate : 0;
}

/// No split that is asked for carries more than the one found.
TEST(MostCarried, IsThatOfTheBestSplit) {
  const double free = most_carried(on_pools());
  double best = 0;
  for (std::int64_t decoders = 1; decoders <= 3; ++decoders) {
    ServeQuestion q = on_pools();
    q.decode_fix.dp = decoders;
    q.prefill_fix.dp = 4 - decoders;
    best = std::max(best, most_carried(q));
  }
  EXPECT_GT(best, 0);
  EXPECT_NEAR(free, best, 0.005 * best);
}

}  // namespace
}  // namespace scalecalc
