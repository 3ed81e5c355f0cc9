// The loads that the closed forms ask an engine about, by hand; and the chains of prompts against the same chains
// followed number by number, token by token, until nothing changes.
#include "serve/prompt_chain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "serve/prompt_line.h"
#include "support/serving_engine.h"

namespace scalecalc {
namespace {

RequestMix same_lengths(std::int64_t prompt, std::int64_t generate) {
  return {.prompt = Lengths::fixed(prompt), .generate = Lengths::fixed(generate)};
}

/// Half of a prompt of 100 tokens is kept: three blocks of 16, so 52 are computed.
class SteadyEngineLoads : public testing::Test {
 protected:
  SteadyEngineLoads() {
    rules_.prefix_hit = 0.5;
    rules_.token_budget = 160;
    rules_.prompt_chunk = 20;
  }
  SteadyEngine engine() { return {seconds_, rules_, mix_}; }

  StepLoad last_;
  StepSeconds seconds_ = [this](const StepLoad& load) {
    last_ = load;
    return 0.001 + 1e-4 * load.prompts + 1e-5 * load.prefill_tokens + 1e-6 * load.sequences;
  };
  QueueRules rules_ = test::roomy_rules();
  RequestMix mix_ = same_lengths(100, 21);
};

TEST_F(SteadyEngineLoads, DecodingSequencesReachTheirMeanContext) {
  EXPECT_EQ(engine().decode_step(0), 0);
  engine().decode_step(8);
  EXPECT_EQ(last_.sequences, 8);
  EXPECT_DOUBLE_EQ(last_.context_tokens, 8 * 110.5);  // keys of the second to the last token: 101 to 120
  EXPECT_EQ(last_.prefill_tokens, 0);
}

TEST_F(SteadyEngineLoads, PromptsTakeWhatTheBudgetLeaves) {
  EXPECT_EQ(engine().computed_tokens(), 52);
  EXPECT_EQ(engine().chunk(60), 100);
  EXPECT_EQ(engine().chunk(1000), 1);
  EXPECT_EQ(engine().chunk_of_one(60), 20);
  EXPECT_EQ(engine().chunk_of_one(150), 10);
  rules_.batching = Batching::kPrefillFirst;
  EXPECT_EQ(engine().chunk(60), 160);
}

TEST_F(SteadyEngineLoads, StepsAndChunksOfPrompts) {
  // 52 tokens in chunks of 20: 20, 20 and 12.
  EXPECT_EQ(engine().steps_of_one(0), (std::pair<double, double>(3, 0)));
  const auto chunks = engine().chunks(0);
  ASSERT_EQ(chunks.size(), 2U);
  EXPECT_EQ(chunks[0].first, 12);
  EXPECT_DOUBLE_EQ(chunks[0].second, 1.0 / 3);
  EXPECT_EQ(chunks[1].first, 20);
  EXPECT_DOUBLE_EQ(chunks[1].second, 2.0 / 3);
  // Of two lengths, 20 and 50 tokens: one step and three, the chunks 20, 20, 20 and 10; mean 2, variance 1.
  rules_.prefix_hit = 0;
  mix_.prompt = Lengths({{20, 20, 1}, {50, 50, 1}});
  EXPECT_DOUBLE_EQ(engine().steps_of_one(0).first, 2);
  EXPECT_DOUBLE_EQ(engine().steps_of_one(0).second, 1);
  const auto mixed = engine().chunks(0);
  ASSERT_EQ(mixed.size(), 2U);
  EXPECT_EQ(mixed[0].first, 10);
  EXPECT_DOUBLE_EQ(mixed[0].second, 0.25);
  EXPECT_DOUBLE_EQ(mixed[1].second, 0.75);
}

TEST_F(SteadyEngineLoads, AStepOfPromptsHasTheirMeanContext) {
  engine().prefill_step(8, 3, 90, 40);
  EXPECT_EQ(last_.sequences, 8);
  EXPECT_DOUBLE_EQ(last_.context_tokens, 8 * 110.5);
  EXPECT_EQ(last_.prompts, 3);
  EXPECT_EQ(last_.prefill_tokens, 90);
  EXPECT_EQ(last_.largest_chunk, 40);
  EXPECT_DOUBLE_EQ(last_.prefill_context, 48 + 53.0 / 2);  // after 48 kept, 52 of which the first sees one key
  rules_.batching = Batching::kPrefillFirst;
  engine().prefill_step(8, 3, 90);
  EXPECT_EQ(last_.sequences, 0) << "they do not share a step";
  EXPECT_EQ(last_.context_tokens, 0);
}

TEST_F(SteadyEngineLoads, AStepInLineEndsOneBeginsOthersAndCutsTheLast) {
  // The last 10 of one, 52 of the next, 8 of a third.
  engine().step_in_line(8, 10, 70);
  EXPECT_EQ(last_.prompts, 3);
  EXPECT_EQ(last_.prefill_tokens, 70);
  EXPECT_EQ(last_.largest_chunk, 52);
  EXPECT_EQ(last_.sequences, 8);
  const double keys = 10 * (48 + 42 + 5.5) + 52 * (48 + 26.5) + 8 * (48 + 4.5);
  EXPECT_DOUBLE_EQ(last_.prefill_context, keys / 70);
  engine().step_in_line(8, 30, 12);
  EXPECT_EQ(last_.prompts, 1);
  EXPECT_EQ(last_.largest_chunk, 12);
  EXPECT_DOUBLE_EQ(last_.prefill_context, 48 + 22 + 6.5);
}

TEST_F(SteadyEngineLoads, AFullStepLiesBetweenThoseOfWholeNumbersOfPrompts) {
  // 152 tokens beside 8 sequences; each prompt costs 1e-4.
  const auto step = [](double prompts) { return 0.001 + 1e-4 * prompts + 1e-5 * 152 + 1e-6 * 8; };
  EXPECT_NEAR(engine().full_step(8, 3), step(3), 1e-15);
  EXPECT_NEAR(engine().full_step(8, 3.25), step(3.25), 1e-15);
  EXPECT_NEAR(engine().full_step(8, 0.5), step(1), 1e-15) << "somebody is there";
  // A prompt takes three steps of 52/3 tokens, so 152 / (52/3) are in one; it adds the share 52/152 of what they add.
  const double decode = 0.001 + 1e-6 * 8;
  EXPECT_NEAR(engine().packed_cost(8), 52.0 / 152 * (step(152 / (52.0 / 3)) - decode), 1e-15);
  rules_.batching = Batching::kPrefillFirst;
  const double alone = 0.001 + 1e-4 * 160 / (52.0 / 3) + 1e-5 * 160;
  EXPECT_NEAR(engine().packed_cost(8), 52.0 / 160 * alone, 1e-15);
}

using Shares = std::vector<double>;

double poisson_share(double mean, std::size_t n) {
  return std::exp(-mean + static_cast<double>(n) * std::log(mean) - std::lgamma(static_cast<double>(n) + 1));
}

/// A chain of steps: how long each state's takes, who leaves and who comes in it.
struct Steps {
  std::vector<double> seconds, decodes;  ///< by state
  std::vector<Shares> move;              ///< from state to state
  std::vector<double> ended, pairs;      ///< prompts that end in it, on average; of ordered pairs of them

