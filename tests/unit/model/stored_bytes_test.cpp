// Stored bytes of real checkpoints, by part and format, and against the index beside them.
#include "model/stored_bytes.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/io.h"
#include "config/json_reader.h"
#include "config/yaml_reader.h"
#include "import/hf_config.h"
#include "model/checkpoint_check.h"
#include "spec/load.h"

namespace scalecalc {
namespace {

const std::string kCheckpoints = SCALECALC_SOURCE_DIR "/tests/data/hf/";

ConfigNode checkpoint_config(const std::string& name) {
  const std::string file = kCheckpoints + name + ".json";
  return read_json(read_text_file(file), file);
}

/// `quantization` as YAML, in the place of the file's own.
ModelSpec checkpoint(const std::string& name, const std::string& quantization = "") {
  const ConfigNode beside = read_yaml("quantization: " + quantization + "\n", "q.yaml");
  return load_model(import_hf_config(checkpoint_config(name), quantization.empty() ? nullptr : &beside).document);
}

double bytes_of(const ModelSpec& model) { return total_bytes(stored_weights(model, *model.quantization)); }

const StoredWeights& row(const std::vector<StoredWeights>& rows, std::string_view part, WeightFormat format) {
  for (const StoredWeights& r : rows) {
    if (r.part == part && r.format == format) return r;
  }
  ADD_FAILURE() << part << " has no " << name_of(format);
  return rows.front();
}

TEST(StoredBytes, AreThoseOfRealCheckpoints) {
  const std::string file = kCheckpoints + "stored.yaml";
  const ConfigNode table = read_yaml(read_text_file(file), file);
  for (const ConfigNode& entry : table.find("models")->items) {
    const std::string name = entry.find("file")->text;
    const ConfigNode* block = entry.find("quantization");
    const ConfigNode* within = entry.find("within");
    ConfigNode beside;
    beside.kind = ConfigNode::Kind::kMap;
    if (block != nullptr) beside.entries.push_back({"quantization", block->span, *block});
    const ConfigNode config = checkpoint_config(name);
    const ModelSpec model = load_model(import_hf_config(config, block != nullptr ? &beside : nullptr).document);
    const double bytes = std::stod(entry.find("bytes")->text);
    EXPECT_NEAR(bytes_of(model) / bytes, 1, within == nullptr ? 1e-12 : std::stod(within->text)) << name;
  }
}

/// Gemma 4's experts of 704 stand beside the MLP, which NVIDIA's NVFP4 checkpoint leaves in bf16 with attention and
/// routers: 30 layers of 128.
TEST(StoredBytes, ExpertsBesideTheMlpAreNoneOfItsModules) {
  const ModelSpec gemma = checkpoint("gemma-4-26b-a4b",
                                     "{quant_algo: NVFP4, group_size: 16, exclude_modules: [lm_head, "
                                     "'model.language_model.layers.*.mlp*', 'model.language_model.layers.*.router*', "
                                     "'model.language_model.layers.*.self_attn*']}");
  const double experts = 30.0 * 128 * 3 * 2816 * 704;
  EXPECT_EQ(bytes_of(gemma), experts * 4.5 / 8 + 2 * (25233141790 - experts));
  // Granite 4 has a shared MLP beside its 72 experts of 40 layers: what is said of it is said of it alone.
  const ModelSpec granite =
      checkpoint("granite-4.0-h-small", "{quant_algo: NVFP4, group_size: 16, exclude_modules: ['*shared_mlp*']}");
  EXPECT_EQ(row(stored_weights(granite, *granite.quantization), "experts", WeightFormat::kNvfp4).parameters,
            40.0 * 72 * 3 * 4096 * 768);
}

/// DeepSeek-V3: d 7168, 61 layers, 128 heads, latents of 1536 and 512, heads of 128 + 64, values of 128. NVIDIA's
/// R1-0528-NVFP4-v2 leaves the projections to and from the latents in bf16, and the prediction module.
constexpr double kLatents = 61.0 * (7168 * 1536 + 1536 * 128 * 192 + 7168 * 576 + 512 * 128 * 256);
constexpr double kOutput = 61.0 * 128 * 128 * 7168;
const std::string kNvfp4 =
    "{quant_algo: NVFP4, exclude_modules: [lm_head, '*q_a_proj*', '*q_b_proj*', '*kv_a_proj_with_mqa*', "
    "'*kv_b_proj*', 'model.layers.61*']}";

TEST(StoredBytes, OfAPartInTwoFormatsAreTwoRows) {
  const ModelSpec model = checkpoint("deepseek-v3", kNvfp4);
  const std::vector<StoredWeights> rows = stored_weights(model, *model.quantization);
  EXPECT_NEAR(row(rows, "attention", WeightFormat::kBf16).parameters / kLatents, 1, 1e-9);
  EXPECT_NEAR(row(rows, "attention", WeightFormat::kBf16).bytes / (2 * kLatents), 1, 1e-9);
  EXPECT_NEAR(row(rows, "attention", WeightFormat::kNvfp4).parameters / kOutput, 1, 1e-9);
  EXPECT_NEAR(row(rows, "attention", WeightFormat::kNvfp4).bytes / (kOutput * 4.5 / 8), 1, 1e-9);
  EXPECT_EQ(model.quantization->format(WeightPart::kAttention), WeightFormat::kNvfp4) << "7.2 of 11.4 billion";
  // 6.1 GB more than with every projection in 4 bits: what eight GPUs whose attention is replicated hold each.
  EXPECT_NEAR(
      (bytes_of(model) - bytes_of(checkpoint("deepseek-v3", "{quant_algo: NVFP4, exclude_modules: [lm_head]}"))),
      kLatents * (2 - 4.5 / 8), 1e3);
}

/// The files of nvidia/DeepSeek-R1-0528-NVFP4-v2 take 413,340,567,567 bytes, tokenizer and headers included.
TEST(StoredBytes, OfNvfp4WithItsPredictionModule) {
  const ModelSpec model = checkpoint("deepseek-v3", kNvfp4);
  const SafetensorsIndex index{.file = "model.safetensors.index.json",
                               .total_bytes = 413340567567,
                               .tensors = 1,
                               .modules = 1,
                               .module_embeddings = 1,
                               .module_heads = 1};
  const CheckpointCheck check = check_checkpoint(model, index);
  EXPECT_EQ(check.text, "model.safetensors.index.json has 413 GB of weights in 1 tensors, as counted here");
  EXPECT_FALSE(check.warning);
}

/// The files of deepseek-ai/DeepSeek-V3 and R1 take 688,586,727,753 bytes: the module's copies of both ends too.
TEST(StoredBytes, OfFp8WithItsPredictionModule) {
  SafetensorsIndex index{.file = "a/model.safetensors.index.json",
                         .total_bytes = 688586727753,
                         .tensors = 91991,
                         .modules = 1500,
                         .module_embeddings = 1,
                         .module_heads = 1};
  const ModelSpec model = checkpoint("deepseek-v3");
  CheckpointCheck check = check_checkpoint(model, index);
  EXPECT_EQ(check.text, "model.safetensors.index.json has 689 GB of weights in 91,991 tensors, as counted here");
  index.module_embeddings = index.module_heads = index.modules = 0;
  check = check_checkpoint(model, index);
  EXPECT_EQ(check.text,
            "model.safetensors.index.json has 689 GB of weights in 91,991 tensors, 2.3% more than the 673 GB counted "
            "here");
  EXPECT_TRUE(check.warning);
  index.towers = 400;
  check = check_checkpoint(model, index);
  EXPECT_NE(check.text.find("; 400 of towers are not counted"), std::string::npos);
  EXPECT_FALSE(check.warning) << "towers may explain it";
  index.total_bytes = 400e9;
  EXPECT_TRUE(check_checkpoint(model, index).warning) << "less than counted is no tower";
  index.total_bytes.reset();
  EXPECT_EQ(check_checkpoint(model, index).text, "model.safetensors.index.json says no total_size to compare with");
}

/// DeepSeek-V4 Flash by hand: experts of 43 layers in mxfp4; other projections in fp8 with an fp32 scale for blocks of
/// 128 x 128; embedding, head, routers, compressors and the indexer's weights of heads in bf16.
TEST(StoredBytes, OfDeepSeekV4AreThreeFormats) {
  const double d = 4096, experts = 43.0 * 256 * 3 * d * 2048, shared = 43.0 * 3 * d * 2048;
  const double projections = 43 * (d * 1024 + 1024 * 64.0 * 512 + d * 512 + 64.0 * 512 * 1024 + 8 * 1024 * d);
  const double index_queries = 21.0 * 1024 * 64 * 128;
  const double fp8 = projections + shared + index_queries;
  const double total = 284332240471;
  const double bytes = experts * 4.25 / 8 + fp8 * (8 + 32.0 / 16384) / 8 + (total - experts - fp8) * 2;
  EXPECT_NEAR(bytes_of(checkpoint("deepseek-v4-flash")) / bytes, 1, 1e-9);
}

/// Llama 2 7B by hand: 4 bits, a 16-bit scale and a 4-bit zero point for 128 weights, and 4 bytes for each input of the
/// seven matrices of 32 layers (g_idx): 6 x 4096 + 11008.
TEST(StoredBytes, OfGptqHaveTheGroupsOfTheInputs) {
  const double linear = 32.0 * (4 * 4096.0 * 4096 + 3 * 4096.0 * 11008);
  const double inputs = 32.0 * (6 * 4096 + 11008);
  const double bytes = linear * (4 + 16.0 / 128 + 4.0 / 128) / 8 + inputs * 4 + (6738415616 - linear) * 2;
  EXPECT_NEAR(bytes_of(checkpoint("llama-2-7b", "{quant_method: gptq, bits: 4, group_size: 128, sym: true}")) / bytes,
              1, 1e-9);
}

/// Of Gemma 4 E2B the table of per-layer embeddings is no linear layer, the projections to and from it are.
TEST(StoredBytes, OfPerLayerTablesAreThoseOfAnEmbedding) {
  const double table = 262144.0 * 35 * 256, d = 1536;
  const ModelSpec model = checkpoint("gemma-4-e2b", "{quant_method: bitsandbytes, load_in_8bit: true}");
  const std::vector<StoredWeights> rows = stored_weights(model, *model.quantization);
  EXPECT_EQ(row(rows, "embedding", WeightFormat::kBf16).parameters, table + 262144.0 * d);
  const ModelSpec mlx =
      checkpoint("gemma-4-e2b", "{bits: 4, group_size: 64, model.language_model.embed_tokens_per_layer: false}");
  const std::vector<StoredWeights> kept = stored_weights(mlx, *mlx.quantization);
  EXPECT_NEAR(row(kept, "embedding", WeightFormat::kBf16).parameters, table, 1);
  EXPECT_NEAR(row(kept, "embedding", WeightFormat::kInt4).parameters, 262144.0 * d, 1);
}

/// RedHatAI's DeepSeek-V4-Flash-NVFP4-FP8: one pattern for the matrices of all experts.
TEST(StoredBytes, OfAPatternOverTheFeedForwardPartAreTheExpertsToo) {
  const ModelSpec model =
      checkpoint("deepseek-v3",
                 "{quant_method: compressed-tensors, config_groups: {group_0: {format: nvfp4-pack-quantized, targets: "
                 "['re:.*ffn.*(gate|up|down)_proj$'], weights: {num_bits: 4, type: float, group_size: 16}}}}");
  EXPECT_EQ(model.quantization->format(WeightPart::kExperts), WeightFormat::kNvfp4);
  EXPECT_EQ(model.quantization->format(WeightPart::kAttention), WeightFormat::kBf16);
}

TEST(StoredBytes, AddUpToThoseOfTheOperations) {
  for (const char* name : {"deepseek-v3", "gpt-oss-20b", "qwen3.5-35b-a3b", "jamba-v0.1", "gpt2", "minimax-m1"}) {
    const ModelSpec model = checkpoint(name);
    const QuantizationSpec formats = model.quantization.value_or(QuantizationSpec{});
    const ModelDims<double> dims = read_dims(Reader<double>{}, model);
    double sum = 0;
    for (const Op<double>& op : embedding_ops(model, dims)) sum += stored_bytes(op, nullptr, formats);
    for (const Op<double>& op : head_ops(model, dims)) sum += stored_bytes(op, nullptr, formats);
    for (const std::uint8_t kind : model.layer_kind) {
      for (const Op<double>& op : layer_ops(model, model.kinds[kind], dims)) {
        sum += stored_bytes(op, &model.kinds[kind], formats);
      }
    }
    EXPECT_NEAR(total_bytes(stored_weights(model, formats)) / sum, 1, 1e-12) << name;
  }
}

TEST(StoredBytes, OfNormsAreThoseOfTheEmbeddingsFormat) {
  QuantizationSpec formats{.weights = WeightFormat::kFp32, .bits_per_weight = 32};
  EXPECT_EQ(formats.format_beside(), WeightFormat::kFp32);
  formats.parts[static_cast<std::size_t>(WeightPart::kEmbedding)] = WeightFormat::kInt4;
  EXPECT_EQ(formats.format_beside(), WeightFormat::kBf16);
}

}  // namespace
}  // namespace scalecalc
