#include "bounds/bounds_serving_output.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "bounds/bounds_output.h"
#include "report/render.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

BoundsQuestion serving_question() {
  BoundsQuestion q;
  q.parameters = 8e9;
  q.hw = test::torus_chip();
  q.hw.prices.clear();
  q.scope = BoundScope::kServing;
  q.chips = 8;
  q.serving.batches = {8, 16};
  q.serving.context = 1000;
  q.serving.kv_bytes_per_token = 1e5;
  return q;
}

nlohmann::json serving_document(const BoundsQuestion& q) {
  return nlohmann::json::parse(output_json(bounds_output(q, bounds(q)), "1.0", false));
}

TEST(BoundsServingOutput, ThePointsAreACurve) {
  const nlohmann::json doc = serving_document(serving_question());
  ASSERT_EQ(doc["points"].size(), 2U);
  EXPECT_EQ(doc["points"][0]["batch"], 8);
  EXPECT_DOUBLE_EQ(doc["points"][0]["kv_time_s"], 1e-4);
  EXPECT_DOUBLE_EQ(doc["points"][0]["weight_load_time_s"], 2e-3);
  EXPECT_DOUBLE_EQ(doc["points"][1]["decode_step_s"], 2.2e-3);
  EXPECT_EQ(doc["points"][1]["bound_by"], "weights");
  EXPECT_EQ(doc["points"][1]["fits"], true);
  EXPECT_FALSE(doc.contains("requests"));  // neither a price nor a length of answers
}

TEST(BoundsServingOutput, RequestsComeWithALengthOfAnswers) {
  BoundsQuestion q = serving_question();
  q.serving.generate = 100;
  const nlohmann::json doc = serving_document(q);
  EXPECT_DOUBLE_EQ(doc["requests"][0]["finished_sequences_per_step"], 0.08);
  EXPECT_TRUE(doc["requests"][0]["evicted_tokens_per_step"].is_null());  // no --prompt
  EXPECT_TRUE(doc["requests"][0]["usd_per_million_output_tokens"].is_null());
}

TEST(BoundsServingOutput, PeopleReadTheStepAndWhatBindsIt) {
  const BoundsQuestion q = serving_question();
  const std::string text = render_table(output_report(bounds_output(q, bounds(q)), false), {});
  EXPECT_NE(text.find("Decode step"), std::string::npos) << text;
  EXPECT_NE(text.find("weights"), std::string::npos);
  EXPECT_EQ(text.find("Requests"), std::string::npos);
}

TEST(BoundsServingOutput, TheQueryHoldsWhatWasAsked) {
  BoundsQuestion q = serving_question();
  q.serving.kv = DType::kInt8;
  q.serving.speculation = BoundSpeculation{.drafted = 4, .accept = 0.7, .cost = 0.1};
  const nlohmann::json serving = serving_document(q)["query"]["serving"];
  EXPECT_EQ(serving["flops"], "bf16");
  EXPECT_EQ(serving["kv"], "int8");
  EXPECT_EQ(serving["speculative"]["k"], 4);
  q.scope = BoundScope::kTraining;
  EXPECT_FALSE(serving_document(q)["query"].contains("serving"));
}

TEST(BoundsServingOutput, ACurveIsWhatCsvWrites) {
  BoundsQuestion q = serving_question();
  const auto head = [&] {
    const std::string csv = render_csv(csv_records(bounds_output(q, bounds(q))));
    return csv.substr(0, csv.find(','));
  };
  EXPECT_EQ(head(), "batch");
  q.serving.batches = {8};
  EXPECT_EQ(head(), "name");
}

TEST(BoundsServingOutput, WithoutABatchThereIsNoCurve) {
  BoundsQuestion q = serving_question();
  q.serving.batches.clear();
  EXPECT_FALSE(serving_document(q).contains("points"));
}

}  // namespace
}  // namespace scalecalc
