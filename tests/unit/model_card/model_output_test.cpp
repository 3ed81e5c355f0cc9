#include "model_card/model_output.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/render.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

using nlohmann::ordered_json;

Output output_of(const ModelSpec& model, const ModelQuestion& q) {
  return model_output(model, q, model_figures(model, q));
}

ordered_json json_of(const ModelSpec& model, const ModelQuestion& q) {
  return ordered_json::parse(output_json(output_of(model, q), "1.0", true));
}

TEST(ModelOutput, HoldsTheKeysOfTheContract) {
  const ModelSpec model = test::moe_model(8);
  const ModelQuestion q{.seq = 2048, .batch_seqs = 4, .contexts = {1024, 4096}};
  const ModelFigures f = model_figures(model, q);
  const ordered_json json = json_of(model, q);
  EXPECT_EQ(json.begin().key(), "schema");
  EXPECT_EQ(json["schema"], "scalecalc/model/1");
  EXPECT_EQ(json["query"]["model"], "test-moe");
  EXPECT_EQ(json["query"]["seq"], 2048);
  const auto& parameters = json["parameters"];
  EXPECT_EQ(parameters["total"], f.total.value());
  EXPECT_EQ(parameters["active"], f.active.value());
  for (std::size_t p = 0; p < kPartCount; ++p) {
    EXPECT_EQ(parameters[std::string(kPartKeys[p])], f.sums.parameters[p].value()) << kPartKeys[p];
  }
  EXPECT_EQ(parameters["vocabulary"], 2 * 32000 * 1024);
  EXPECT_TRUE(parameters["official"].is_null()) << "nobody published this one";
  EXPECT_EQ(json["flops_per_token"]["forward"], f.forward.value().value());
  EXPECT_EQ(json["flops_per_token"]["training"], f.training.value().value());
  EXPECT_EQ(json["batch_flops"]["training"]["total"], f.training.value().value() * 4 * 2048);
  EXPECT_EQ(json["kv_bytes_per_token"], f.kv_bytes_per_token);
  EXPECT_EQ(json["kv_bytes_per_sequence"], f.kv_bytes_per_sequence);
  EXPECT_TRUE(json["kv_state_bytes"].is_null());
  EXPECT_EQ(json["moe"]["sparsity"], 4);
  EXPECT_EQ(json["layers"].size(), 2U);
  EXPECT_EQ(json["contexts"][1]["seq"], 4096);
  EXPECT_EQ(json["checkpoints"].size(), 5U + 3U) << "train's remat policies and the book's";
  EXPECT_EQ(json["attention_break_even_tokens"]["rule"], 8192);
  EXPECT_FALSE(json["explain"].empty());
}

// Two full layers and two with a window: a long sequence adds half of what a short one does.
TEST(ModelOutput, TheHeadlineNamesWhatALongSequenceTakesFirst) {
  ModelSpec model = test::dense_model();
  model.attention.window = 256;
  model.kinds = {{MixerKind::kFull, FfnKind::kDense}, {MixerKind::kSliding, FfnKind::kDense}};
  model.layer_kind = {0, 0, 1, 1};
  const double each = 2.0 * static_cast<double>(model.attention.kv_heads * model.attention.head_dim) * 2.0;
  const ordered_json json = json_of(model, {.seq = 2048});
  EXPECT_EQ(json["kv_unlimited_bytes_per_token"], 2 * each);
  EXPECT_EQ(json["kv_bytes_per_token"], 4 * each);
  const std::string text = output_of(model, {.seq = 2048}).headline.front().text;
  const std::size_t grows = text.find(bytes_text(2 * each) + " of KV cache a token of a long sequence");
  ASSERT_NE(grows, std::string::npos) << text;
  EXPECT_GT(text.find(bytes_text(4 * each) + " until the windows are full"), grows) << text;
}

TEST(ModelOutput, AFigureThatDoesNotExistIsNull) {
  ModelSpec model = test::dense_model();
  model.attention.window = 256;
  model.kinds[0].mixer = MixerKind::kSliding;
  const ordered_json json = json_of(model, {.seq = 2048});
  EXPECT_TRUE(json["attention_break_even_tokens"]["exact"].is_null());
  EXPECT_FALSE(json.contains("moe"));
  EXPECT_FALSE(json.contains("against"));
}

TEST(ModelOutput, ComparesSizesWithWhatIsAsked) {
  const ModelSpec model = test::moe_model();
  const ModelFigures f = model_figures(model, {.seq = 1});
  const ordered_json json = json_of(model, {.seq = 1, .against = 1e9});
  EXPECT_EQ(json["against"]["parameters"], 1e9);
  EXPECT_EQ(json["against"]["growth"], f.book_total.value() / 1e9);
  EXPECT_EQ(json["against"]["active_growth"], f.book_active.value() / 1e9);
}

TEST(ModelOutput, PeopleReadPartsThatExist) {
  const std::string table =
      render_table(output_report(output_of(test::dense_model(), {.seq = 2048, .contexts = {1024}}), false), {});
  EXPECT_NE(table.find("attention scores"), std::string::npos) << table;
  EXPECT_EQ(table.find("routed experts"), std::string::npos) << table;
  EXPECT_EQ(table.find("recurrences"), std::string::npos) << table;
}

TEST(ModelListOutput, OneRecordAModelAndWhatWasLookedFor) {
  const Output output = model_list_output({test::dense_model(), test::moe_model()}, {"test"});
  EXPECT_EQ(output.title, "2 models");
  const auto json = ordered_json::parse(output_json(output, "1.0", false));
  EXPECT_EQ(json["schema"], "scalecalc/model-list/1");
  EXPECT_EQ(json["query"]["filters"], ordered_json::array({"test"}));
  ASSERT_EQ(json["models"].size(), 2U);
  const auto& record = json["models"][1];
  EXPECT_EQ(record["name"], "test-moe");
  EXPECT_TRUE(record["vendor"].is_null());
  EXPECT_EQ(record["layers"], 8);
  EXPECT_LT(record["active"].get<double>(), record["parameters"].get<double>());
  EXPECT_EQ(record["kv_bytes_per_token"], 8 * 2 * 2 * 4 * 64);
  EXPECT_EQ(model_list_output({test::dense_model()}, {}).title, "1 model");
}

}  // namespace
}  // namespace scalecalc
