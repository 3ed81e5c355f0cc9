#include "spec/load_quantization.h"

#include <gtest/gtest.h>

#include "config/yaml_reader.h"

namespace scalecalc {
namespace {

QuantizationSpec load_format(const std::string& yaml) {
  Problems problems;
  QuantizationSpec out = load_quantization(read_yaml(yaml, "m.yaml"), problems);
  problems.throw_if_any();
  return out;
}

std::string format_problem(const std::string& yaml) {
  try {
    load_format(yaml);
    return "";
  } catch (const UserError& error) {
    const Diagnostic& d = error.diagnostics().front();
    return std::to_string(d.where.line) + ": " + d.message;
  }
}

TEST(LoadQuantization, GivesTheBitsOfEachPart) {
  const QuantizationSpec q = load_format(
      "weights: int4\nbits_per_weight: 4.125\nkv: fp8\nparts: {embedding: bf16, head: bf16, experts: nvfp4}\nsource: "
      "x\n");
  EXPECT_EQ(q.bits(WeightPart::kAttention), 4.125);
  EXPECT_EQ(q.bits(WeightPart::kEmbedding), 16);
  EXPECT_EQ(q.bits(WeightPart::kExperts), 4.5);
  EXPECT_EQ(q.kv, WeightFormat::kFp8);
  EXPECT_EQ(q.source, "x");
  EXPECT_EQ(load_format("weights: mxfp4\n").bits_per_weight, 4.25);
  EXPECT_FALSE(load_format("weights: fp8\n").kv.has_value());
}

TEST(LoadQuantization, APartMayHaveSeveralFormats) {
  const QuantizationSpec q = load_format(
      "weights: nvfp4\nmtp: bf16\nparts: {attention: [{format: bf16, share: 0.25}, {format: nvfp4, share: 0.75, bits: "
      "5}]}\n");
  EXPECT_EQ(q.format(WeightPart::kAttention), WeightFormat::kNvfp4);
  EXPECT_EQ(q.bits(WeightPart::kAttention), 0.25 * 16 + 0.75 * 5);
  EXPECT_EQ(q.shares(WeightPart::kAttention).size(), 2U);
  EXPECT_EQ(q.shares(WeightPart::kMlp).size(), 1U);
  EXPECT_EQ(q.of_modules().bits(WeightPart::kMlp), 16);
  EXPECT_EQ(format_problem("weights: fp8\nparts: {mlp: [{format: bf16, share: 0.5}, {format: fp8, share: 0.4}]}\n"),
            "2: shares of mlp add up to 0.9, not to 1");
}

TEST(LoadQuantization, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(format_problem("bits_per_weight: 8\n"), "1: quantization has no 'weights'");
  EXPECT_EQ(
      format_problem("weights: fp9\n"),
      "1: 'weights' is 'fp9'; it must be one of fp32, bf16, fp16, fp8, mxfp8, int8, int6, int5, int4, nf4, mxfp4, "
      "nvfp4, int3, int2");
  EXPECT_EQ(format_problem("weights: fp8\nparts: {heads: bf16}\n"), "2: unknown key 'heads' in quantization.parts");
  EXPECT_EQ(format_problem("weights: fp8\nbits_per_weight: 4\n"),
            "2: 4 bits for a weight of fp8 (8 bits without scales of its own)");
  EXPECT_EQ(format_problem("weights: fp8\nkv_cache: fp8\n"), "2: unknown key 'kv_cache' in quantization");
}

}  // namespace
}  // namespace scalecalc
