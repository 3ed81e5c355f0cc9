#include "serve/queueing.h"

#include <gtest/gtest.h>

#include <limits>

#include "support/errors.h"
#include "support/serving_engine.h"

namespace scalecalc {
namespace {

using test::LinearEngine;
using test::roomy_rules;

/// An engine whose steps all take a second.
double one_second(const StepLoad&) { return 1; }

ServerKind server(QueueRules rules = roomy_rules(), StepSeconds seconds = LinearEngine{}) {
  return {std::move(seconds), rules};
}

TEST(Queueing, OneRequestAlone) {
  const LinearEngine engine;
  const std::vector<ServedRequest> one{{.arrival_s = 2, .prompt = 1000, .generate = 101}};
  const QueueResult result = simulate_queue(one, server());
  const double prefill = engine({.prefill_tokens = 1000, .prefill_context = 500.5});
  double decode = 0;
  for (int i = 1; i <= 100; ++i) decode += engine({.sequences = 1, .context_tokens = 1000.0 + i});
  EXPECT_NEAR(result.requests[0].ttft_s(), prefill, 1e-12);
  EXPECT_NEAR(result.requests[0].latency_s(), prefill + decode, 1e-12);
  EXPECT_NEAR(result.figures.tpot_s->mean, decode / 100, 1e-12);
  EXPECT_NEAR(result.figures.inter_token_s->mean, decode / 100, 1e-12);
  EXPECT_NEAR(result.figures.inter_token_s->p99, engine({.sequences = 1, .context_tokens = 1099}), 1e-10);
  EXPECT_EQ(result.figures.steps, 101);
  EXPECT_DOUBLE_EQ(result.figures.mean_batch, 1);
  EXPECT_NEAR(result.figures.utilisation, 1, 1e-12);
  EXPECT_NEAR(result.figures.mean_in_system, 1, 1e-12);
}

TEST(Queueing, ASimulationEndsWhenAsked) {
  ServerKind kind = server();
  int polls = 0;
  kind.stop = [&] { return ++polls > 2; };
  const std::vector<ServedRequest> one{{.prompt = 1000, .generate = 101}};
  EXPECT_THROW(simulate_queue(one, kind), Stopped);
}

TEST(Queueing, APromptIsCutIntoChunksOfTheBudget) {
  QueueRules rules = roomy_rules();
  rules.token_budget = 256;
  std::vector<StepLoad> steps;
  const auto seconds = [&](const StepLoad& load) {
    steps.push_back(load);
    return 1.0;
  };
  simulate_queue(std::vector<ServedRequest>{{.prompt = 600, .generate = 1}}, server(rules, seconds));
  ASSERT_EQ(steps.size(), 3U);
  EXPECT_EQ(steps[0].prefill_tokens, 256);
  EXPECT_EQ(steps[0].prefill_context, 128.5);
  EXPECT_EQ(steps[1].prefill_context, 256 + 128.5);
  EXPECT_EQ(steps[2].prefill_tokens, 88);
  EXPECT_EQ(steps[2].prefill_context, 512 + 44.5);
}

TEST(Queueing, RanksTakePromptsOfTheirOwn) {
  QueueRules rules = roomy_rules();
  rules.token_budget = 200;
  rules.prompt_chunk = 100;
  std::vector<StepLoad> steps;
  const auto seconds = [&](const StepLoad& load) {
    steps.push_back(load);
    return 1.0;
  };
  const std::vector<ServedRequest> three(3, {.prompt = 150, .generate = 1});
  simulate_queue(three, server(rules, seconds));
  ASSERT_EQ(steps.size(), 3U);
  EXPECT_EQ(steps[0].prompts, 2);
  EXPECT_EQ(steps[0].prefill_tokens, 200);
  EXPECT_EQ(steps[1].prompts, 3);  // the rests of two and all the budget leaves of the third
  EXPECT_EQ(steps[1].prefill_tokens, 200);
  EXPECT_EQ(steps[2].prefill_tokens, 50);
}

TEST(Queueing, ChunksRideWithDecodesOrGoAlone) {
  QueueRules rules = roomy_rules();
  rules.token_budget = 100;
  rules.most_sequences = 4;
  // The second comes during the first's second step and has two chunks.
  const std::vector<ServedRequest> two{{.prompt = 50, .generate = 10},
                                       {.arrival_s = 1.5, .prompt = 150, .generate = 2}};
  const QueueResult mixed = simulate_queue(two, server(rules, one_second));
  EXPECT_DOUBLE_EQ(mixed.requests[0].finished_s, 10);
  EXPECT_DOUBLE_EQ(mixed.requests[1].admitted_s, 2);
  EXPECT_DOUBLE_EQ(mixed.requests[1].first_token_s, 4);
  rules.batching = Batching::kPrefillFirst;
  const QueueResult first = simulate_queue(two, server(rules, one_second));
  EXPECT_DOUBLE_EQ(first.requests[0].finished_s, 12);
  EXPECT_DOUBLE_EQ(first.requests[1].first_token_s, 4);
  EXPECT_NEAR(first.figures.inter_token_s->p99, 3, 1e-8);  // the first waits while the second's chunks run
  EXPECT_NEAR(first.figures.inter_token_s->p50, 1, 1e-8);
}

TEST(Queueing, SlotsAreServedInOrder) {
  QueueRules rules = roomy_rules();
  rules.most_sequences = 1;
  const std::vector<ServedRequest> three(3, {.prompt = 10, .generate = 3});
  const QueueResult result = simulate_queue(three, server(rules, one_second));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_DOUBLE_EQ(result.requests[i].first_token_s, 3.0 * static_cast<double>(i) + 1);
  }
  EXPECT_DOUBLE_EQ(result.figures.wait_s.mean, 3);
  EXPECT_DOUBLE_EQ(result.figures.mean_in_system, (3 * 3 + 3 * 2 + 3 * 1) / 9.0);
}

TEST(Queueing, WhoJoinedLastIsEvictedAndComputedAgain) {
  QueueRules rules;
  rules.block_tokens = 1;
  rules.kv_kept_free = 0;
  rules.kv_tokens = 30;
  const std::vector<ServedRequest> two(2, {.prompt = 10, .generate = 11});
  const QueueResult result = simulate_queue(two, server(rules, one_second));
  // Both have 15 tokens cached after 6 steps; then the second goes, until the first's 20 are free at 11.
  EXPECT_EQ(result.figures.evictions, 1);
  EXPECT_EQ(result.figures.recomputed_tokens, 15);
  EXPECT_DOUBLE_EQ(result.requests[0].finished_s, 11);
  // The step that computes its 16 tokens again makes the seventh.
  EXPECT_DOUBLE_EQ(result.requests[1].finished_s, 11 + 5);
  EXPECT_DOUBLE_EQ(result.requests[1].first_token_s, 1);
}

TEST(Queueing, NobodyIsEvictedWhereTheWholeRequestIsReserved) {
  QueueRules rules;
  rules.block_tokens = 1;
  rules.kv_tokens = 30;
  rules.admission = Admission::kRequestFits;
  const std::vector<ServedRequest> two(2, {.prompt = 10, .generate = 11});
  const QueueResult result = simulate_queue(two, server(rules, one_second));
  EXPECT_EQ(result.figures.evictions, 0);
  EXPECT_DOUBLE_EQ(result.requests[1].admitted_s, 11);
}

TEST(Queueing, PrefixHitsInWholeBlocksNeverTheLastToken) {
  QueueRules rules = roomy_rules();
  rules.prefix_hit = 0.5;
  EXPECT_EQ(cached_tokens(rules, 100), 48);
  rules.prefix_hit = 1;
  EXPECT_EQ(cached_tokens(rules, 100), 96);
  EXPECT_EQ(cached_tokens(rules, 96), 95);
  double computed = 0;
  const auto seconds = [&](const StepLoad& load) {
    computed += load.prefill_tokens;
    return 1.0;
  };
  simulate_queue(std::vector<ServedRequest>{{.prompt = 100, .generate = 1}}, server(rules, seconds));
  EXPECT_EQ(computed, 4);
}

TEST(Queueing, ARequestThatNeverFitsIsAWrongQuestion) {
  QueueRules rules;
  rules.kv_tokens = 1000;
  const std::vector<ServedRequest> big{{.prompt = 900, .generate = 200}};
  EXPECT_EQ(
      test::problems_of([&] { simulate_queue(big, server(rules)); }),
      "error: a request of 900 prompt and 200 generated tokens needs a cache of 1,099 tokens: there is room for 992\n"
      "hint: more chips a replica, a smaller format of the cache, or shorter requests\n");
}

TEST(Queueing, AGrowingQueueIsNotStable) {
  const RequestMix mix{.prompt = Lengths::fixed(1000), .generate = Lengths::fixed(100)};
  QueueRules rules = roomy_rules();
  rules.most_sequences = 16;
  EXPECT_TRUE(simulate_queue(poisson_requests(mix, 2, 2000, 1), server(rules)).figures.stable);
  EXPECT_FALSE(simulate_queue(poisson_requests(mix, 40, 2000, 1), server(rules)).figures.stable);
}

// Single samples may differ: a prompt that waits can share a step that it would have had to itself.
TEST(Queueing, MoreCapacityNeverWorsensTheMeanTtft) {
  const RequestMix mix{.prompt = Lengths({{200, 3000, 1}}), .generate = Lengths({{20, 400, 1}})};
  QueueRules rules = roomy_rules();
  rules.token_budget = 2048;
  rules.most_sequences = 16;
  rules.kv_tokens = 30'000;
  for (const double utilisation : {0.5, 0.9, 2.0}) {
    const ServerKind base = server(rules);
    const double rate = utilisation * largest_rate(base.seconds, base.rules, mix);
    const std::vector<ServedRequest> requests = poisson_requests(mix, rate, 5000, 5);
    const double ttft = simulate_queue(requests, base).figures.ttft_s.mean;
    const auto with = [&](auto change) {
      ServerKind changed = base;
      change(changed);
      return simulate_queue(requests, changed).figures.ttft_s.mean;
    };
    SCOPED_TRACE(utilisation);
    EXPECT_LE(with([](ServerKind& k) { k.rules.most_sequences = 32; }), ttft);
    EXPECT_LE(with([](ServerKind& k) { k.rules.kv_tokens = 60'000; }), ttft);
    EXPECT_LE(with([](ServerKind& k) { k.rules.prefix_hit = 0.5; }), ttft);
    EXPECT_LE(with([](ServerKind& k) { k.seconds = [](const StepLoad& load) { return 0.9 * LinearEngine{}(load); }; }),
              ttft);
    DisaggregatedPools pools{.prefill = base, .decode = base};
    double fewer = std::numeric_limits<double>::infinity();
    for (const std::int64_t servers : {1, 2, 4}) {
      pools.prefill_servers = servers;
      const double found = simulate_disaggregated(requests, pools).both.figures.ttft_s.mean;
      EXPECT_LE(found, fewer);
      fewer = found;
    }
  }
}

TEST(Queueing, DisaggregatedByHand) {
  DisaggregatedPools pools{.prefill = server(roomy_rules(), one_second), .decode = server(roomy_rules(), one_second)};
  pools.transfer_s = [](double tokens) { return tokens / 100; };
  const std::vector<ServedRequest> two{{.prompt = 50, .generate = 3}, {.prompt = 250, .generate = 1}};
  pools.prefill_servers = 2;
  const DisaggregatedResult result = simulate_disaggregated(two, pools);
  EXPECT_DOUBLE_EQ(result.both.requests[0].first_token_s, 1);
  EXPECT_DOUBLE_EQ(result.both.requests[0].finished_s, 1 + 0.5 + 2);
  EXPECT_DOUBLE_EQ(result.both.requests[1].finished_s, 1);
  EXPECT_EQ(result.decode.requests, 1);
  EXPECT_DOUBLE_EQ(result.both.figures.tpot_s->mean, 1.25);
  EXPECT_NEAR(result.both.figures.inter_token_s->p99, 1.5, 1e-8);
  EXPECT_DOUBLE_EQ(result.both.figures.mean_in_system, (3.5 + 1) / 3.5);
}

TEST(Queueing, AChangeOfSlopeInsideARunIsFound) {
  // A window: keys beyond 1100 cost nothing.
  const auto seconds = [](const StepLoad& load) {
    const double context = load.sequences > 0 ? load.context_tokens / load.sequences : 0;
    return 1e-3 + 1e-6 * std::min(context, 1100.0) + 1e-5 * load.prefill_tokens;
  };
  const QueueResult result =
      simulate_queue(std::vector<ServedRequest>{{.prompt = 1000, .generate = 501}}, server(roomy_rules(), seconds));
  double decode = 0;
  for (int i = 1; i <= 500; ++i) decode += 1e-3 + 1e-6 * std::min(1000.0 + i, 1100.0);
  EXPECT_NEAR(result.requests[0].finished_s - result.requests[0].first_token_s, decode, 1e-7 * decode);
}

}  // namespace
}  // namespace scalecalc
