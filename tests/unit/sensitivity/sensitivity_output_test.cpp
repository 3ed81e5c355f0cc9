#include "sensitivity/sensitivity_output.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace scalecalc {
namespace {

using Json = nlohmann::ordered_json;

SensitivityQuestion small_question() {
  SensitivityQuestion q;
  q.train.model = "gpt2-1.5b";
  q.train.hardware = "h100-sxm";
  q.train.chips = 8;
  q.train.batch_seqs = 64;
  return q;
}

Json json_of(const SensitivityAnswer& answer, bool explain = false) {
  return Json::parse(output_json(sensitivity_output(answer), "1.2.3", explain));
}

TEST(SensitivityOutput, SaysWhatTheAnswerSays) {
  const SensitivityAnswer a = sensitivity(small_question(), Catalog(), false);
  const Json json = json_of(a);
  EXPECT_EQ(json["schema"], "scalecalc/sensitivity/1");
  ASSERT_EQ(json["elasticities"].size(), a.elasticities.size());
  for (std::size_t i = 0; i < a.elasticities.size(); ++i) {
    const Json& row = json["elasticities"][i];
    EXPECT_EQ(row["input"], a.elasticities[i].input.name);
    EXPECT_NEAR(row["elasticity"].get<double>(), a.elasticities[i].step_time, 1e-12);
    EXPECT_NEAR(row["elasticity_tokens_per_s"].get<double>(), a.elasticities[i].tokens_per_s, 1e-12);
    EXPECT_NEAR(row["high_change"].get<double>(), a.elasticities[i].high.change, 1e-12);
  }
  EXPECT_EQ(json["reoptimised"].size(), a.reoptimised.rates.size());
  EXPECT_NEAR(json["sum_rule"]["sum"].get<double>(), -1, 1e-9);
  EXPECT_FALSE(json.contains("sweep"));
  EXPECT_FALSE(json.contains("explain"));
}

TEST(SensitivityOutput, DollarsOnlyWithAPrice) {
  SensitivityAnswer a = sensitivity(small_question(), Catalog(), false);
  a.resolved.usd_per_chip_hour.reset();
  const Json without = json_of(a);
  EXPECT_TRUE(without["elasticities"][0]["elasticity_usd"].is_null());
  EXPECT_TRUE(without["plan"]["usd_per_million_tokens"].is_null());
  a.resolved.usd_per_chip_hour = 3.6;
  const Json with = json_of(a);
  const double tokens = with["plan"]["tokens_per_s"].get<double>();
  EXPECT_NEAR(with["plan"]["usd_per_million_tokens"].get<double>(), 3.6 / 3600 * 8 * 1e6 / tokens, 1e-12);
  EXPECT_EQ(with["elasticities"][0]["elasticity_usd"].get<double>(),
            -with["elasticities"][0]["elasticity_tokens_per_s"].get<double>());
}

TEST(SensitivityOutput, EveryDerivedFigureIsExplained) {
  const SensitivityAnswer a = sensitivity(small_question(), Catalog(), true);
  std::vector<std::string> names;
  for (const ExplainSection& section : output_explanation(sensitivity_output(a))) {
    for (const ExplainedStep& step : section.steps) names.push_back(step.name);
  }
  const auto explained = [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const InputElasticity& e : a.elasticities) EXPECT_TRUE(explained("elasticity by " + e.input.name));
  EXPECT_TRUE(explained("step time"));
  EXPECT_TRUE(explained("sum rule"));
  EXPECT_TRUE(explained("tokens/s with 10% more hw.hbm.bandwidth, plan free"));
  EXPECT_TRUE(explained("FLOP/s per byte/s of hw.hbm.bandwidth"));
}

TEST(SensitivityOutput, AnInterruptedAnswerWarns) {
  SensitivityAnswer a = sensitivity(small_question(), Catalog(), false);
  a.complete = false;
  const Output output = sensitivity_output(a);
  EXPECT_TRUE(std::any_of(output.assumptions.begin(), output.assumptions.end(), [](const Assumption& assumption) {
    return assumption.warning && assumption.text.starts_with("interrupted");
  }));
}

TEST(SensitivityOutput, NothingFitsSaysWhy) {
  SensitivityQuestion q = small_question();
  q.train.model = "llama3-70b";
  q.train.chips = 1;
  const SensitivityAnswer a = sensitivity(q, Catalog(), false);
  const Output output = sensitivity_output(a);
  EXPECT_TRUE(output.nothing_fits);
  EXPECT_FALSE(json_of(a)["nothing_fits"].empty());
}

}  // namespace
}  // namespace scalecalc
