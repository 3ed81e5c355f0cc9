#include "import/safetensors_index.h"

#include <gtest/gtest.h>

namespace scalecalc {
namespace {

SafetensorsIndex index_of(const std::string& text) { return read_safetensors_index(text, "i.json", 2); }

TEST(SafetensorsIndex, CountsTensorsByWhatTheyBelongTo) {
  const SafetensorsIndex index = index_of(R"({"metadata": {"format": "pt", "total_size": 8307783680}, "weight_map": {
    "model.embed_tokens.weight": "a", "model.layers.0.self_attn.q_proj.weight": "a", "model.layers.1.mlp.up.scales": "b",
    "model.layers.2.embed_tokens.weight": "b", "model.layers.2.shared_head.head.weight": "b", "mtp.fc.weight": "b",
    "model.visual.blocks.7.attn.qkv.weight": "c", "vision_tower.layers.9.weight": "c", "lm_head.weight": "c"}})");
  EXPECT_EQ(index.problem, "");
  EXPECT_EQ(index.total_bytes, 8307783680);
  EXPECT_EQ(index.tensors, 9U);
  EXPECT_EQ(index.towers, 2U);
  EXPECT_EQ(index.modules, 3U);
  EXPECT_EQ(index.module_embeddings, 1U);
  EXPECT_EQ(index.module_heads, 1U);
  EXPECT_TRUE(index.head);
}

TEST(SafetensorsIndex, TakesASizeAsTextOrNone) {
  EXPECT_EQ(index_of(R"({"weight_map": {"a": "b"}, "metadata": {"total_size": "12"}})").total_bytes, 12);
  EXPECT_EQ(index_of(R"({"metadata": {"total_size": 1.5e3}, "weight_map": {"a": "b"}})").total_bytes, 1500);
  for (const char* size : {"-1", "0", "x", "null", "{}", "[1]"}) {
    const auto text = std::string(R"({"weight_map": {"a": "b"}, "metadata": {"total_size": )") + size + "}}";
    EXPECT_FALSE(index_of(text).total_bytes.has_value()) << size;
    EXPECT_EQ(index_of(text).problem, "") << size;
  }
}

TEST(SafetensorsIndex, SaysWhereItIsWrong) {
  EXPECT_EQ(index_of("").problem, "line 1: expected a map");
  EXPECT_EQ(index_of("[]").problem, "line 1: expected a map");
  EXPECT_EQ(index_of("{\n\"a\": 1,\n}").problem, "line 3: expected a text in double quotes");
  EXPECT_EQ(index_of("{\"a\" 1}").problem, "line 1: expected ':'");
  EXPECT_EQ(index_of("{\"a\": 1 \"b\": 2}").problem, "line 1: expected ',' or '}'");
  EXPECT_EQ(index_of("{\"a\": }").problem, "line 1: expected a value");
  EXPECT_EQ(index_of("{\"a\": \"b").problem, "line 1: expected the end of a text");
  EXPECT_EQ(index_of("{\"a\": \"b\\").problem, "line 1: expected the end of a text");
  EXPECT_EQ(index_of("{\"a\": 1} x").problem, "line 1: expected the end of the file");
  EXPECT_EQ(index_of("{}").problem, "its 'weight_map' names no tensor");
  EXPECT_EQ(index_of("{\"a\": " + std::string(100, '[')).problem, "line 1: expected less nesting");
  EXPECT_EQ(index_of("{\"weight_map\": 3}").problem, "its 'weight_map' names no tensor");
}

TEST(SafetensorsIndex, OfASingleFileIsItsHeader) {
  const SafetensorsIndex index = read_safetensors_header(
      R"({"__metadata__": {"format": "pt"}, "lm_head.weight": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}})",
      "model.safetensors", 12, 2U);
  EXPECT_EQ(index.problem, "");
  EXPECT_EQ(index.tensors, 1U);
  EXPECT_EQ(index.total_bytes, 12);
  EXPECT_TRUE(index.head);
}

}  // namespace
}  // namespace scalecalc
