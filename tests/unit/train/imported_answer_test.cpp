// A question about a config.json states in its answer how the file was read.
#include <gtest/gtest.h>

#include <algorithm>

#include "train/question.h"

namespace scalecalc {
namespace {

TrainQuestion question_of_file(const std::string& file) {
  TrainQuestion q{.model = SCALECALC_SOURCE_DIR "/tests/data/hf/" + file, .hardware = "h100-sxm", .chips = 64};
  q.batch_tokens = 1048576;
  q.top = 1;
  return q;
}

const Assumption* find(const TrainAnswer& answer, const std::string& text) {
  const auto found = std::find_if(answer.assumptions.begin(), answer.assumptions.end(),
                                  [&](const Assumption& a) { return a.text.find(text) != std::string::npos; });
  return found == answer.assumptions.end() ? nullptr : &*found;
}

TEST(ImportedModel, IsAnsweredWithHowItWasRead) {
  const TrainAnswer a = answer(question_of_file("gemma-3-4b.json"), Catalog());
  ASSERT_FALSE(a.plans.empty());
  EXPECT_EQ(a.model.layers(), 34);
  ASSERT_NE(find(a, "gemma-3-4b.json read as a model of family 'gemma3'"), nullptr);
  const Assumption* filled = find(a, "not in the file, filled in: ");
  ASSERT_NE(filled, nullptr);
  EXPECT_FALSE(filled->warning);
  EXPECT_NE(filled->text.find("num_attention_heads 8, num_key_value_heads 4, head_dim 256"), std::string::npos);
  EXPECT_EQ(filled->source, "defaults of the gemma3 class of transformers");
  ASSERT_NE(find(a, "vision_config is a tower of class siglip_vision_model, counted apart"), nullptr);
}

TEST(ImportedModel, IsWarnedOfWhenItsFamilyWasForced) {
  TrainQuestion q = question_of_file("llama-3.2-1b.json");
  q.assume = "olmo2";
  const TrainAnswer a = answer(q, Catalog());
  const Assumption* forced = find(a, "read as family 'olmo2' because --assume says so");
  ASSERT_NE(forced, nullptr);
  EXPECT_TRUE(forced->warning);
}

TEST(ImportedModel, TakesOverridesByTheDocumentsNames) {
  TrainQuestion q = question_of_file("qwen3-0.6b.json");
  q.set = {"model.attention.kv_heads=16"};
  EXPECT_EQ(answer(q, Catalog()).model.attention.kv_heads, 16);
}

}  // namespace
}  // namespace scalecalc
