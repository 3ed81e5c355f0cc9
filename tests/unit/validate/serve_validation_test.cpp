#include "validate/serving_validation.h"

#include <gtest/gtest.h>

#include "unit/validate/served.h"

namespace scalecalc {
namespace {

const Catalog kCatalog;

TEST(ServeValidation, EveryRowIsPredictedOrCounted) {
  const ServeValidation found = validate_serving(
      {.rows = test::served(test::served_text("phase: decode, batch: 8, measured: {decode_step_ms: 8}") +
                            test::served_text("phase: online, batch: 64, measured: {tpot_ms: 15, ttft_ms: 100}", "b") +
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
  EXPECT_DOUBLE_EQ(rows[0].naive_error, 0.5 / 0.25 - 1);
  EXPECT_DOUBLE_EQ(rows[2].naive_error, 0.25 / 0.7 - 1) << "the median of the two others";
  EXPECT_DOUBLE_EQ(rows[3].naive_error, 0.8 / 0.5 - 1) << "no other source of the chip: those of all chips";
}

}  // namespace
}  // namespace scalecalc
