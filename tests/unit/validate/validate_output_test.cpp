#include "validate/validate_output.h"

#include <gtest/gtest.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "report/render.h"
#include "unit/validate/measured.h"

namespace scalecalc {
namespace {

using nlohmann::ordered_json;

TEST(ValidateOutput, HoldsTheKeysOfTheContract) {
  ValidateQuestion q{.rows = {test::measurement()}};
  q.rows.push_back(q.rows.front());
  q.rows.back().id = "b";
  q.rows.back().precision = "nvfp4";
  q.rows.push_back(q.rows.front());
  q.rows.back().id = "c";
  q.rows.back().step_s = 50;
  const Validation found = validate(q, Catalog());
  const ordered_json json =
      ordered_json::parse(output_json(validate_output(found, q, {.files = {"runs.yaml"}, .worst = 1}), "1.0", false));
  EXPECT_EQ(json.begin().key(), "schema");
  EXPECT_EQ(json["schema"], "scalecalc/validate/1");
  ASSERT_EQ(json["rows"].size(), 1U) << "the worst one";
  const auto& row = json["rows"][0];
  EXPECT_EQ(row["id"], "c");
  for (const char* key : {"group", "chip", "measured", "predicted", "low", "high", "error"}) {
    EXPECT_TRUE(row.contains(key)) << key;
  }
  EXPECT_DOUBLE_EQ(row["error"].get<double>(), row["predicted"].get<double>() / 50 - 1);
  EXPECT_EQ(json["skipped_rows"][0]["id"], "b");
  const auto& summary = json["summary"];
  EXPECT_EQ(summary["rows"], 3);
  EXPECT_EQ(summary["predicted"], 2);
  EXPECT_EQ(summary["skipped"]["train refuses the question"], 1);
  for (const char* key : {"mean_abs_error", "median_abs_error", "p90_abs_error", "max_abs_error", "bias", "spearman",
                          "kendall", "regret"}) {
    EXPECT_TRUE(summary.contains(key)) << key;
  }
  EXPECT_TRUE(summary["regret"].is_null());
  EXPECT_EQ(json["groups"][0]["by"], "subset");
  EXPECT_EQ(json["groups"][0]["name"], "core");
  EXPECT_EQ(json["groups"][0]["rows"], 3);
}

std::string brief_validation(const ValidateQuestion& q) {
  const Output output = validate_output(validate(q, Catalog()), q, {});
  return render_table(output_report(output, AskedText{.depth = Depth::kBrief}), {});
}

TEST(ValidateOutput, SaysWhatWasLeftOutOfOnesOwnRows) {
  ValidateQuestion q{.rows = {test::measurement()}};
  EXPECT_EQ(brief_validation(q).find("Left out"), std::string::npos);
  q.rows.push_back(q.rows.front());
  q.rows.back().id = "mistyped";
  q.rows.back().chip = "h100-smx";
  const std::string text = brief_validation(q);
  for (const char* said : {"Left out", "mistyped", "the chip is not known", "did you mean 'h100-sxm'?"}) {
    EXPECT_NE(text.find(said), std::string::npos) << said << " in\n" << text;
  }
}

TEST(ValidateOutput, OfManyLeftOutOfAShippedSetOnlyTheNumberIsSaid) {
  Measurement left_out = test::measurement();
  left_out.chip = "h100-smx";
  ValidateQuestion q{.rows = std::vector<Measurement>(13, left_out)};
  EXPECT_NE(brief_validation(q).find("Left out (12 of 13"), std::string::npos);
  for (Measurement& row : q.rows) row.where.file = "built-in:measurements/train.yaml";
  EXPECT_EQ(brief_validation(q).find("Left out"), std::string::npos);
}

TEST(ValidateOutput, OneLineOfCsvForEachRow) {
  const ValidateQuestion q{.rows = {test::measurement()}};
  const std::string csv = render_csv(csv_records(validate_output(validate(q, Catalog()), q, {})));
  EXPECT_EQ(csv.rfind("id,group,", 0), 0U);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 2);
}

TEST(ValidationPlots, EveryRowIsAPointAndIsCounted) {
  Validation v{.compared = Compared::kStepTime};
  for (const double error : {-0.9, -0.01, 0.0, 0.04, 0.05, 0.31}) {
    PredictedRow row;
    row.row = test::measurement();
    row.measured = 10;
    row.predicted = 10 * (1 + error);
    row.error = error;
    v.rows.push_back(row);
  }
  const std::vector<Plot> plots = validation_plots(v);
  ASSERT_EQ(plots.size(), 2U);
  EXPECT_EQ(plots[0].series.at(0).points.size(), 6U);
  EXPECT_DOUBLE_EQ(plots[0].series.at(1).points.at(0).x, plots[0].series.at(1).points.at(0).y);
  std::vector<std::string> counted;
  for (const PlotBar& bar : plots[1].bars) {
    if (bar.spans.at(0).to > 0) counted.push_back(bar.label);
  }
  EXPECT_EQ(counted, (std::vector<std::string>{"below -30 %: 1", "-5 % to 0 %: 1", "0 % to +5 %: 2", "+5 % to +10 %: 1",
                                               "above +30 %: 1"}));
  EXPECT_FALSE(has_data(validation_plots(Validation{}).at(1)));
}

}  // namespace
}  // namespace scalecalc
