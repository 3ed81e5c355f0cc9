#include <gtest/gtest.h>

#include <algorithm>

#include "base/io.h"
#include "config/yaml_reader.h"
#include "validate/measurement.h"

namespace scalecalc {
namespace {

std::vector<ServeMeasurement> rows_of(const std::string& text) {
  return read_serve_measurements(read_yaml(text, "rows.yaml"));
}

std::string row(const std::string& rest) {
  return "- {id: a, source: nobody, engine: vllm 0.12, model: tiny, chip: h100-sxm, chips: 2, parallel: {tp: 2, ep: "
         "null},\n"
         "   weights_dtype: bf16, kv_dtype: bf16, input_len: 1000, output_len: 100,\n   " +
         rest + "}\n";
}

ServeMeasurement one(const std::string& rest) { return rows_of(row(rest)).front(); }

std::string problem_of(const std::string& text) {
  try {
    rows_of(text);
  } catch (const UserError& error) {
    return error.diagnostics().front().message + " | " + error.diagnostics().front().hint;
  }
  return "";
}

TEST(ReadServeMeasurements, ReadsWhatARowSays) {
  const ServeMeasurement m =
      one("phase: online, batch: 16, measured: {tpot_ms: 8.5, ttft_ms: 120, tokens_per_s_total: 99}");
  EXPECT_EQ(m.engine, "vllm 0.12");
  EXPECT_EQ(m.degrees.tp, 2);
  EXPECT_FALSE(m.degrees.ep) << "null says nothing";
  EXPECT_EQ(m.phase, ServePhase::kOnline);
  EXPECT_EQ(m.figure, ServeFigure::kStepTime) << "the time of a token comes before the rate";
  EXPECT_DOUBLE_EQ(m.measured, 8.5e-3);
  EXPECT_DOUBLE_EQ(*m.first_token, 0.12);
  EXPECT_EQ(m.batch_class(), "1-32");
  EXPECT_EQ(m.group, "nobody");
  EXPECT_TRUE(m.complete);
}

TEST(ReadServeMeasurements, ThePhaseSaysWhichFigureIsCompared) {
  const ServeMeasurement prefill = one("phase: prefill, tokens_per_chip: 16384, measured: {tokens_per_s_total: 5000}");
  EXPECT_EQ(prefill.figure, ServeFigure::kInputRate);
  EXPECT_EQ(prefill.tokens_per_chip, 16384);
  EXPECT_EQ(one("phase: prefill, batch: 1, measured: {prefill_ms: 7}").figure, ServeFigure::kPrefillTime);
  EXPECT_EQ(one("phase: decode, batch: 300, measured: {decode_step_ms: 7}").figure, ServeFigure::kStepTime);
  EXPECT_EQ(one("phase: throughput, batch: 1, measured: {e2e_ms: 7}").figure, ServeFigure::kBatchTime);
  EXPECT_EQ(one("phase: throughput, batch: saturated, measured: {tokens_per_s_total: 7}").figure,
            ServeFigure::kOutputRate);
}

TEST(ReadServeMeasurements, UnderstandsBatchesInWords) {
  EXPECT_TRUE(one("phase: throughput, batch: saturated, measured: {tokens_per_s_total: 7}").saturated);
  const ServeMeasurement tokens = one("phase: prefill, batch: 16384 tokens per GPU, measured: {tokens_per_s_total: 7}");
  EXPECT_EQ(tokens.tokens_per_chip, 16384);
  EXPECT_FALSE(one("phase: prefill, batch: not stated, measured: {tokens_per_s_total: 7}").batch);
  EXPECT_EQ(one("phase: decode, batch: 10.5, measured: {decode_step_ms: 7}").batch, 10.5);
  EXPECT_NE(
      problem_of(row("phase: decode, batch: many, measured: {decode_step_ms: 7}")).find("batch 'many' is no number"),
      std::string::npos);
}

TEST(ReadServeMeasurements, ARowThatLeavesThingsOutNeedsNoFigure) {
  const ServeMeasurement m = one("phase: decode, complete: false, doubt: no lengths, measured: {mfu: 0.4}");
  EXPECT_FALSE(m.complete);
  EXPECT_EQ(m.doubt, "no lengths");
}

TEST(ReadServeMeasurements, ReadsShapesInHuggingFaceKeys) {
  const std::string shape =
      "phase: decode, batch: 1, measured: {decode_step_ms: 7}, model_shape: {num_hidden_layers: 4, hidden_size: 64, "
      "intermediate_size: 32, num_attention_heads: 4, num_key_value_heads: 2, head_dim: 16, vocab_size: 100, ";
  const ModelShape moe = *one(shape +
                              "num_local_experts: 8, num_experts_per_tok: 2, interleave_moe_layer_step: 2, "
                              "intermediate_size_mlp: 128, shared_experts: 1}")
                              .shape;
  EXPECT_EQ(moe.experts, 8);
  EXPECT_EQ(moe.expert_ffn, 32);
  EXPECT_EQ(moe.ffn, 128);
  EXPECT_EQ(moe.moe_every, 2);
  EXPECT_EQ(moe.shared_expert_ffn, 32);
  const ModelShape window =
      *one(shape + "sliding_window: 128, sliding_attention_layers: 2, full_attention_layers: 2}").shape;
  EXPECT_EQ(window.window_every, 2);
  EXPECT_TRUE(window.unread.empty());
  const ModelShape plain = *one(shape + "mlp: gelu (2 matrices)}").shape;
  EXPECT_FALSE(plain.gated_mlp);
  EXPECT_EQ(one(shape + "linear_attention_layers: 3}").shape->unread,
            std::vector<std::string>{"linear_attention_layers"});
}

TEST(ReadServeMeasurements, NamesWhatIsWrong) {
  EXPECT_NE(problem_of(row("phase: decod, batch: 1, measured: {decode_step_ms: 7}")).find("did you mean 'decode'?"),
            std::string::npos);
  EXPECT_NE(problem_of(row("phase: decode, batch: 1, measured: {e2e_ms: 7}")).find("nothing measured"),
            std::string::npos);
  EXPECT_NE(problem_of(row("phase: decode, measured: {decode_step_ms: 7}, speed: 3")).find("unknown key 'speed'"),
            std::string::npos);
  const std::string twice = row("phase: decode, measured: {decode_step_ms: 7}");
  EXPECT_NE(problem_of(twice + twice).find("is used twice"), std::string::npos);
}

TEST(ReadServeMeasurements, KnowsServingFilesByTheirPhase) {
  EXPECT_TRUE(is_serving(read_yaml(row("phase: decode"), "rows.yaml")));
  EXPECT_FALSE(is_serving(read_yaml("- {id: a, precision: bf16}\n", "rows.yaml")));
  EXPECT_FALSE(is_serving(read_yaml("rows: []\n", "rows.yaml")));
}

}  // namespace
}  // namespace scalecalc
