#include "bounds/bounds_output.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/render.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

using nlohmann::ordered_json;

BoundsQuestion question() {
  BoundsQuestion q;
  q.model = test::dense_model();
  q.hw = test::torus_chip();
  q.scope = BoundScope::kTraining;
  q.chips = 64;
  q.training.batch_tokens = 65536;
  return q;
}

ordered_json document(const BoundsQuestion& q) {
  return ordered_json::parse(output_json(bounds_output(q, bounds(q)), "1.0", false));
}

const ordered_json& named(const ordered_json& list, const std::string& name) {
  for (const ordered_json& item : list) {
    if (item["name"] == name) return item;
  }
  throw std::runtime_error("no " + name);
}

TEST(BoundsOutput, EveryRuleHasTheKeysOfTheContract) {
  const ordered_json json = document(question());
  EXPECT_EQ(json["schema"], "scalecalc/bounds/1");
  const std::vector<std::string> keys{"name", "symbol", "value", "unit", "holds", "condition", "source"};
  for (const ordered_json& rule : json["bounds"]) {
    std::vector<std::string> found;
    for (const auto& [key, value] : rule.items()) found.push_back(key);
    EXPECT_EQ(found, keys);
    EXPECT_TRUE(rule["value"].is_number()) << rule["name"];
    EXPECT_TRUE(rule["holds"].is_null() || rule["holds"].is_boolean()) << rule["name"];
  }
  EXPECT_EQ(named(json["bounds"], "tokens_per_chip")["holds"], nullptr);
  EXPECT_EQ(named(json["bounds"], "fsdp_limit")["holds"], true);
  EXPECT_EQ(named(json["bounds"], "step_time")["unit"], "s");
}

TEST(BoundsOutput, LayersAndLeftOutRulesAreListsOfTheirOwn) {
  BoundsQuestion q = question();
  q.fix.tp = 4;
  EXPECT_EQ(document(q)["left_out"], ordered_json::array());
  q.model->training.seq.reset();
  const ordered_json json = document(q);
  EXPECT_EQ(named(json["layers"], "dp_forward")["math_over_comms"], nullptr);
  EXPECT_EQ(named(json["layers"], "dp_forward")["bytes"], 0);
  EXPECT_EQ(named(json["layers"], "fsdp_tp_forward")["compute_bound"], true);
  EXPECT_FALSE(named(json["layers"], "fsdp_tp_backward_as_printed")["note"].is_null());
  EXPECT_EQ(json["left_out"][0]["rules"], "sequences of a batch");
  EXPECT_EQ(json["left_out"][0]["needs"], "--batch-tokens and --seq");
  EXPECT_EQ(json["query"]["fix"]["tp"], 4);
  EXPECT_EQ(json["query"]["fix"]["pp"], nullptr);
}

TEST(BoundsOutput, PeopleReadUnitsAndGroups) {
  const BoundsQuestion q = question();
  const std::string text = render_table(output_report(bounds_output(q, bounds(q)), false), {});
  EXPECT_NE(text.find("\nData parallelism\n"), std::string::npos) << text;
  EXPECT_NE(text.find("333 tokens per chip"), std::string::npos) << text;
  EXPECT_NE(text.find("FSDP alone is compute-bound: 1024 tokens on each chip, and it needs 333."), std::string::npos)
      << text;
  EXPECT_NE(text.find("10 bytes per parameter"), std::string::npos) << text;
}

TEST(BoundsOutput, ASizeAloneHasATitle) {
  BoundsQuestion q = question();
  q.model.reset();
  q.parameters = 70e9;
  EXPECT_EQ(document(q)["query"]["model"], nullptr);
  EXPECT_EQ(bounds_output(q, bounds(q)).title.find("Rules of thumb for a dense model of 70B parameters, on 64 x "), 0U);
}

}  // namespace
}  // namespace scalecalc