  explicit Steps(std::size_t size) : seconds(size), decodes(size), move(size, Shares(size)), ended(size), pairs(size) {}

  Shares after(const Shares& now) const {
    Shares next(now.size());
    for (std::size_t i = 0; i < now.size(); ++i) {
      for (std::size_t j = 0; now[i] > 1e-16 && j < now.size(); ++j) next[j] += now[i] * move[i][j];
    }
    return next;
  }
  Shares settled() const {
    Shares now(seconds.size());
    now[0] = 1;
    for (double apart = 1; apart > 1e-13;) {
      Shares next = after(now);
      apart = 0;
      for (std::size_t i = 0; i < now.size(); ++i) apart += std::abs(next[i] - now[i]);
      now = std::move(next);
    }
    return now;
  }
  static double mean(const Shares& shares, const std::vector<double>& of) {
    return std::inner_product(shares.begin(), shares.end(), of.begin(), 0.0);
  }
};

/// Of `count` decode steps: what a sequence that begins now sees (`begins`), and the variance of the prompts that end
/// meanwhile over their mean.
struct Followed {
  double gap_s = 0, dispersion = 0;
};
Followed follow(const Steps& steps, const Shares& settled, Shares begins, int count) {
  const double come = Steps::mean(settled, steps.ended);
  Followed out{.dispersion = 1 + Steps::mean(settled, steps.pairs) / come - come};
  for (double done = 0; done < count - 1e-9;) {
    const double decodes = Steps::mean(begins, steps.decodes);
    const double part = std::min(1.0, (count - done) / decodes);
    out.gap_s += part * Steps::mean(begins, steps.seconds) / count;
    done += part * decodes;
    out.dispersion += 2 * (1 - done / count) * (Steps::mean(begins, steps.ended) - come);
    begins = steps.after(begins);
  }
  return out;
}

// Prompts in chunks that are drawn: each of those in a step has its last one there with chance 1/2.
struct ChainCase {
  std::int64_t budget;
  double rate;
  Batching batching = Batching::kChunkedPrefill;
  double batch = 10;
};
class ChainOfPrompts : public testing::TestWithParam<ChainCase> {};

TEST_P(ChainOfPrompts, IsFollowedByTheirNumber) {
  const double batch = GetParam().batch;
  const bool mixes = GetParam().batching == Batching::kChunkedPrefill;
  constexpr std::size_t kStates = 120;
  constexpr int kDecodes = 40;
  QueueRules rules = test::roomy_rules();
  rules.batching = GetParam().batching;
  rules.token_budget = GetParam().budget;
  rules.prompt_chunk = 50;
  const double rate = GetParam().rate;
  const StepSeconds seconds = [](const StepLoad& load) {
    return 0.01 + 1e-4 * load.prefill_tokens + 1e-5 * load.sequences;
  };
  const RequestMix mix = same_lengths(100, kDecodes + 1);
  const SteadyEngine engine(seconds, rules, mix);
  const double room = (static_cast<double>(rules.token_budget) - (mixes ? batch : 0)) / 50;  // prompts in a step

  Steps steps(kStates);
  Steps leave(kStates);  // who leaves alone: move[n][m] from n to m
  for (std::size_t n = 0; n < kStates; ++n) {
    const double served = std::min(static_cast<double>(n), room);
    steps.seconds[n] = 0.01 + (mixes || n == 0 ? 1e-5 * batch : 0) + 1e-4 * 50 * served;
    steps.decodes[n] = batch > 0 && (mixes || n == 0) ? 1 : 0;
    if (n == 0 && batch == 0) {  // nothing passes before one comes
      steps.seconds[0] = 1 / rate;
      steps.move[0][1] = 1;
      continue;
    }
    const auto places = static_cast<int>(std::ceil(served));
    const double chance = places > 0 ? served / places / 2 : 0;
    for (int d = 0; d <= places; ++d) {
      const double ways = std::exp(std::lgamma(places + 1.0) - std::lgamma(d + 1.0) - std::lgamma(places - d + 1.0));
      const double share = ways * std::pow(chance, d) * std::pow(1 - chance, places - d);
      steps.ended[n] += share * d;
      steps.pairs[n] += share * d * (d - 1);
      leave.move[n][n - static_cast<std::size_t>(d)] += share;
    }
    for (std::size_t m = 0; m < kStates; ++m) {
      for (std::size_t k = 0; m + k < kStates; ++k) {
        steps.move[n][m + k] += leave.move[n][m] * poisson_share(rate * steps.seconds[n], k);
      }
    }
  }
  const Shares settled = steps.settled();
  // A new sequence finds who is left and who came: weighted by those that end in a step.
  Shares begins(kStates);
  double all = 0;
  for (std::size_t n = 1; n < kStates; ++n) {
    for (std::size_t m = 0; m < n; ++m) {
      const double weight = settled[n] * leave.move[n][m] * static_cast<double>(n - m);
      all += weight;
      for (std::size_t k = 0; weight > 1e-16 && m + k < kStates; ++k) {
        begins[m + k] += weight * poisson_share(rate * steps.seconds[n], k);
      }
    }
  }
  for (double& x : begins) x /= all;
  double time = 0, with = 0, in_service = 0, prompts = 0;
  for (std::size_t n = 0; n < kStates; ++n) {
    const double s = settled[n] * steps.seconds[n];
    const double served = std::min(static_cast<double>(n), room);
    time += s;
    if (n > 0) with += s;
    in_service += s * served;
    // Two equal steps vary not at all, a chance of 1/2 by half of the mean's square: waits are 1 / 1.5 of the chain's.
    prompts += s * (served + (static_cast<double>(n) - served) / 1.5);
    if (n > 0 || batch > 0) prompts += s * rate * steps.seconds[n] / 2;
  }
  const double decoding = Steps::mean(settled, steps.decodes);
  const double gap = decoding > 0 ? time / decoding : 0;
  const PromptQueue all_steps = PromptChain(engine, batch, rate, 0).solve();
  EXPECT_NEAR(all_steps.gap_s, gap, 1e-6 * gap);
  EXPECT_NEAR(all_steps.step_s, gap, 1e-6 * gap);
  EXPECT_NEAR(all_steps.step_share, with / time, 1e-6);
  EXPECT_NEAR(all_steps.in_service, in_service / time, 1e-6 * in_service / time);
  EXPECT_NEAR(all_steps.prompts, prompts / time, 1e-6 * prompts / time);
  if (batch == 0) return;
  // It is followed until a thousandth of the states' shares differs.
  const PromptQueue seen = PromptChain(engine, batch, rate, kDecodes).solve();
  const Followed expected = follow(steps, settled, begins, kDecodes);
  EXPECT_NEAR(seen.gap_s, expected.gap_s, 1e-3 * expected.gap_s);
  EXPECT_NEAR(seen.dispersion, expected.dispersion, 0.01);
  EXPECT_EQ(seen.step_s, all_steps.step_s);
  EXPECT_GT(seen.gap_s, 1.001 * seen.step_s) << "it begins beside the prompts that came during its own";
}

INSTANTIATE_TEST_SUITE_P(Rooms, ChainOfPrompts,
                         testing::Values(ChainCase{160, 30}, ChainCase{145, 45}, ChainCase{60, 25}, ChainCase{310, 60},
                                         ChainCase{150, 40, Batching::kPrefillFirst},
                                         ChainCase{125, 30, Batching::kPrefillFirst},
                                         ChainCase{150, 30, Batching::kChunkedPrefill, 0},
                                         ChainCase{150, 30, Batching::kPrefillFirst, 0}));

/// Too many prompts to a step to be told apart by number: those that come during their own step.
TEST(ChainOfManyPrompts, StepsAreAsLongAsWhatComesInThem) {
  QueueRules rules = test::roomy_rules();  // 8,192 tokens a step
  const StepSeconds seconds = [](const StepLoad& load) { return 0.1 + 1e-5 * load.prefill_tokens; };
  const RequestMix mix = same_lengths(10, 21);
  const SteadyEngine engine(seconds, rules, mix);
  // At 4,000 a second a step of t has 4,000 t prompts of 10 tokens: t = 0.1 + 0.4 t = 1/6. Half as many more have come.
  const PromptQueue many = PromptChain(engine, 100, 4000, 20).solve();
  EXPECT_NEAR(many.step_s, 1.0 / 6, 1e-8);
  EXPECT_EQ(many.gap_s, many.step_s);
  EXPECT_NEAR(many.in_service, 4000.0 / 6, 1e-4);
  EXPECT_NEAR(many.prompts, 1.5 * 4000 / 6, 1e-4);
  EXPECT_EQ(many.step_share, 1);
  // Of 8,092 tokens beside 100 sequences, 809.2 prompts are served; the others wait.
  const PromptQueue full = PromptChain(engine, 100, 6000, 20).solve();
  EXPECT_NEAR(full.in_service, 809.2, 1e-9);
  // At 100 a second one comes in nearly all steps, and they are told apart: t = 0.1 + 0.01 t.
  EXPECT_NEAR(PromptChain(engine, 100, 100, 0).solve().step_s, 0.1 / 0.99, 1e-6);
}

/// Where more prompts come than leave, what is told is that the line is as long as is followed.
TEST(ChainOfManyPrompts, AnOverloadedLineIsAsLongAsIsFollowed) {
  QueueRules rules = test::roomy_rules();
  rules.batching = Batching::kPrefillFirst;
  rules.token_budget = 1000;
  const StepSeconds seconds = [](const StepLoad&) { return 1.0; };
  const RequestMix mix = same_lengths(1000, 21);
  const SteadyEngine engine(seconds, rules, mix);
  // Two come a second and one leaves.
  const PromptQueue queue = PromptChain(engine, 10, 2, 20).solve();
  EXPECT_NEAR(queue.in_service, 1, 1e-6);
  EXPECT_NEAR(queue.step_share, 1, 1e-6);
  // Of 3 offered, with 8 sqrt(3) and 4 x 3 and 40 more, up to 67 are told apart; half of those that come wait beside.
  EXPECT_GT(queue.prompts, 66);
}

// Prompts of four tokens in line.
struct LineCase {
  std::int64_t budget;
  double rate;
};
class LineOfPrompts : public testing::TestWithParam<LineCase> {};

TEST_P(LineOfPrompts, IsFollowedByItsTokens) {
  constexpr double kBatch = 5;
  constexpr std::size_t kPrompt = 4, kStates = 401;
  constexpr int kDecodes = 30;
  QueueRules rules = test::roomy_rules();
  rules.token_budget = rules.prompt_chunk = GetParam().budget;
  const double rate = GetParam().rate;
  const StepSeconds seconds = [](const StepLoad& load) {
    return 0.01 + 2e-3 * load.prefill_tokens + 1e-3 * load.prompts;
  };
  const RequestMix mix = same_lengths(kPrompt, kDecodes + 1);
  const SteadyEngine engine(seconds, rules, mix);
  ASSERT_TRUE(PromptLine::holds(engine));
  const auto chunk = static_cast<std::size_t>(GetParam().budget - 5);
  const auto prompts_in = [](std::size_t tokens) { return (tokens + kPrompt - 1) / kPrompt; };

  Steps steps(kStates);
  std::vector<double> served(kStates);
  for (std::size_t left = 0; left < kStates; ++left) {
    const std::size_t taken = std::min(left, chunk);
    // Those that the step takes tokens of: of the first what is left of it, whole ones, a part of the last.
    const std::size_t after = left - taken;
    const std::size_t untouched = after / kPrompt;
    served[left] = static_cast<double>(prompts_in(left) - untouched);
    steps.decodes[left] = 1;
    steps.seconds[left] = 0.01 + 2e-3 * static_cast<double>(taken) + 1e-3 * served[left];
    const auto ended = static_cast<double>(prompts_in(left) - prompts_in(after));
    steps.ended[left] = ended;
    steps.pairs[left] = ended * (ended - 1);
    for (std::size_t k = 0; after + k * kPrompt < kStates; ++k) {
      steps.move[left][after + k * kPrompt] += poisson_share(rate * steps.seconds[left], k);
    }
  }
  const Shares settled = steps.settled();
  Shares weighted(kStates);
  for (std::size_t left = 0; left < kStates; ++left) weighted[left] = settled[left] * steps.ended[left];
  const double all = std::accumulate(weighted.begin(), weighted.end(), 0.0);
  for (double& x : weighted) x /= all;
  double time = 0, with = 0, in_service = 0, prompts = 0;
  for (std::size_t left = 0; left < kStates; ++left) {
    const double s = settled[left] * steps.seconds[left];
    time += s;
    if (left > 0) with += s;
    in_service += s * served[left];
    prompts += s * (static_cast<double>(prompts_in(left)) + rate * steps.seconds[left] / 2);
  }
  const PromptQueue all_steps = PromptLine(engine, kBatch, rate, 0).solve();
  EXPECT_TRUE(all_steps.settled);
  EXPECT_NEAR(all_steps.gap_s, time, 1e-4 * time);
  EXPECT_NEAR(all_steps.step_share, with / time, 1e-4);
  EXPECT_NEAR(all_steps.in_service, in_service / time, 1e-4 * in_service / time);
  EXPECT_NEAR(all_steps.prompts, prompts / time, 1e-4 * prompts / time);
  const PromptQueue seen = PromptLine(engine, kBatch, rate, kDecodes).solve();
  const Followed expected = follow(steps, settled, steps.after(weighted), kDecodes);
  EXPECT_TRUE(seen.settled);
  EXPECT_NEAR(seen.step_s, time, 1e-4 * time);
  EXPECT_NEAR(seen.gap_s, expected.gap_s, 3e-4 * expected.gap_s);
  EXPECT_NEAR(seen.dispersion, expected.dispersion, 3e-3);
}

INSTANTIATE_TEST_SUITE_P(Chunks, LineOfPrompts,
                         testing::Values(LineCase{8, 20}, LineCase{9, 30}, LineCase{15, 40}, LineCase{6, 8}));

}  // namespace
}  // namespace scalecalc
