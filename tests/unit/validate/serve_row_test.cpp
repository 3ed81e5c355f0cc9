#include "validate/serving_validation.h"

#include <gtest/gtest.h>

#include "unit/validate/served.h"

namespace scalecalc {
namespace {

const Catalog kShipped;

ServedRow ready(const std::string& text) {
  std::vector<ServeMeasurement> rows = test::served(text);
  name_stacks(rows, kShipped);
  return served_row(rows.front(), kShipped, {}, false);
}

double figure(const std::string& text) {
  const ServedRow row = ready(text);
  return served_figures(row, row.system.efficiency).figure;
}

std::string refusal(const std::string& text) {
  try {
    ready(text);
  } catch (const NotPredicted& why) {
    return why.reason();
  }
  return "";
}

TEST(ServeRow, NamesEnginesByTheStartOfWhatSourcesCallThem) {
  std::vector<ServeMeasurement> rows(6);
  rows[0].engine = "TensorRT-LLM 1.0 (PyTorch backend)";
  rows[1].engine = "TensorRT-LLM 0.6.1";
  rows[2].engine = "SGLang + DeepEP";
  rows[3].engine = "gpt-fast (PyTorch nightly)";
  rows[4].engine = "vLLM TPU 0.12.0";
  rows[5].engine = "our own";
  name_stacks(rows, kShipped);
  EXPECT_EQ(rows[0].stack, "trtllm");
  EXPECT_EQ(rows[1].stack, "trtllm-static") << "the longest start counts";
  EXPECT_EQ(rows[2].stack, "sglang");
  EXPECT_EQ(rows[3].stack, "gpt-fast");
  EXPECT_EQ(rows[4].stack, "vllm");
  EXPECT_EQ(rows[5].stack, "");
}

TEST(ServeRow, DegreesMultiplyToTheChips) {
  const std::string step = "phase: decode, batch: 8, measured: {decode_step_ms: 8}";
  const ServeLayout replicas = ready(test::served_text(step, "a", "8", "{tp: 2}")).layout;
  EXPECT_EQ(replicas.tp, 2);
  EXPECT_EQ(replicas.dp, 4) << "what a row does not say of replicas follows";
  const ServeLayout cores = ready(test::served_text(step, "a", "4", "{tp: 8}")).layout;
  EXPECT_EQ(cores.tp, 4) << "degrees that multiply to twice the chips count cores";
  const ServeLayout flat = ready(test::served_text(step, "a", "8", "{tp: 8, tp_x: 2}")).layout;
  EXPECT_EQ(flat.scheme, ServeScheme::kStationary2d);
  EXPECT_EQ(refusal(test::served_text(step, "a", "8", "{tp: 3}")), "the degrees do not multiply to the chips");
}

TEST(ServeRow, FormatsInSourcesWords) {
  const std::string step = "phase: decode, batch: 1, measured: {decode_step_ms: 8}";
  const auto formats = [&](const std::string& weights) {
    return ready(test::served_text(step, "a", "1", "{tp: 1}", weights)).system.formats;
  };
  EXPECT_EQ(formats("fp8_block").compute, DType::kFp8);
  EXPECT_EQ(formats("fp8").weights.bits(WeightPart::kMlp), 8);
  EXPECT_EQ(formats("fp8").weights.bits(WeightPart::kHead), 16);
  EXPECT_EQ(formats("int8 (weight-only)").compute, DType::kBf16) << "widened as they are read";
  EXPECT_DOUBLE_EQ(formats("int4-g32 (weight-only)").weights.bits(WeightPart::kMlp), 4.5);
  EXPECT_EQ(formats("mxfp4").weights.bits(WeightPart::kAttention), 16) << "experts alone";
  EXPECT_DOUBLE_EQ(formats("mxfp4").weights.bits(WeightPart::kExperts), 4.25);
  EXPECT_EQ(formats("nvfp4").compute, DType::kBf16) << "H100 has no rate in 4 bits";
  EXPECT_EQ(refusal(test::served_text(step, "a", "1", "{tp: 1}", "ternary")), "the format is not modelled");
}

TEST(ServeRow, RatesAndTimesOfOneRunAgree) {
  const double batch = figure(test::served_text("phase: throughput, batch: 16, measured: {e2e_ms: 5000}"));
  const double rate = figure(test::served_text("phase: throughput, batch: 16, measured: {tokens_per_s_total: 1600}"));
  EXPECT_NEAR(rate, 16 * 512 / batch, 1e-9 * rate);
  const double step = figure(test::served_text("phase: decode, batch: 16, measured: {decode_step_ms: 9}"));
  EXPECT_LT(512 * step, batch) << "the batch has its prompts and longer contexts besides";
  const double online = figure(test::served_text("phase: online, batch: 16, measured: {tpot_ms: 9}"));
  EXPECT_GT(online, step) << "prompts of others come between";
}

TEST(ServeRow, ASaturatedEngineTakesWhatItsMemoryHolds) {
  const ServedRow one =
      ready(test::served_text("phase: throughput, batch: saturated, measured: {tokens_per_s_total: 9}"));
  const ServedFigures figures = served_figures(one, one.system.efficiency);
  EXPECT_GT(figures.batch, 100);
  EXPECT_LT(figures.batch, 1024) << "80 GB less 16 of weights hold a few hundred contexts of 1,536 tokens";
  EXPECT_GT(figures.floor, figures.figure) << "a floor of time is a ceiling of the rate";
}

TEST(ServeRow, WhatARowLeavesOutIsNotPredicted) {
  EXPECT_EQ(refusal(test::served_text("phase: decode, measured: {decode_step_ms: 9}")), "no batch is given");
  EXPECT_EQ(refusal(test::served_text("phase: decode, complete: false, measured: {decode_step_ms: 9}")),
            "the source leaves out what a prediction needs");
}

TEST(ServeRow, ErrorsCompareTimes) {
  ServeMeasurement row;
  row.measured = 100;
  row.figure = ServeFigure::kOutputRate;
  EXPECT_DOUBLE_EQ(served_error(row, 50), 1) << "half the rate is twice the time";
  row.figure = ServeFigure::kStepTime;
  EXPECT_DOUBLE_EQ(served_error(row, 50), -0.5);
}

}  // namespace
}  // namespace scalecalc
