#include "serve/serve_output.h"

#include <gtest/gtest.h>

#include <string_view>

namespace scalecalc {
namespace {

double best_figure(const Record& record, std::string_view key) {
  for (const Figure& f : record.figures) {
    if (f.key == key) return std::get<double>(f.value);
  }
  ADD_FAILURE() << key;
  return 0;
}

/// Four drafted tokens, each kept with a chance of 0.8: (1 - 0.8^5) / (1 - 0.8) = 3.36 tokens of a sequence in a step.
TEST(ServeOutput, AStepOfDraftsYieldsSeveralTokensOfASequence) {
  ServeQuestion q;
  q.model = "llama3-70b";
  q.hardware = {"h100-sxm"};
  q.chips = 8;
  q.prompt = 2048;
  q.generate = 256;
  q.batches = {8};
  q.speculation = SpeculationAsked{.draft = "llama3-8b", .drafted = 4, .accept = 0.8};
  const ServeAnswer answer = serve_answer(q, Catalog{});
  ASSERT_TRUE(answer.best && answer.best->speculation);
  const ServePoint& p = *answer.best;
  const Output output = serve_output(answer, false);
  ASSERT_TRUE(output.answer.has_value());
  const Record& best = *output.answer;
  constexpr double kTokens = 8 * (1 - 0.8 * 0.8 * 0.8 * 0.8 * 0.8) / (1 - 0.8);
  const double step_s = p.speculation->draft_s + p.speculation->verify_s;
  const double decoding = kTokens / step_s / 8;
  EXPECT_NEAR(best_figure(best, "decode_tokens_per_s_per_chip"), decoding, 1e-9 * decoding);
  EXPECT_NEAR(best_figure(best, "decode_requests_per_s_per_chip"), decoding / 256, 1e-9 * decoding);
  EXPECT_NEAR(best_figure(best, "finished_sequences_per_step"), kTokens / 256, 1e-12);
  EXPECT_NEAR(best_figure(best, "admitted_tokens_per_step"), kTokens / 256 * 2048, 1e-9);
  EXPECT_NEAR(best_figure(best, "evicted_tokens_per_step"), kTokens / 256 * (2048 + 256), 1e-9);
  EXPECT_GT(best_figure(best, "decode_tokens_per_s_per_chip"), best_figure(best, "tokens_per_s_per_chip"))
      << "prompts beside it take time";
}

/// Where prompts feed fewer sequences than decode replicas have room for, a fraction of one is in flight; the headline
/// tells whole ones, as the table does, and files the mean.
TEST(ServeOutput, ABatchOfAMeanIsToldInWholeSequences) {
  ServeQuestion q;
  q.model = "llama3-8b";
  q.hardware = {"h100-sxm"};
  q.chips = 2;
  q.disaggregate = Disaggregation::kOn;
  ServeAnswer answer = serve_answer(q, Catalog{});
  ASSERT_TRUE(answer.best.has_value());
  answer.best->batch = 366.945;
  const Output output = serve_output(answer, false);
  EXPECT_TRUE(output.headline.front().text.ends_with(", batch 367")) << output.headline.front().text;
  EXPECT_EQ(best_figure(*output.answer, "batch"), 366.945);
}

}  // namespace
}  // namespace scalecalc
