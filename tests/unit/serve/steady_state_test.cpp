// The closed forms against the simulation: each difference with its reason's size.
#include "serve/queueing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <ctime>
#include <optional>

#include "serve/over_seeds.h"
#include "support/serving_engine.h"

namespace scalecalc {
namespace {

using test::LinearEngine;
using test::RooflineEngine;
using test::roomy_rules;

RequestMix fixed_mix(std::int64_t prompt, std::int64_t generate) {
  return {.prompt = Lengths::fixed(prompt), .generate = Lengths::fixed(generate)};
}

QueueFigures simulated(const StepSeconds& seconds, const QueueRules& rules, const RequestMix& mix, double rate,
                       std::int64_t count = 20'000) {
  return simulate_queue(poisson_requests(mix, rate, count, 11), {seconds, rules}).figures;
}

void expect_close(double found, double wanted, double share, const char* what) {
  EXPECT_NEAR(found, wanted, share * wanted) << what;
}

TEST(SteadyState, PrefillAloneIsAnMD1Queue) {
  // One token each: the server does nothing but prompts, one a step as long as they do not wait for each other.
  QueueRules rules = roomy_rules();
  rules.token_budget = 1000;
  const RequestMix mix = fixed_mix(1000, 1);
  const StepSeconds seconds = LinearEngine{};
  for (const double utilisation : {0.3, 0.6, 0.8}) {
    const double rate = utilisation * largest_rate(seconds, rules, mix);
    const SteadyState closed = steady_state(seconds, rules, mix, rate);
    const QueueFigures sample = simulated(seconds, rules, mix, rate, 100'000);
    // Pollaczek and Khinchine: equal services of S wait L S^2 / (2 (1 - L S)).
    const double service = seconds({.prompts = 1, .prefill_tokens = 1000, .prefill_context = 500.5});
    const double wait = rate * service * service / (2 * (1 - rate * service));
    expect_close(*closed.ttft_s, service + wait, 1e-4, "TTFT of M/D/1");
    // At 0.8 the mean of 100,000 requests still scatters by 1.7 %.
    expect_close(sample.ttft_s.mean, *closed.ttft_s, 0.03, "TTFT");
    expect_close(sample.utilisation, utilisation, 0.02, "utilisation");
  }
}

TEST(SteadyState, AtLowLoadTtftIsThePrefill) {
  const RequestMix mix = fixed_mix(4000, 50);
  const StepSeconds seconds = LinearEngine{};
  const QueueRules rules = roomy_rules();
  const SteadyState closed = steady_state(seconds, rules, mix, 0.01);
  const double alone = LinearEngine{}({.prefill_tokens = 4000, .prefill_context = 2000.5});
  expect_close(*closed.ttft_s, alone, 0.005, "closed form");
  expect_close(simulated(seconds, rules, mix, 0.01, 2000).ttft_s.mean, alone, 0.005, "simulation");
  expect_close(closed.gap_s, LinearEngine{}({.sequences = 1, .context_tokens = 4025}), 0.02, "TPOT");
}

TEST(SteadyState, MatchesTheSimulationBelowSaturation) {
  for (const Batching batching : {Batching::kChunkedPrefill, Batching::kPrefillFirst}) {
    for (const double utilisation : {0.1, 0.3, 0.5, 0.7, 0.8}) {
      QueueRules rules = roomy_rules();
      rules.batching = batching;
      rules.token_budget = 2048;
      const RequestMix mix = fixed_mix(2000, 200);
      const StepSeconds seconds = LinearEngine{};
      const double rate = utilisation * steady_rates(seconds, rules, mix, 1e-9).largest_rate;
      const SteadyState closed = steady_state(seconds, rules, mix, rate);
      const QueueFigures sample = simulated(seconds, rules, mix, rate, 50'000);
      SCOPED_TRACE(testing::Message() << static_cast<int>(batching) << " at " << utilisation);
      expect_close(sample.tpot_s->mean, closed.gap_s, 0.03, "TPOT");
      expect_close(sample.mean_decoding, closed.batch, 0.03, "batch");
      expect_close(sample.ttft_s.mean, *closed.ttft_s, 0.03, "TTFT");
      expect_close(sample.latency_s.mean, closed.latency_s, 0.03, "latency");
      EXPECT_TRUE(sample.stable);
      EXPECT_TRUE(closed.proven());
    }
  }
}

TEST(SteadyState, PromptsOfSeveralStepsWaitInLine) {
  // Long prompts and short answers: neither changes slowly beside the other.
  QueueRules rules = roomy_rules();
  rules.token_budget = rules.prompt_chunk = 2048;
  const StepSeconds seconds = LinearEngine{};
  for (const std::int64_t prompt : {5000, 12'288}) {
    for (const double utilisation : {0.5, 0.8}) {
      const RequestMix mix = fixed_mix(prompt, 100);
      const double rate = utilisation * steady_state(seconds, rules, mix, 1e-9).largest_rate;
      const SteadyState closed = steady_state(seconds, rules, mix, rate);
      const QueueFigures sample = simulated(seconds, rules, mix, rate, 100'000);
      SCOPED_TRACE(testing::Message() << prompt << " at " << utilisation);
      expect_close(sample.tpot_s->mean, closed.gap_s, 0.03, "TPOT");
      expect_close(sample.ttft_s.mean, *closed.ttft_s, 0.03, "TTFT");
      expect_close(sample.latency_s.mean, closed.latency_s, 0.03, "latency");
      // Prompts of 12,288 wait in lines too long for the chain's limit of work at 0.8: the simulation alone is told.
      EXPECT_EQ(closed.proven(), prompt == 5000 || utilisation < 0.8);
    }
  }
}

TEST(SteadyState, ALineOfEqualServicesAloneIsAnMD1Queue) {
  // Four steps to a prompt and one token each; half a step passes before the next one looks, but an idle server at
  // once.
  QueueRules rules = roomy_rules();
  rules.token_budget = rules.prompt_chunk = 1000;
  const StepSeconds seconds = [](const StepLoad& load) { return 1e-3 * load.prefill_tokens / 1000; };
  const double rate = 0.6 / 4e-3;
  const SteadyState closed = steady_state(seconds, rules, fixed_mix(4000, 1), rate);
  expect_close(*closed.ttft_s, 4e-3 + rate * 4e-3 * 4e-3 / (2 * (1 - 0.6)), 1e-3, "TTFT of M/D/1");
}

TEST(SteadyState, SaysWhereItIsOnlyNear) {
  QueueRules rules = roomy_rules();
  const auto near = [&](const RequestMix& mix, double load = 0.5) {
    const double largest = steady_rates(LinearEngine{}, rules, mix, 1e-9).largest_rate;
    return steady_state(LinearEngine{}, rules, mix, load * largest).only_near;
  };
  EXPECT_EQ(near(fixed_mix(20'000, 100)), OnlyNear::kNothing);
  EXPECT_EQ(near(fixed_mix(500, 100), 0.8), OnlyNear::kNothing);
  EXPECT_EQ(near(fixed_mix(500, 100), 0.85), OnlyNear::kLoad);
  EXPECT_EQ(near(fixed_mix(500, 1), 0.8), OnlyNear::kNothing);
  EXPECT_EQ(near({.prompt = Lengths({{500, 4000, 1}}), .generate = Lengths::fixed(100)}), OnlyNear::kLengths);
  EXPECT_EQ(near({.prompt = Lengths::fixed(500), .generate = Lengths({{50, 150, 1}})}), OnlyNear::kLengths);
  rules.token_budget = 4 * rules.prompt_chunk;
  rules.lanes = 4;
  EXPECT_EQ(near(fixed_mix(2000, 100)), OnlyNear::kNothing);
  EXPECT_EQ(near(fixed_mix(8000, 100)), OnlyNear::kRanks);
  EXPECT_EQ(near(fixed_mix(20'000, 100)), OnlyNear::kRanks);  // a later one passes who has more steps left
  rules.token_budget = rules.prompt_chunk;
  rules.lanes = 1;
  rules.prompt_wait_steps = 10;
  EXPECT_EQ(near(fixed_mix(500, 100)), OnlyNear::kWaits);
  rules.prompt_wait_steps = 0;
  rules.receive_interval = 10;
  EXPECT_EQ(near(fixed_mix(500, 100)), OnlyNear::kReceive);
}

TEST(SteadyState, OneRankMayDecodeMoreThanItsChunk) {
  // Its budget has room for all that decode, so that it is more than a prompt's chunk.
  QueueRules rules = roomy_rules();
  rules.prompt_chunk = 512;
  rules.token_budget = 600;
  const double largest = steady_rates(LinearEngine{}, rules, fixed_mix(400, 100), 1e-9).largest_rate;
  EXPECT_NE(steady_rates(LinearEngine{}, rules, fixed_mix(400, 100), 0.5 * largest).only_near, OnlyNear::kRanks);
}

TEST(SteadyState, OfFewSequencesItIsOnlyNear) {
  // Each was told for proven while a simulation differed by 4 to 15 %.
  const RooflineEngine engine{.weights = 7e-3, .token = 2.3e-5, .cached_token = 4e-8};
  const QueueRules rules = roomy_rules();
  struct Case {
    std::int64_t prompt, generate;
    double rate;
  };
  for (const Case& c : {Case{8192, 2, 2}, Case{2048, 10, 15}, Case{1000, 10, 31}, Case{8192, 20, 2}}) {
    const SteadyState s = steady_state(engine, rules, fixed_mix(c.prompt, c.generate), c.rate);
    EXPECT_TRUE(s.stable) << c.prompt;
    EXPECT_EQ(s.only_near, OnlyNear::kFew) << c.prompt << "/" << c.generate;
  }
  // A step more beside any that decodes.
  EXPECT_EQ(steady_state(engine, rules, fixed_mix(8192, 100), 2).only_near, OnlyNear::kFew);
  EXPECT_EQ(steady_state(engine, rules, fixed_mix(8000, 100), 2).only_near, OnlyNear::kNothing);
}

TEST(SteadyState, WhereRequestsWaitForAPlaceItIsOnlyNear) {
  QueueRules rules = roomy_rules();
  const RequestMix mix = fixed_mix(1000, 400);
  const double rate = 0.5 * steady_rates(LinearEngine{}, rules, mix, 1e-9).largest_rate;
  const SteadyState roomy = steady_state(LinearEngine{}, rules, mix, rate);
  EXPECT_EQ(roomy.only_near, OnlyNear::kNothing);
  // Of sequences that are as many as Poisson's number, one in seven finds this cache full.
  rules.kv_tokens = (roomy.batch + std::sqrt(roomy.batch)) * 1200;
  EXPECT_NE(steady_state(LinearEngine{}, rules, mix, rate).only_near, OnlyNear::kNothing);
}

TEST(SteadyState, ARateThatIsKeptUpWithIsBelowTheLargest) {
  const QueueRules rules = roomy_rules();
  for (const std::int64_t generate : {1, 2, 60, 400}) {
    const RequestMix mix = fixed_mix(1000, generate);
    const double largest = steady_rates(LinearEngine{}, rules, mix, 1e-9).largest_rate;
    EXPECT_TRUE(keeps_up(LinearEngine{}, rules, mix, 0.99 * largest)) << generate;
    EXPECT_FALSE(keeps_up(LinearEngine{}, rules, mix, 1.01 * largest)) << generate;
  }
}

TEST(SteadyState, TakesNoTime) {
  // Short answers near the largest rate took 10 to 20 s: runs of prompts hardly end there.
  const RooflineEngine engine{.weights = 7e-3, .token = 2.3e-5, .cached_token = 4e-8};
  const std::clock_t start = std::clock();
  for (const std::int64_t prompt : {100, 500, 1000}) {
    const RequestMix mix = fixed_mix(prompt, 2);
    const double largest = steady_rates(engine, roomy_rules(), mix, 1e-9).largest_rate;
    steady_state(engine, roomy_rules(), mix, 0.95 * largest);
  }
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 5);
}

TEST(MeanErrors, AreThoseOfPartsOfARun) {
  // Twenty parts of twenty requests whose times are 1 and 3 s in turn: variance of the parts 20/19, of their mean 1/19.
  QueueResult run;
  run.figures.tpot_s = run.figures.inter_token_s = Percentiles{.mean = 0.2};
  for (int i = 0; i < 400; ++i) {
    const double t = (i / 20) % 2 == 0 ? 1 : 3, at = i;
    run.requests.push_back(
        {.arrival_s = at, .admitted_s = at, .first_token_s = at + t, .finished_s = at + t + 2, .generate = 11});
  }
  const std::optional<MeanErrors> errors = errors_of(run);
  ASSERT_TRUE(errors.has_value());
  EXPECT_NEAR(errors->ttft_s, 2.093 / std::sqrt(19), 1e-12);
  EXPECT_NEAR(errors->latency_s, 2.093 / std::sqrt(19), 1e-12);
  EXPECT_NEAR(errors->tpot_s, 0, 1e-12);
  EXPECT_NEAR(errors->wait_s, 0, 1e-12);
  run.figures.stable = false;
  EXPECT_FALSE(errors_of(run).has_value());
  run.figures.stable = true;
  run.requests.resize(399);
  EXPECT_FALSE(errors_of(run).has_value());
}

TEST(SteadyState, PromptsThatShareAStepDoNotWaitForEachOther) {
  QueueRules rules = roomy_rules();
  rules.token_budget = 8192;
  for (const double rate : {2.0, 6.0, 10.0}) {
    const SteadyState closed = steady_state(LinearEngine{}, rules, fixed_mix(1500, 100), rate);
    const QueueFigures sample = simulated(LinearEngine{}, rules, fixed_mix(1500, 100), rate);
    SCOPED_TRACE(rate);
    expect_close(sample.ttft_s.mean, *closed.ttft_s, 0.03, "TTFT");
    expect_close(sample.tpot_s->mean, closed.gap_s, 0.03, "TPOT");
  }
}

TEST(SteadyState, PromptsAloneShareSteps) {
  QueueRules rules = roomy_rules();
  for (const double rate : {5.0, 15.0, 25.0}) {
    const SteadyState closed = steady_state(LinearEngine{}, rules, fixed_mix(1000, 1), rate);
    const QueueFigures sample = simulated(LinearEngine{}, rules, fixed_mix(1000, 1), rate);
    SCOPED_TRACE(rate);
    expect_close(sample.ttft_s.mean, *closed.ttft_s, 0.03, "TTFT");
  }
}

TEST(SteadyState, EveryStepMayCarryPromptsOfManyRanks) {
  // Sixteen ranks, each with prompts of its own; a step takes as long as one prompt.
  QueueRules rules = roomy_rules();
  rules.token_budget = 16 * 2048;
  rules.lanes = 16;
  rules.prompt_chunk = 2048;
  rules.most_sequences = 4096;
  const StepSeconds seconds = [](const StepLoad& load) {
    return LinearEngine{}({.sequences = load.sequences / 16,
                           .context_tokens = load.context_tokens / 16,
                           .prefill_tokens = std::ceil(load.prompts / 16) * 2000,
                           .prefill_context = load.prefill_context});
  };
  const double alone = seconds({.prompts = 1, .prefill_context = 1000});
  const double rate = 4 / alone;
  const SteadyState closed = steady_state(seconds, rules, fixed_mix(2000, 100), rate);
  const QueueFigures sample = simulated(seconds, rules, fixed_mix(2000, 100), rate);
  expect_close(sample.ttft_s.mean, *closed.ttft_s, 0.03, "TTFT");
  expect_close(sample.tpot_s->mean, closed.gap_s, 0.03, "TPOT");
}

TEST(SteadyState, MatchesTheSimulationOfMixedLengths) {
  QueueRules rules = roomy_rules();
  rules.token_budget = 1024;
  const RequestMix mix{.prompt = Lengths({{500, 4000, 1}}), .generate = Lengths({{1, 400, 3}, {401, 1000, 1}})};
  const StepSeconds seconds = RooflineEngine{};
  const double rate = 0.5 * largest_rate(seconds, rules, mix);
  const SteadyState closed = steady_state(seconds, rules, mix, rate);
  const QueueFigures sample = simulated(seconds, rules, mix, rate);
  expect_close(sample.inter_token_s->mean, closed.gap_s, 0.03, "gap");
  expect_close(sample.ttft_s.mean, *closed.ttft_s, 0.05, "TTFT");
}

TEST(SteadyState, SaturatedThroughputIsTheLargestRate) {
  struct Case {
    const char* name;
    Batching batching;
    Admission admission;
    std::int64_t sequences;
    double kv_tokens;
    double within;
  };
  for (const Case& c :
       {Case{"slots, mixed", Batching::kChunkedPrefill, Admission::kPromptFits, 64, 4e6, 0.03},
        Case{"slots, prefill first", Batching::kPrefillFirst, Admission::kPromptFits, 64, 4e6, 0.03},
        Case{"memory reserved", Batching::kChunkedPrefill, Admission::kRequestFits, 256, 1e5, 0.05},
        Case{"memory with evictions", Batching::kChunkedPrefill, Admission::kPromptFits, 256, 1e5, 0.10},
        Case{"prompts decide", Batching::kChunkedPrefill, Admission::kPromptFits, 512, 4e6, 0.03}}) {
    QueueRules rules = roomy_rules();
    rules.batching = c.batching;
    rules.admission = c.admission;
    rules.most_sequences = c.sequences;
    rules.kv_tokens = c.kv_tokens;
    rules.token_budget = 1024;
    const RequestMix mix = fixed_mix(1500, 300);
    const StepSeconds seconds = LinearEngine{};
    const double rate = largest_rate(seconds, rules, mix);
    const QueueFigures sample = simulated(seconds, rules, mix, 3 * rate);
    expect_close(sample.requests_per_s, rate, c.within, c.name);
    EXPECT_FALSE(sample.stable) << c.name;
  }
}

TEST(SteadyState, TokensInAndOutOfTheCache) {
  const SteadyState s = steady_state(LinearEngine{}, roomy_rules(), fixed_mix(1000, 101), 5);
  EXPECT_DOUBLE_EQ(s.finished_per_step, s.batch / 100);
  EXPECT_DOUBLE_EQ(s.admitted_tokens_per_step, s.batch / 100 * 1000);
  EXPECT_DOUBLE_EQ(s.evicted_tokens_per_step, s.batch / 100 * 1100);
  EXPECT_DOUBLE_EQ(s.output_tokens_per_s, 505);
}

TEST(SteadyState, PastTheLargestRateThereIsNone) {
  const StepSeconds seconds = LinearEngine{};
  const double largest = steady_state(seconds, roomy_rules(), fixed_mix(1000, 100), 1).largest_rate;
  EXPECT_TRUE(steady_state(seconds, roomy_rules(), fixed_mix(1000, 100), 0.999 * largest).stable);
  EXPECT_FALSE(steady_state(seconds, roomy_rules(), fixed_mix(1000, 100), 1.001 * largest).stable);
}

}  // namespace
}  // namespace scalecalc
