// Formats of the weights, method by method.
#include <gtest/gtest.h>

#include "unit/import/imported.h"

namespace scalecalc {
namespace {

using test::contains;
using test::import;
using test::import_beside;
using test::Json;
using test::small;
using test::spec;

QuantizationSpec quantization(const Json& block, Json config = small("llama")) {
  config["quantization_config"] = block;
  return *spec(config).quantization;
}

std::string part(const QuantizationSpec& q, WeightPart p) {
  const auto own = q.parts[static_cast<std::size_t>(p)];
  return std::string(name_of(own.value_or(q.weights)));
}

Json moe() {
  Json config = small("qwen3_moe");
  config.update({{"num_experts", 8}, {"num_experts_per_tok", 2}, {"moe_intermediate_size", 256}});
  return config;
}

TEST(HfQuantization, WithoutOneTheDtypeIsTheFormat) {
  Json config = small("llama");
  EXPECT_FALSE(spec(config).quantization.has_value()) << "the file says nothing";
  config["torch_dtype"] = "float32";
  EXPECT_EQ(spec(config).quantization->weights, WeightFormat::kFp32);
  config.erase("torch_dtype");
  config["dtype"] = "float16";
  EXPECT_EQ(spec(config).quantization->weights, WeightFormat::kFp16);
  EXPECT_EQ(spec(config).quantization->bits(WeightPart::kMlp), 16);
  config["dtype"] = "float7";
  EXPECT_TRUE(contains(import(config).notes.warnings, "dtype 'float7' is not known"));
}

TEST(HfQuantization, Fp8BlocksCarryAScaleEach) {
  const QuantizationSpec q = quantization({{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}});
  EXPECT_EQ(q.weights, WeightFormat::kFp8);
  EXPECT_NEAR(q.bits_per_weight, 8 + 32.0 / (128 * 128), 1e-6);
  EXPECT_EQ(part(q, WeightPart::kAttention), "fp8");
  EXPECT_EQ(part(q, WeightPart::kEmbedding), "bf16");
  EXPECT_EQ(part(q, WeightPart::kHead), "bf16");
  EXPECT_EQ(q.bits(WeightPart::kHead), 16);
  EXPECT_EQ(quantization({{"quant_method", "fp8"}, {"activation_scheme", "static"}}).bits_per_weight, 8);
}

TEST(HfQuantization, Mxfp4IsForExperts) {
  Json config = moe();
  config["torch_dtype"] = "bfloat16";
  const QuantizationSpec q = quantization({{"quant_method", "mxfp4"}}, config);
  EXPECT_EQ(q.weights, WeightFormat::kMxfp4);
  EXPECT_EQ(q.bits_per_weight, 4.25);
  EXPECT_EQ(part(q, WeightPart::kAttention), "bf16");
  EXPECT_EQ(part(q, WeightPart::kRouter), "bf16");
}

TEST(HfQuantization, AwqAndGptqByBitsGroupsAndZeroPoints) {
  EXPECT_EQ(
      quantization({{"quant_method", "awq"}, {"bits", 4}, {"group_size", 128}, {"zero_point", true}}).bits_per_weight,
      4 + 20.0 / 128);
  EXPECT_EQ(
      quantization({{"quant_method", "awq"}, {"bits", 4}, {"group_size", 128}, {"zero_point", false}}).bits_per_weight,
      4.125);
  EXPECT_EQ(quantization({{"quant_method", "gptq"}, {"bits", 8}, {"group_size", -1}, {"sym", true}}).weights,
            WeightFormat::kInt8);
  // qzeros of 4 bits are packed beside each group's scale of 16, whether the weights are symmetric or not.
  EXPECT_EQ(quantization({{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 32}, {"sym", true}}).bits_per_weight,
            4 + (16 + 4) / 32.0);
  const QuantizationSpec three = quantization({{"quant_method", "gptq"}, {"bits", 3}, {"group_size", 128}});
  EXPECT_EQ(three.weights, WeightFormat::kInt3);
  EXPECT_NEAR(three.bits_per_weight, 3 + (16 + 3) / 128.0, 1e-9);
}

TEST(HfQuantization, GptqLeavesModulesOutOrWidensThem) {
  const QuantizationSpec q = quantization(
      {{"quant_method", "gptq"},
       {"bits", 4},
       {"group_size", -1},
       {"lm_head", true},
       {"dynamic", {{"-:.*self_attn.*", Json::object()}, {"+:.*down_proj.*", {{"bits", 8}, {"group_size", -1}}}}}});
  EXPECT_EQ(part(q, WeightPart::kAttention), "bf16");
  EXPECT_EQ(part(q, WeightPart::kHead), "int4");
  EXPECT_EQ(part(q, WeightPart::kMlp), "int4");
  // Gate, up and down are of one size, 64 x 256; each input has 32 bits more.
  EXPECT_NEAR(q.bits(WeightPart::kMlp), (4 + 4 + 8) / 3.0 + 32.0 * (64 + 64 + 256) / (3 * 64 * 256), 1e-9);
}

TEST(HfQuantization, BitsAndBytes) {
  EXPECT_EQ(quantization({{"quant_method", "bitsandbytes"}, {"load_in_8bit", true}}).weights, WeightFormat::kInt8);
  const QuantizationSpec q = quantization({{"quant_method", "bitsandbytes"}, {"load_in_4bit", true}});
  EXPECT_EQ(q.weights, WeightFormat::kNf4);
  EXPECT_EQ(q.bits_per_weight, 4.5);
  EXPECT_EQ(
      quantization({{"quant_method", "bitsandbytes"}, {"load_in_4bit", true}, {"bnb_4bit_use_double_quant", true}})
          .bits_per_weight,
      4.127);
}

Json compressed(const Json& weights, const std::string& format, const Json& ignore) {
  return {{"quant_method", "compressed-tensors"},
          {"format", format},
          {"config_groups", {{"group_0", {{"targets", {"Linear"}}, {"weights", weights}}}}},
          {"ignore", ignore}};
}

TEST(HfQuantization, CompressedTensorsByItsFirstGroup) {
  const Json int4 = {{"num_bits", 4}, {"type", "int"}, {"group_size", 32}, {"strategy", "group"}, {"symmetric", true}};
  QuantizationSpec q = quantization(compressed(int4, "pack-quantized", {"lm_head"}));
  EXPECT_EQ(q.weights, WeightFormat::kInt4);
  EXPECT_EQ(q.bits_per_weight, 4.5);
  EXPECT_EQ(part(q, WeightPart::kHead), "bf16");
  q = quantization(compressed(int4, "pack-quantized", {"re:.*self_attn.*"}));
  EXPECT_EQ(part(q, WeightPart::kHead), "int4") << "not in the list";
  EXPECT_EQ(part(q, WeightPart::kAttention), "bf16");
  const Json float8 = {{"num_bits", 8}, {"type", "float"}, {"strategy", "channel"}, {"group_size", nullptr}};
  EXPECT_EQ(quantization(compressed(float8, "float-quantized", {"lm_head"})).bits_per_weight, 8);
  const Json float4 = {{"num_bits", 4}, {"type", "float"}, {"group_size", 32}};
  EXPECT_EQ(quantization(compressed(float4, "mxfp4-pack-quantized", {"lm_head"})).weights, WeightFormat::kMxfp4);
  EXPECT_EQ(quantization(compressed(float4, "nvfp4-pack-quantized", {"lm_head"})).weights, WeightFormat::kNvfp4);
}

TEST(HfQuantization, RegularExpressionsGlobsAndPlainNamesMeanTheSame) {
  const Json ignored = {"lm_head", "re:.*self_attn.*", "re:.*shared_experts.*",
                        "re:.*mlp\\.(gate|up|gate_up|down)_proj.*"};
  Json config = small("deepseek_v3");
  config.update({{"n_routed_experts", 8}, {"num_experts_per_tok", 2}, {"moe_intermediate_size", 256}});
  const Json int4 = {{"num_bits", 4}, {"type", "int"}, {"group_size", 32}};
  QuantizationSpec q = quantization(compressed(int4, "pack-quantized", ignored), config);
  EXPECT_EQ(part(q, WeightPart::kExperts), "int4");
  for (const WeightPart p : {WeightPart::kAttention, WeightPart::kMlp, WeightPart::kShared, WeightPart::kHead,
                             WeightPart::kRouter, WeightPart::kEmbedding}) {
    EXPECT_EQ(part(q, p), "bf16") << kWeightPartNames[static_cast<std::size_t>(p)];
  }
  Json listed = {"lm_head", "*.mlp.shared_experts.*"};
  for (int i = 0; i < 8; ++i) listed.push_back("model.layers." + std::to_string(i) + ".self_attn*");
  for (int i = 0; i < 3; ++i) listed.push_back("model.layers." + std::to_string(i) + ".mlp");
  q = quantization(compressed(int4, "pack-quantized", listed), config);
  EXPECT_EQ(part(q, WeightPart::kExperts), "int4");
  EXPECT_EQ(part(q, WeightPart::kAttention), "bf16");
  EXPECT_EQ(part(q, WeightPart::kMlp), "bf16");
  EXPECT_EQ(part(q, WeightPart::kShared), "bf16");
}

TEST(HfQuantization, APartlySkippedPartGoesWithItsMajority) {
  Json config = small("llama");
  Json skipped = {"lm_head", "model.layers.0.self_attn.q_proj", "model.layers.0.input_layernorm", "visual.blocks.3"};
  config["quantization_config"] = {{"quant_method", "fp8"}, {"modules_to_not_convert", skipped}};
  ImportedModel model = import(config);
  EXPECT_EQ(part(*load_model(model.document).quantization, WeightPart::kAttention), "fp8");
  // One of four equal matrices in one of eight layers.
  EXPECT_TRUE(contains(model.notes.remarks, "97% of the attention weights are fp8; 8.25 bits each on average"));
  EXPECT_NEAR(load_model(model.document).quantization->bits(WeightPart::kAttention), (31 * 8 + 16) / 32.0, 1e-9);
  EXPECT_TRUE(model.notes.warnings.empty());
  for (int i = 1; i < 6; ++i) skipped.push_back("model.layers." + std::to_string(i) + ".self_attn");
  config["quantization_config"]["modules_to_not_convert"] = skipped;
  model = import(config);
  EXPECT_EQ(part(*load_model(model.document).quantization, WeightPart::kAttention), "bf16");
  skipped.push_back("model.frobnicator");
  config["quantization_config"]["modules_to_not_convert"] = skipped;
  EXPECT_TRUE(contains(import(config).notes.warnings,
                       "1 module names of the quantization are not understood, such as "
                       "'model.frobnicator'"));
}

TEST(HfQuantization, ModelOptBesideTheFileWins) {
  Json config = moe();
  config["quantization_config"] = {{"quant_method", "fp8"}};
  const Json beside = {{"producer", {{"name", "modelopt"}}},
                       {"quantization",
                        {{"quant_algo", "NVFP4"},
                         {"group_size", 16},
                         {"kv_cache_quant_algo", "FP8"},
                         {"exclude_modules", {"lm_head", "model.layers.*.mlp.gate"}}}}};
  const ImportedModel model = import_beside(config, beside);
  const QuantizationSpec q = *load_model(model.document).quantization;
  EXPECT_EQ(q.weights, WeightFormat::kNvfp4);
  EXPECT_EQ(q.bits_per_weight, 4.5);
  EXPECT_EQ(q.kv, WeightFormat::kFp8);
  EXPECT_EQ(part(q, WeightPart::kHead), "bf16");
  EXPECT_TRUE(contains(model.notes.remarks, "hf_quant_config.json"));
}

TEST(HfQuantization, MixedPrecisionIsReadModuleByModule) {
  Json modules = Json::object();
  for (int layer = 0; layer < 8; ++layer) {
    const std::string prefix = "model.language_model.layers." + std::to_string(layer) + ".";
    for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"}) {
      modules[prefix + "self_attn." + name] = {{"quant_algo", "FP8"}};
    }
    for (int e = 0; e < 8; ++e) {
      for (const char* name : {"gate_proj", "up_proj", "down_proj"}) {
        modules[prefix + "mlp.experts." + std::to_string(e) + "." + name] = {{"quant_algo", "W4A16_NVFP4"}};
      }
    }
  }
  Json block = {{"quant_method", "modelopt"},
                {"quant_algo", "MIXED_PRECISION"},
                {"quantized_layers", modules},
                {"kv_cache_scheme", {{"num_bits", 8}, {"type", "float"}}}};
  const QuantizationSpec q = quantization(block, moe());
  EXPECT_EQ(q.weights, WeightFormat::kNvfp4);
  EXPECT_EQ(part(q, WeightPart::kAttention), "fp8");
  EXPECT_EQ(q.bits(WeightPart::kAttention), 8);
  EXPECT_EQ(part(q, WeightPart::kHead), "bf16");
  EXPECT_EQ(q.kv, WeightFormat::kFp8);
}

TEST(HfQuantization, MlxQuantizesEmbeddingsToo) {
  Json config = small("llama");
  config["torch_dtype"] = "bfloat16";
  config["quantization"] = {{"group_size", 64}, {"bits", 4}};
  const QuantizationSpec q = *spec(config).quantization;
  EXPECT_EQ(q.weights, WeightFormat::kInt4);
  EXPECT_EQ(q.bits_per_weight, 4 + 2 * 16 / 64.0) << "a scale and an offset of 16 bits for each group";
  EXPECT_EQ(part(q, WeightPart::kEmbedding), "int4");
  EXPECT_EQ(part(q, WeightPart::kHead), "int4");
  config["quantization"]["lm_head"] = false;
  config["quantization"]["model.embed_tokens"] = {{"group_size", 64}, {"bits", 8}};
  const QuantizationSpec own = *spec(config).quantization;
  EXPECT_EQ(part(own, WeightPart::kHead), "bf16");
  EXPECT_EQ(part(own, WeightPart::kEmbedding), "int8");
  EXPECT_EQ(own.bits(WeightPart::kEmbedding), 8.5);
  // The same block again under the other key, as MLX writes it.
  config["quantization_config"] = config["quantization"];
  EXPECT_EQ(spec(config).quantization->bits(WeightPart::kEmbedding), 8.5);
}

TEST(HfQuantization, OtherMethodsByTheirOwnNames) {
  const Json hqq = {{"quant_method", "hqq"},
                    {"quant_config", {{"weight_quant_params", {{"nbits", 4}, {"group_size", 64}}}}},
                    {"skip_modules", {"lm_head"}}};
  EXPECT_EQ(quantization(hqq).bits_per_weight, 4.5);
  EXPECT_EQ(quantization({{"quant_method", "awq"}, {"w_bit", 4}, {"q_group_size", 64}}).bits_per_weight, 4 + 20.0 / 64);
  const QuantizationSpec exl2 = quantization({{"quant_method", "exl2"}, {"bits", 4.65}, {"head_bits", 6}});
  EXPECT_EQ(exl2.bits_per_weight, 4.65);
  EXPECT_EQ(exl2.bits(WeightPart::kHead), 6);
  EXPECT_EQ(quantization({{"quant_method", "auto-round"}, {"bits", 2}, {"group_size", 128}}).bits_per_weight,
            2 + 18.0 / 128);
  EXPECT_EQ(quantization({{"quant_method", "auto-round"}, {"bits", 4}, {"data_type", "mx_fp"}}).weights,
            WeightFormat::kMxfp4);
  EXPECT_EQ(quantization({{"quant_method", "torchao"}, {"quant_type", "int8_weight_only"}}).weights,
            WeightFormat::kInt8);
  const Json ao = {{"quant_method", "torchao"},
                   {"quant_type", {{"default", {{"_type", "Int4WeightOnlyConfig"}, {"_data", {{"group_size", 32}}}}}}}};
  EXPECT_EQ(quantization(ao).bits_per_weight, 5);
  const Json quark = {{"quant_method", "quark"},
                      {"global_quant_config", {{"weight", {{"dtype", "fp4"}, {"qscheme", "per_group"}}}}},
                      {"layer_quant_config", {{"*self_attn*", {{"weight", {{"dtype", "fp8_e4m3"}}}}}}},
                      {"exclude", {"lm_head"}}};
  const QuantizationSpec q = quantization(quark);
  EXPECT_EQ(q.weights, WeightFormat::kMxfp4);
  EXPECT_EQ(part(q, WeightPart::kAttention), "fp8");
}

TEST(HfQuantization, OfSeveralGroupsTheFirstThatMatchesWins) {
  Json block = compressed({{"num_bits", 8}, {"type", "float"}}, "mixed-precision", {"lm_head"});
  block["config_groups"] = {
      {"group_0", {{"targets", {"re:.*self_attn.*"}}, {"weights", {{"num_bits", 8}, {"type", "float"}}}}},
      {"group_1", {{"targets", {"Linear"}}, {"weights", {{"num_bits", 4}, {"type", "int"}, {"group_size", 32}}}}}};
  const QuantizationSpec q = quantization(block);
  EXPECT_EQ(part(q, WeightPart::kAttention), "fp8");
  EXPECT_EQ(part(q, WeightPart::kMlp), "int4");
  EXPECT_EQ(q.bits(WeightPart::kMlp), 4.5);
}

TEST(HfQuantization, MatricesLeftOutCountInTheirPart) {
  // Latent attention of d 64, 4 heads, ranks of 32 and 16, heads of 16 + 8 and 16.
  constexpr double kQa = 64 * 32, kQb = 32 * 4 * 24, kKva = 64 * 24, kKvb = 16 * 4 * 32, kO = 4 * 16 * 64;
  Json config = small("deepseek_v3");
  config.update({{"q_lora_rank", 32},
                 {"kv_lora_rank", 16},
                 {"qk_nope_head_dim", 16},
                 {"qk_rope_head_dim", 8},
                 {"v_head_dim", 16},
                 {"n_routed_experts", 8},
                 {"num_experts_per_tok", 2},
                 {"moe_intermediate_size", 256}});
  const Json beside = {
      {"quantization",
       {{"quant_algo", "NVFP4"},
        {"exclude_modules", {"lm_head", "*q_a_proj*", "*q_b_proj*", "*kv_a_proj_with_mqa*", "*kv_b_proj*"}}}}};
  const QuantizationSpec q = *load_model(import_beside(config, beside).document).quantization;
  constexpr double kLeft = kQa + kQb + kKva + kKvb;
  EXPECT_EQ(part(q, WeightPart::kAttention), "bf16") << "8,704 of 12,800 weights";
  EXPECT_NEAR(q.bits(WeightPart::kAttention), (16 * kLeft + 4.5 * kO) / (kLeft + kO), 1e-9);
  EXPECT_EQ(q.bits(WeightPart::kExperts), 4.5);
}

TEST(HfQuantization, AnUnknownMethodIsAnErrorUnlessAFormatIsAssumed) {
  Json config = small("llama");
  config["torch_dtype"] = "bfloat16";
  for (const Json& block : {Json{{"quant_method", "vptq"}}, Json{{"quant_algo", "INT3_X"}}, Json{{"x", 1}},
                            Json{{"quant_method", "gptq"}, {"bits", 7}}}) {
    config["quantization_config"] = block;
    EXPECT_NE(test::problems(config).find("--assume weights=FORMAT says how the linear layers are stored"),
              std::string::npos)
        << test::problems(config);
  }
  const ImportedModel model = import(config, "weights=int4");
  const QuantizationSpec q = *load_model(model.document).quantization;
  EXPECT_EQ(part(q, WeightPart::kMlp), "int4");
  EXPECT_EQ(part(q, WeightPart::kHead), "bf16");
  EXPECT_TRUE(contains(model.notes.warnings, "linear layers read as int4 because --assume says so"));
  EXPECT_EQ(import(config, "llama,weights=fp8").notes.family, "llama");
  EXPECT_NE(test::problems(config, "weights=int7").find("no format of that name is known"), std::string::npos);
}

TEST(HfQuantization, MayStandInTheTextConfig) {
  Json text = small("llama");
  text["quantization_config"] = {{"quant_method", "fp8"}};
  EXPECT_EQ(spec({{"model_type", "wrapper"}, {"text_config", text}}).quantization->weights, WeightFormat::kFp8);
}

}  // namespace
}  // namespace scalecalc
