// Clients that each send a request when they have the answer to their last, the front-end before the engine, and what
// engines do before a prompt joins.
#include <gtest/gtest.h>

#include "serve/queueing.h"
#include "support/serving_engine.h"

namespace scalecalc {
namespace {

using test::LinearEngine;
using test::roomy_rules;

constexpr FrontEnd kSlowFront{.request_s = 20e-3, .per_client_s = 0.7e-3};

ServerKind linear_server(FrontEnd front_end = {}) { return {LinearEngine{}, roomy_rules(), {}, front_end}; }

/// An engine whose steps all take a second.
ServerKind clockwork(QueueRules rules, FrontEnd front_end = {}) {
  return {[](const StepLoad&) { return 1.0; }, rules, {}, front_end};
}

RequestMix ranges() { return {.prompt = Lengths({{400, 1200, 1}}), .generate = Lengths({{40, 120, 1}})}; }

QueueFigures of_clients(std::int64_t clients, std::int64_t each, const ServerKind& server, std::int64_t servers = 1) {
  return simulate_clients(drawn_requests(ranges(), clients * each, 1), clients, server, servers).figures;
}

TEST(Clients, OneSeesThePromptAndTheFrontEnd) {
  const std::vector<ServedRequest> requests(5, {.prompt = 1000, .generate = 101});
  const QueueResult result = simulate_clients(requests, 1, linear_server(kSlowFront));
  // Front-end 20 + 1 x 0.7 ms; the prompt 5 ms + 1000 (0.02 ms + 500.5 keys x 1 ns) = 25.5005 ms.
  for (const RequestTimes& r : result.requests) EXPECT_NEAR(r.ttft_s(), 46.2005e-3, 1e-9);
  for (std::size_t i = 1; i < 5; ++i) EXPECT_EQ(result.requests[i].arrival_s, result.requests[i - 1].finished_s);
  EXPECT_TRUE(result.figures.stable);
}

TEST(Clients, TheFirstComeAllAtOnce) {
  // As many requests as clients are a burst.
  const std::vector<ServedRequest> requests = drawn_requests(ranges(), 30, 3);
  const QueueFigures burst = simulate_queue(requests, linear_server()).figures;
  const QueueFigures clients = simulate_clients(requests, 30, linear_server()).figures;
  EXPECT_EQ(burst.ttft_s.p99, clients.ttft_s.p99);
  EXPECT_EQ(burst.span_s, clients.span_s);
  EXPECT_TRUE(burst.stable);
  // Prompts of 800 tokens on average in steps of 8192: the last of 30 waits for three steps.
  EXPECT_GT(burst.ttft_s.p99, 2 * burst.ttft_s.p50 / 3);
}

TEST(Clients, ObeyLittlesLaw) {
  for (const std::int64_t clients : {1, 4, 32}) {
    for (const FrontEnd& front : {FrontEnd{}, kSlowFront}) {
      const QueueFigures f = of_clients(clients, 300, linear_server(front));
      const auto in_flight = static_cast<double>(clients);
      EXPECT_NEAR(f.requests_per_s * f.latency_s.mean, in_flight, 0.01 * in_flight) << clients;
      EXPECT_NEAR(f.mean_in_system, in_flight, 0.01 * in_flight) << clients;
    }
  }
}

TEST(Clients, AgreeWithAnOpenLoopOfTheirThroughput) {
  const ServerKind server = linear_server(kSlowFront);
  for (const std::int64_t clients : {4, 8}) {
    const QueueFigures closed = of_clients(clients, 1000, server);
    const QueueFigures open =
        simulate_queue(poisson_requests(ranges(), closed.requests_per_s, clients * 1000, 1), server).figures;
    EXPECT_NEAR(closed.tpot_s->mean / open.tpot_s->mean, 1, 0.05) << clients;
    // A client never finds itself before it (arrival theorem): 0.7 ms less front-end, and one sequence fewer to prompt
    // beside, of 30 to 40 ms.
    EXPECT_LT(closed.ttft_s.mean, open.ttft_s.mean) << clients;
    EXPECT_GT(closed.ttft_s.mean, 0.9 * open.ttft_s.mean) << clients;
    EXPECT_NEAR(closed.latency_s.mean / open.latency_s.mean, 1, 0.05) << clients;
  }
}

TEST(Clients, MoreOfThemWaitLongerAndGetMoreInAll) {
  std::optional<QueueFigures> fewer;
  for (std::int64_t clients = 1; clients <= 64; clients *= 2) {
    const QueueFigures f = of_clients(clients, 100, linear_server(kSlowFront));
    if (fewer) {
      EXPECT_GE(f.ttft_s.mean, fewer->ttft_s.mean) << clients;
      EXPECT_GE(f.tpot_s->mean, fewer->tpot_s->mean) << clients;
      EXPECT_GE(f.latency_s.mean, fewer->latency_s.mean) << clients;
      EXPECT_GE(f.output_tokens_per_s, fewer->output_tokens_per_s) << clients;
    }
    fewer = f;
  }
}

TEST(Clients, ShareServersEvenly) {
  const std::vector<ServedRequest> some(40, {.prompt = 500, .generate = 50});
  const std::vector<ServedRequest> twice(80, {.prompt = 500, .generate = 50});
  const QueueFigures one = simulate_clients(some, 4, linear_server()).figures;
  const QueueFigures two = simulate_clients(twice, 8, linear_server(), 2).figures;
  EXPECT_NEAR(one.ttft_s.mean, two.ttft_s.mean, 1e-9);
  EXPECT_NEAR(one.span_s, two.span_s, 1e-9);
  EXPECT_NEAR(2 * one.output_tokens_per_s, two.output_tokens_per_s, 1e-6);
}

TEST(Clients, AServerThatSeldomLooksSeesARequestLater) {
  const std::vector<ServedRequest> two{{.arrival_s = 0, .prompt = 10, .generate = 50},
                                       {.arrival_s = 2.5, .prompt = 10, .generate = 5}};
  QueueRules rules = roomy_rules();
  // Looked for when the step under way ends at 3; the prompt's step ends at 4.
  EXPECT_NEAR(simulate_queue(two, clockwork(rules)).requests[1].ttft_s(), 1.5, 1e-9);
  // It looked after the first prompt, at 1, and looks again ten decode steps later, at 11.
  rules.receive_interval = 10;
  EXPECT_NEAR(simulate_queue(two, clockwork(rules)).requests[1].ttft_s(), 9.5, 1e-9);
  // Looks at 4, 7 and 10: one that found nobody is not looked for again before its time.
  rules.receive_interval = 3;
  EXPECT_NEAR(simulate_queue(two, clockwork(rules)).requests[1].ttft_s(), 2.5, 1e-9);
  const std::vector<ServedRequest> later{two[0], {.arrival_s = 7.5, .prompt = 10, .generate = 5}};
  EXPECT_NEAR(simulate_queue(later, clockwork(rules)).requests[1].ttft_s(), 3.5, 1e-9);
}

TEST(Clients, PromptsWaitForOthersToShareTheirStep) {
  const ServedRequest first{.arrival_s = 0, .prompt = 10, .generate = 50};
  const ServedRequest second{.arrival_s = 2.5, .prompt = 30, .generate = 5};
  const ServedRequest third{.arrival_s = 4.5, .prompt = 30, .generate = 5};
  QueueRules rules = roomy_rules();
  rules.token_budget = rules.prompt_chunk = 100;
  rules.prompt_wait_steps = 5;
  rules.prompt_wait_share = 0.5;
  // Nobody decodes when the first comes. The second may join at 3, waits five steps, and has its token at 9.
  const std::vector<ServedRequest> two{first, second};
  const QueueResult alone = simulate_queue(two, clockwork(rules));
  EXPECT_NEAR(alone.requests[0].ttft_s(), 1, 1e-9);
  EXPECT_NEAR(alone.requests[1].ttft_s(), 6.5, 1e-9);
  // With the third, at 5, a step has 1 + 30 + 30 tokens, more than half of 100: both have their token at 6.
  const std::vector<ServedRequest> three{first, second, third};
  const QueueResult together = simulate_queue(three, clockwork(rules));
  EXPECT_NEAR(together.requests[1].ttft_s(), 3.5, 1e-9);
  EXPECT_NEAR(together.requests[2].ttft_s(), 1.5, 1e-9);
}

TEST(Clients, TokensComeInChunksAfterTheFirst) {
  const std::vector<ServedRequest> one{{.prompt = 10, .generate = 26}};
  const QueueFigures each = simulate_queue(one, clockwork(roomy_rules())).figures;
  const QueueFigures tens = simulate_queue(one, clockwork(roomy_rules(), {.stream_interval = 10})).figures;
  EXPECT_EQ(each.ttft_s.mean, tens.ttft_s.mean);
  EXPECT_EQ(each.latency_s.mean, tens.latency_s.mean);
  EXPECT_NEAR(each.inter_token_s->mean, 1, 1e-9);
  // 25 tokens after the first: gaps of 10, 10 and 5 steps.
  EXPECT_NEAR(tens.inter_token_s->mean, 25.0 / 3, 1e-9);
  EXPECT_NEAR(tens.inter_token_s->p50, 10, 1e-7);
}

TEST(Clients, ALengthRatioIsARange) {
  const Lengths lengths = shortened(Lengths::fixed(1024), 0.8);
  EXPECT_EQ(lengths.smallest(), 819);  // 819.2
  EXPECT_EQ(lengths.largest(), 1024);
  EXPECT_DOUBLE_EQ(lengths.mean(), 921.5);
  EXPECT_TRUE(shortened(Lengths::fixed(7), 1).is_fixed());
}

}  // namespace
}  // namespace scalecalc
