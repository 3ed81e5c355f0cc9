#include "validate/serving_validation.h"

#include <gtest/gtest.h>

#include "unit/validate/served.h"

namespace scalecalc {
namespace {

const Catalog kCatalog;

TEST(ServeValidation, EveryRowIsPredictedOrCounted) {
  const ServeValidation found = validate_serving(
      {.rows = test::served(
           test::served_text("phase: decode, batch: 8, measured: {decode_step_ms: 8}") +
           test::served_text("phase: online, batch: 64, clients: 64, measured: {tpot_ms: 15, ttft_ms: 100}", "b") +
           test::served_text("phase: decode, complete: false", "c"))},
      kCatalog);
  ASSERT_EQ(found.rows.size(), 2U);
  EXPECT_EQ(found.summary.rows, 3U);
  EXPECT_EQ(found.summary.skipped.at("the source leaves out what a prediction needs"), 1U);
  for (const PredictedServing& row : found.rows) {
    EXPECT_LT(row.low, row.predicted);
    EXPECT_GT(row.high, row.predicted);
    EXPECT_LT(row.floor, row.low) << "no coefficient beats the data sheet";
  }
  EXPECT_TRUE(found.rows[1].first_token_error);
  EXPECT_EQ(found.summary.first_tokens, 1U);
  const auto groups = std::count_if(found.groups.begin(), found.groups.end(),
                                    [](const GroupOf<Serving>& g) { return g.by == "batch"; });
  EXPECT_EQ(groups, 3) << "1-32, 33-256, not said";
}

/// What is predicted of the first token of a row that says this of its load.
std::optional<double> first_token(const std::string& load, const std::string& engine = "vllm 0.12") {
  const std::string text = "phase: online, batch: 4, " + load + "measured: {tpot_ms: 8, ttft_ms: 100}";
  std::vector<ServeMeasurement> rows = test::served(test::served_text(text));
  rows.front().engine = engine;
  return validate_serving({.rows = rows}, kCatalog).rows.at(0).first_token;
}

TEST(ServeValidation, AFirstTokenIsPredictedOfAKnownLoad) {
  const ServeValidation unknown = validate_serving(
      {.rows = test::served(test::served_text("phase: online, batch: 4, measured: {tpot_ms: 8, ttft_ms: 100}"))},
      kCatalog);
  EXPECT_EQ(unknown.summary.first_tokens, 0U);
  EXPECT_EQ(unknown.summary.unknown_loads, 1U);
  const double one = *first_token("clients: 1, ");
  const auto ratio = [](const std::string& more) { return *first_token("length_ratio: 0.8, " + more); };
  EXPECT_GT(one, 20e-3) << "vLLM's front-end";
  EXPECT_GT(ratio("clients: 16, requests: 1600, "), one);
  // Of ten requests each a tenth waits for the first burst of sixteen prompts: the mean sees it, the median does not.
  EXPECT_GT(ratio("clients: 16, statistic: mean, "), ratio("clients: 16, statistic: median, "));
  // About eight milliseconds a decode step: 20 of them are 160 ms; ten, half of an interval, 80.
  EXPECT_GT(ratio("clients: 4, prompt_wait_steps: 20, "), ratio("clients: 4, ") + 80e-3);
  const auto of_sglang = [](const std::string& more) { return *first_token("clients: 4, " + more, "SGLang 0.5"); };
  EXPECT_GT(of_sglang("length_ratio: 0.8, receive_interval: 20, "), of_sglang("length_ratio: 0.8, ") + 40e-3);
  EXPECT_THROW(first_token("clients: 4, receive_interval: 20, "), std::out_of_range) << "vLLM has no such interval";
  EXPECT_NEAR(*first_token("rate_requests_per_s: 0.01, "), one, 0.1 * one) << "hardly ever two at once";
  EXPECT_THROW(
      test::served(test::served_text("phase: online, clients: 4, rate_requests_per_s: 2, measured: {tpot_ms: 8}")),
      UserError);
}

TEST(ServeValidation, FiltersNameRows) {
  ServeValidateQuestion q{
      .rows = test::served(test::served_text("phase: decode, batch: 8, measured: {decode_step_ms: 8}") +
                           test::served_text("phase: prefill, batch: 1, measured: {prefill_ms: 30}", "b"))};
  q.only = {{"phase", {"prefill"}}};
  EXPECT_EQ(validate_serving(q, kCatalog).summary.rows, 1U);
  q.only = {{"phase", {"online"}}};
  EXPECT_THROW(validate_serving(q, kCatalog), UserError);
}

PredictedServing row_with_share(double share, const std::string& group, const std::string& chip) {
  PredictedServing out;
  out.row.group = group;
  out.row.chip = chip;
  out.row.measured = 1;
  out.floor = share;
  return out;
}

TEST(ServeValidation, TheNaiveBaselineKnowsOtherSourcesOfTheChipOnly) {
  std::vector<PredictedServing> rows{row_with_share(0.5, "x", "h100"), row_with_share(0.9, "x", "h100"),
                                     row_with_share(0.25, "y", "h100"), row_with_share(0.8, "z", "tpu")};
  Serving::weigh_together(rows);
  EXPECT_DOUBLE_EQ(*rows[0].naive_error, 0.5 / 0.25 - 1);
  EXPECT_DOUBLE_EQ(*rows[2].naive_error, 0.25 / 0.7 - 1) << "the median of the two others";
  EXPECT_DOUBLE_EQ(*rows[3].naive_error, 0.8 / 0.5 - 1) << "no other source of the chip: those of all chips";
}

TEST(ServeValidation, OneSourceHasNoNaiveBaseline) {
  std::vector<PredictedServing> rows{row_with_share(0.5, "x", "h100"), row_with_share(0.9, "x", "h100")};
  Serving::weigh_together(rows);
  EXPECT_FALSE(rows[0].naive_error);
  ServeErrors sums;
  Serving::count({&rows[0], &rows[1]}, Compared::kServing, sums);
  EXPECT_FALSE(sums.naive_mean_abs);
  EXPECT_FALSE(sums.naive_median_abs);
}

TEST(ServeValidation, OnlyRowsWithABaselineAreInItsMean) {
  std::vector<PredictedServing> rows{row_with_share(0.5, "x", "h100"), row_with_share(0.9, "x", "h100")};
  rows[0].naive_error = -0.5;
  ServeErrors sums;
  Serving::count({&rows[0], &rows[1]}, Compared::kServing, sums);
  EXPECT_DOUBLE_EQ(*sums.naive_mean_abs, 0.5);
}

TEST(ServeValidation, ChipsAreCalledAsInTheCatalog) {
  std::vector<ServeMeasurement> rows =
      test::served(test::served_text("phase: decode, batch: 8, measured: {decode_step_ms: 8}"));
  rows.front().chip = "H100";
  const ServeValidation found = validate_serving({.rows = rows, .only = {{"chip", {"h100-sxm"}}}}, kCatalog);
  ASSERT_EQ(found.rows.size(), 1U);
  EXPECT_EQ(found.rows.front().row.chip, "h100-sxm");
}

}  // namespace
}  // namespace scalecalc
