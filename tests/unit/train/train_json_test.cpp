
#include "report/json_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/check.h"
#include "unit/train/sample_answer.h"
#include "unit/train/train_texts.h"

namespace scalecalc {
namespace {

using Json = nlohmann::ordered_json;
using Keys = std::vector<std::string>;

Keys keys(const Json& object) {
  Keys out;
  for (const auto& [key, value] : object.items()) out.push_back(key);
  return out;
}

TEST(TrainJson, HasTheKeysOfTheContractInOrder) {
  const Json json = Json::parse(train_json(sample_answer(), "1.2.3"));
  EXPECT_EQ(keys(json), (Keys{"schema", "tool", "query", "question", "assumptions", "plans", "best",
                              "cheaper_on_fewer_chips", "search", "completeness", "nearest_miss", "obstacles",
                              "would_fit", "batch_to_fill_tokens", "pictures"}));
  EXPECT_EQ(json["schema"], "scalecalc/train/1");
  EXPECT_EQ(json["tool"]["version"], "1.2.3");
  const Json& plan = json["plans"][0];
  EXPECT_EQ(keys(plan["layout"]),
            (Keys{"dp", "fsdp", "tp", "sp", "cp", "pp", "vpp", "split", "ep", "etp", "ep_overlap", "zero", "remat",
                  "cp_comm", "offload", "schedule", "micro_batch_seqs", "grad_accum", "loss"}));
  EXPECT_EQ(keys(plan["time_s"]),
            (Keys{"compute", "hbm", "tp_exposed", "fsdp_exposed", "dp_exposed", "cp_exposed", "ep_exposed",
                  "pp_exposed", "offload_exposed", "bubble", "optimizer", "overhead"}));
  EXPECT_EQ(keys(plan["memory_bytes"]), (Keys{"weights", "gradients", "optimizer", "activations", "logits", "buffers",
                                              "reserve", "total", "capacity"}));
  EXPECT_EQ(keys(plan["run"]),
            (Keys{"tokens", "steps", "time_s", "chip_hours", "cost_usd", "energy_j", "economics", "power"}));
  EXPECT_EQ(keys(json["search"]),
            (Keys{"candidates", "feasible", "evaluated", "pruned", "rejected", "stack_facts", "complete"}));
}

TEST(TrainJson, GivesBaseUnits) {
  const Json json = Json::parse(train_json(sample_answer(), "1"));
  const Json& plan = json["plans"][0];
  EXPECT_EQ(plan["rank"], 1);
  EXPECT_EQ(plan["chips"], 32);
  EXPECT_EQ(plan["idle_chips"], 4);
  EXPECT_EQ(plan["shape"], (Json{2, 4, 4}));
  EXPECT_EQ(plan["batch_tokens"], 524288);
  EXPECT_EQ(plan["layout"]["sp"], true);
  EXPECT_EQ(plan["memory_bytes"]["total"], 51e9);
  EXPECT_EQ(plan["time_s"]["compute"], 1.5);
  EXPECT_EQ(plan["time_s"]["bubble"], 0.0);
  EXPECT_EQ(json["plans"][1]["run"]["cost_usd"], nullptr);
  EXPECT_EQ(json["search"]["rejected"], (Json{{"heads", 7}}));
  EXPECT_EQ(json["search"]["complete"], true);
  EXPECT_EQ(json["assumptions"][1]["flag"], nullptr);
  EXPECT_EQ(json["nearest_miss"], nullptr);
}

TEST(TrainJson, DescribesTheNearestMiss) {
  const Json json = Json::parse(train_json(sample_miss(), "1"));
  EXPECT_EQ(json["plans"], Json::array());
  EXPECT_EQ(json["nearest_miss"]["over_by_bytes"], 25e9);
  EXPECT_EQ(json["nearest_miss"]["memory_bytes"]["total"], 125e9);
  EXPECT_EQ(json["would_fit"], Json::parse(R"([{"flag": "--chips", "value": "64"}])"));
}

TEST(TrainJson, ExplainsWhenAsked) {
  TrainAnswer answer = sample_answer();
  EXPECT_FALSE(Json::parse(train_json(answer, "1")).contains("explain"));
  answer.question.explain = true;
  answer.question.plan = 1;
  answer.explanation = {{"Memory", {{"weights", "a", "b", 2.0, kByteDim, "book"}}, {"r"}}};
  EXPECT_EQ(Json::parse(train_json(answer, "1"))["explain"].dump(),
            R"([{"title":"Memory","steps":[{"name":"weights","formula":"a","numbers":"b","value":2.0,"unit":"bytes",)"
            R"("source":"book"}],"remarks":["r"]}])");
}

TEST(TrainJson, RefusesNumbersJsonDoesNotHave) {
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    TrainAnswer answer = sample_answer();
    answer.plans[1].figures.run->energy_j = bad;
    EXPECT_THROW(train_json(answer, "1"), InternalError);
    EXPECT_THROW(train_jsonl(answer, "1"), InternalError);
  }
}

TEST(TrainJson, SurvivesTextThatIsNotUtf8) {
  TrainAnswer answer = sample_answer();
  answer.model.name = "model\xff";
  EXPECT_EQ(Json::parse(train_json(answer, "1"))["query"]["model"], "model\uFFFD");
}

TEST(TrainJsonl, HasALinePerPlan) {
  std::istringstream in(train_jsonl(sample_answer(), "1.2.3"));
  std::string line;
  for (int rank = 1; rank <= 2; ++rank) {
    ASSERT_TRUE(std::getline(in, line));
    const Json json = Json::parse(line);
    EXPECT_EQ(json.begin().key(), "schema");
    EXPECT_EQ(json["schema"], "scalecalc/train-plan/1");
    EXPECT_EQ(json["model"], "tiny");
    EXPECT_EQ(json["rank"], rank);
  }
  EXPECT_FALSE(std::getline(in, line));
}

TEST(ErrorJson, HasTheKeysOfTheContract) {
  const std::vector<Diagnostic> problems{{{.file = "a.yaml", .line = 3, .column = 7}, "bad", "good"},
                                         {{}, "worse", ""}};
  EXPECT_EQ(Json::parse(error_json(2, problems)).dump(),
            R"({"schema":"scalecalc/error/1","exit":2,"diagnostics":[)"
            R"({"file":"a.yaml","line":3,"column":7,"message":"bad","hint":"good"},)"
            R"({"file":null,"line":null,"column":null,"message":"worse","hint":null}]})");
}

Json schema(const std::string& name) {
  return Json::parse(std::ifstream(std::string(SCALECALC_SOURCE_DIR) + "/docs/schema/" + name + ".schema.json"));
}

Keys sorted(Keys names) {
  std::sort(names.begin(), names.end());
  return names;
}

// A validator checks the values (binary_test.py); this keeps document and schema from drifting where there is none.
TEST(Schemas, RequireExactlyWhatIsWritten) {
  const Json train = schema("train");
  const Json document = Json::parse(train_json(sample_miss(), "1"));
  EXPECT_EQ(train["required"].get<Keys>(), keys(document));
  const Json plan = Json::parse(train_json(sample_answer(), "1"))["plans"][0];
  EXPECT_EQ(train["definitions"]["plan"]["required"].get<Keys>(), keys(plan));
  EXPECT_EQ(train["definitions"]["nearest_miss"]["required"].get<Keys>(), keys(document["nearest_miss"]));
  EXPECT_EQ(schema("error")["required"].get<Keys>(), keys(Json::parse(error_json(2, {}))));
  Keys reasons;
  for (std::size_t i = 0; i < kRejectCount; ++i) {
    TrainAnswer answer = sample_answer();
    answer.search.rejected = {};
    answer.search.rejected[i] = 1;
    reasons.push_back(keys(Json::parse(train_json(answer, "1"))["search"]["rejected"]).front());
  }
  EXPECT_EQ(sorted(keys(train["properties"]["search"]["properties"]["rejected"]["properties"])), sorted(reasons));
}

}  // namespace
}  // namespace scalecalc
