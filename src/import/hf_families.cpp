// Reads the families without experts, and lists all families. Each function says what its family adds to or changes in
// the common shape; what it does not mention is as in Llama: rmsnorm twice a layer, gated MLP, no biases, full
// attention.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "import/hf_families.h"
#include "import/hf_read.h"

namespace scalecalc {
namespace {

constexpr std::int64_t kQwenHeads = 32;  // kv heads of the class, whatever the model's own

void gemma_common(HfReading& r, const ShapeDefaults& defaults) {
  read_shape(r, defaults);
  read_attention_bias(r, false);
  r.model.activation = "gelu";
}

/// The window is said by the pattern: every pattern-th layer is full.
void every_nth_full(HfReading& r, std::int64_t window, std::int64_t otherwise) {
  const std::int64_t pattern =
      r.keys.size_or({"sliding_window_pattern", "_sliding_window_pattern"}, otherwise, {1, 1000}).value;
  set_sliding(r, read_window(r, window), [&](std::int64_t i) { return (i + 1) % pattern != 0; });
}

}  // namespace

void read_llama(HfReading& r) {
  // A wrapper's file leaves out what its language model does not change of the class.
  read_shape(
      r,
      r.keys.nested()
          ? ShapeDefaults{.d_model = 4096, .layers = 32, .width = 11008, .heads = 32, .vocab = 32000, .max_seq = 2048}
          : ShapeDefaults{.max_seq = 2048});
  read_attention_bias(r, false);
  r.model.mlp_bias = r.keys.flag({"mlp_bias"}, false);
}

void read_mistral(HfReading& r) {
  read_shape(r, r.keys.nested() ? ShapeDefaults{.d_model = 4096,
                                                .layers = 32,
                                                .width = 14336,
                                                .heads = 32,
                                                .kv_heads = 8,
                                                .vocab = 32000,
                                                .max_seq = 131072}
                                : ShapeDefaults{.kv_heads = 8, .max_seq = 131072});
  set_sliding(r, read_window(r, 4096), [](std::int64_t) { return true; });
}

void read_qwen2(HfReading& r) {
  read_shape(r, r.keys.nested() ? ShapeDefaults{.d_model = 4096,
                                                .layers = 32,
                                                .width = 22016,
                                                .heads = 32,
                                                .kv_heads = kQwenHeads,
                                                .vocab = 151936,
                                                .max_seq = 32768}
                                : ShapeDefaults{.kv_heads = kQwenHeads, .max_seq = 32768});
  r.model.qkv_bias = true;
  r.model.reward = HfReward::kDense;
  set_qwen_window(r);
}

void read_qwen3(HfReading& r) {
  read_shape(r, {.kv_heads = kQwenHeads, .head_dim = 128, .max_seq = 32768});
  read_attention_bias(r, false);
  r.model.qk_norm = "head_dim";
  set_qwen_window(r);
}

void read_gemma(HfReading& r) { gemma_common(r, {.kv_heads = 16, .head_dim = 256, .max_seq = 8192}); }

void read_gemma2(HfReading& r) {
  gemma_common(r, {.kv_heads = 4, .head_dim = 256, .max_seq = 8192});
  r.model.norms_per_layer = 4;
  set_sliding(r, read_window(r, 4096), [](std::int64_t i) { return i % 2 == 0; });
}

void read_gemma3(HfReading& r) {
  // Multimodal files leave out what their text_config does not change.
  gemma_common(r, {.heads = 8, .kv_heads = 4, .head_dim = 256, .vocab = 262208, .max_seq = 131072});
  r.model.norms_per_layer = 4;
  r.model.qk_norm = "head_dim";
  every_nth_full(r, 4096, 6);
}

void read_phi3(HfReading& r) {
  read_shape(r, {.max_seq = 4096});
  set_sliding(r, read_window(r, 0), [](std::int64_t) { return true; });
}

void read_cohere(HfReading& r) {
  read_shape(r, {.max_seq = 8192});
  read_attention_bias(r, false);
  layernorm(r, 1, false);
  r.model.parallel_block = true;
  // One weight per head and dimension, so as many as the projection is wide.
  if (r.keys.flag({"use_qk_norm"}, false)) r.model.qk_norm = "full";
}

void read_cohere2(HfReading& r) {
  read_shape(r, {.max_seq = 8192});
  read_attention_bias(r, false);
  layernorm(r, 1, false);
  r.model.parallel_block = true;
  every_nth_full(r, 4096, 4);
}

/// OLMo, arXiv:2402.00838 section 2.1: layer norms without weights.
void read_olmo(HfReading& r) {
  read_shape(r, {.max_seq = 2048});
  read_attention_bias(r, false);
  layernorm(r, 2, false);
  r.model.norm_weights = false;
}

/// Apertus, arXiv:2509.14233 section 2.1: xIELU, whose two slopes are weights, and norms of queries and keys.
void read_apertus(HfReading& r) {
  HfArchitecture& m = r.model;
  read_shape(r, {.max_seq = 65536});
  read_attention_bias(r, false);
  m.mlp_bias = r.keys.flag({"mlp_bias"}, false);
  m.gated = false;
  m.qk_norm = "head_dim";
  constexpr std::int64_t kSlopes = 2;
  const std::string activation = r.keys.text_or({"hidden_act"}, "xielu");
  if (activation == "xielu") {
    m.activation_weights = kSlopes;
  } else {
    r.keys.remark(fmt::format("activation {} is read as one without weights", in_quotes(activation)));
  }
  for (const HfNames& names : {HfNames{"post_norm"}, HfNames{"qk_norm"}}) {
    const bool usual = *names.begin() == "qk_norm";
    if (r.keys.flag(names, usual) == usual) continue;
    r.keys.problems().add(r.keys.find(names)->span,
                          fmt::format("'{}' is read as {} only", *names.begin(), usual ? "true" : "false"));
  }
}

/// Phi-3-small, arXiv:2404.14219 section 2: layers whose heads attend to local blocks and to every so manieth before
/// them, with layers of full attention between.
void read_phi3small(HfReading& r) {
  HfArchitecture& m = r.model;
  read_width(r, {.max_seq = 8192});
  read_layer_count(r);
  read_heads(r, {.kv_heads = 8});
  all_biases(r);
  m.gated = true;
  m.d_ff = r.keys.required({"ff_intermediate_size"}, "width of the MLP");
  if (r.keys.has({"ff_dim_multiplier"})) {
    r.keys.problems().add(r.keys.find({"ff_dim_multiplier"})->span,
                          "'ff_dim_multiplier' is set, and the width is read from 'ff_intermediate_size'");
  }
  if (!r.keys.flag({"attention_bias"}, true)) {
    r.keys.remark("attention_bias has no effect: projections of this family have biases");
  }
  const bool sparse_alone = r.keys.is_null({"dense_attention_every_n_layers"});
  if (sparse_alone) r.keys.remark("dense_attention_every_n_layers is null: every layer attends to blocks");
  const std::int64_t every = sparse_alone ? 0 : r.keys.size_or({"dense_attention_every_n_layers"}, 2, {1, 1e4}).value;
  for (std::int64_t i = 0; i < m.layer_count(); ++i) {
    m.layers[static_cast<std::size_t>(i)].mixer = every > 0 && (i + 1) % every == 0 ? "full" : "strided";
  }
  const Size block = r.keys.size_or({"blocksparse_block_size"}, 64);
  const Size local = r.keys.size_or({"blocksparse_num_local_blocks"}, 16);
  if (m.has_mixer("strided")) {
    m.strided = HfStrided{{block.value * local.value, local.where}, r.keys.size_or({"blocksparse_vert_stride"}, 8)};
  }
}

void read_olmo2(HfReading& r) {
  read_shape(r, {.max_seq = 2048});
  read_attention_bias(r, false);
  r.model.qk_norm = "full";
}

void read_gpt2(HfReading& r) {
  read_shape(r, {.max_seq = 1024, .d_ff = DffRule::kFourTimes});
  all_biases(r);
  r.model.learned_positions = r.model.max_seq;
}

void read_gptj(HfReading& r) {
  read_shape(r, {.max_seq = 2048, .d_ff = DffRule::kFourTimes});
  r.model.gated = false;
  r.model.mlp_bias = r.model.head_bias = r.model.parallel_block = true;
  layernorm(r, 1, true);
}

void read_gpt_neox(HfReading& r) {
  read_shape(r, {.max_seq = 2048});
  all_biases(r);
  read_attention_bias(r, true);
  r.model.parallel_block = r.keys.flag({"use_parallel_residual"}, true);
}

void read_falcon(HfReading& r) {
  HfArchitecture& m = r.model;
  read_shape(r, {.max_seq = 2048, .d_ff = DffRule::kFourTimes});
  const bool new_architecture = r.keys.flag({"new_decoder_architecture"}, false);
  const bool multi_query = r.keys.flag({"multi_query"}, true);
  m.parallel_block = r.keys.flag({"parallel_attn"}, true);
  // Only the new architecture groups heads; the old files' num_kv_heads repeats the number of heads.
  if (!new_architecture && multi_query) m.kv_heads = {1, m.heads.where};
  const bool bias = r.keys.flag({"bias"}, false);
  m.qkv_bias = m.o_bias = m.mlp_bias = bias;
  m.gated = false;
  const auto listed = r.keys.size({"num_ln_in_parallel_attn"}, {1, 2});
  const bool two = !m.parallel_block || (listed ? listed->value == 2 : new_architecture);
  layernorm(r, two ? 2 : 1, true);
}

void read_bloom(HfReading& r) {
  read_shape(r, {.max_seq = 2048, .d_ff = DffRule::kFourTimes});
  all_biases(r);
  r.model.embedding_norm = true;
}

void read_opt(HfReading& r) {
  HfArchitecture& m = r.model;
  read_shape(r, {.max_seq = 2048});
  all_biases(r);
  m.qkv_bias = m.o_bias = m.mlp_bias = r.keys.flag({"enable_bias"}, true);
  constexpr std::int64_t kPositionOffset = 2;  // the table starts two rows early
  m.learned_positions = {m.max_seq.value + kPositionOffset, m.max_seq.where};
  const Size width = r.keys.size_or({"word_embed_proj_dim"}, m.d_model.value);
  if (width.value != m.d_model.value) m.embedding_dim = width;
  const bool before = r.keys.flag({"do_layer_norm_before"}, true);
  m.final_norm = before && !r.keys.flag({"_remove_final_layer_norm"}, false);
  if (!r.keys.flag({"layer_norm_elementwise_affine"}, true)) {
    r.keys.problems().add(r.keys.span(), "norms without weights (layer_norm_elementwise_affine) are not read");
  }
}

void read_nemotron(HfReading& r) {
  read_shape(r, {.max_seq = 4096});
  read_attention_bias(r, false);
  r.model.mlp_bias = r.keys.flag({"mlp_bias"}, false);
  r.model.gated = false;
  layernorm(r, 2, true);
}

namespace {

constexpr std::array kFamilies{
    HfFamily{"llama", "exaone xverse baichuan llava llava_llama", false, read_llama},
    HfFamily{"granite", "", false, read_llama},
    HfFamily{"mistral", "llava_mistral", false, read_mistral},
    HfFamily{"mixtral", "", false, read_mixtral},
    HfFamily{"qwen2", "qwen2_vl qwen2_vl_text qwen2_5_vl qwen2_5_vl_text qwen2_5_omni_text llava_qwen llava_qwen2",
             false, read_qwen2},
    HfFamily{"qwen2_moe", "", false, read_qwen2_moe},
    HfFamily{"qwen3", "qwen3_vl qwen3_vl_text", false, read_qwen3},
    HfFamily{"qwen3_moe", "qwen3_vl_moe qwen3_vl_moe_text qwen3_omni_moe_text", false, read_qwen3_moe},
    HfFamily{"qwen3_next", "", false, read_qwen3_next},
    HfFamily{"qwen3_5", "qwen3_5_text", false, read_qwen3_5},
    HfFamily{"qwen3_5_moe", "qwen3_5_moe_text", false, read_qwen3_5_moe},
    HfFamily{"gemma", "", true, read_gemma},
    HfFamily{"gemma2", "", true, read_gemma2},
    HfFamily{"gemma3", "gemma3_text", true, read_gemma3},
    HfFamily{"phi3", "phi3_v", false, read_phi3},
    HfFamily{"phi4mm", "phi4_multimodal", true, read_phi3},
    HfFamily{"glm", "", false, read_glm},
    HfFamily{"glm4", "", false, read_glm4},
    HfFamily{"glm4v", "glm4v_text", false, read_glm4v},
    HfFamily{"glm4v_moe", "glm4v_moe_text", false, read_glm4v_moe},
    HfFamily{"chatglm", "", false, read_chatglm},
    HfFamily{"ernie4_5", "", true, read_ernie4_5},
    HfFamily{"hunyuan_v1_dense", "hunyuan_dense_v1", false, read_hunyuan_dense},
    HfFamily{"hunyuan_v1_moe", "hunyuan_moe_v1 hunyuan", false, read_hunyuan_moe},
    HfFamily{"arcee", "", false, read_arcee},
    HfFamily{"minicpm", "", true, read_llama},
    HfFamily{"internlm", "", false, read_internlm},
    HfFamily{"internlm3", "", false, read_internlm3},
    HfFamily{"helium", "", false, read_helium},
    HfFamily{"exaone_moe", "", false, read_exaone_moe},
    HfFamily{"youtu_llm", "youtu", true, read_youtu_llm},
    HfFamily{"mpt", "", true, read_mpt},
    HfFamily{"gpt_bigcode", "", true, read_gpt_bigcode},
    HfFamily{"gpt_neo", "", true, read_gpt_neo},
    HfFamily{"codegen", "", false, read_gptj},
    HfFamily{"deepseek", "", false, read_deepseek},
    HfFamily{"granitemoe", "granitemoeshared", false, read_granitemoe},
    HfFamily{"granitemoehybrid", "", false, read_granitemoehybrid},
    HfFamily{"bamba", "", false, read_bamba},
    HfFamily{"falcon_h1", "", false, read_falcon_h1},
    HfFamily{"mamba", "", true, read_mamba},
    HfFamily{"falcon_mamba", "", true, read_mamba},
    HfFamily{"mamba2", "", false, read_pure_mamba2},
    HfFamily{"lfm2", "", true, read_lfm2},
    HfFamily{"lfm2_moe", "", true, read_lfm2_moe},
    HfFamily{"bailing_moe", "", false, read_bailing_moe},
    HfFamily{"longcat_flash", "", false, read_longcat_flash},
    HfFamily{"kimi_linear", "kimi_k3", false, read_kimi_linear},
    HfFamily{"minimax_m3", "minimax_m3_vl minimax_m3_text minimax_m3_vl_text minimax_m3_sparse", false,
             read_minimax_m3},
    HfFamily{"step3p7", "step3p5 step3p7_text step3p7flash", false, read_step3p7},
    HfFamily{"gemma4", "gemma4_text", true, read_gemma4},
    HfFamily{"deepseek_v2", "", false, read_deepseek_v2},
    HfFamily{"deepseek_v3", "kimi_k2 kimi_k25", false, read_deepseek_v3},
    HfFamily{"deepseek_v32", "glm_moe_dsa", false, read_deepseek_v32},
    HfFamily{"glm4_moe", "", false, read_glm4_moe},
    HfFamily{"gpt_oss", "", false, read_gpt_oss},
    HfFamily{"llama4", "llama4_text", false, read_llama4},
    HfFamily{"minimax", "minimax_text_01 minimax_m1", false, read_minimax},
    HfFamily{"minimax_m2", "", false, read_minimax_m2},
    HfFamily{"mimo_v2_flash", "", false, read_mimo_v2_flash},
    HfFamily{"cohere", "", true, read_cohere},
    HfFamily{"cohere2", "", true, read_cohere2},
    HfFamily{"olmo2", "", false, read_olmo2},
    HfFamily{"dbrx", "", false, read_dbrx},
    HfFamily{"grok-1", "grok", true, read_grok},
    HfFamily{"gpt2", "", true, read_gpt2},
    HfFamily{"gptj", "", false, read_gptj},
    HfFamily{"gpt_neox", "", false, read_gpt_neox},
    HfFamily{"falcon", "", true, read_falcon},
    HfFamily{"bloom", "", true, read_bloom},
    HfFamily{"opt", "", true, read_opt},
    HfFamily{"jamba", "", false, read_jamba},
    HfFamily{"nemotron", "", false, read_nemotron},
    HfFamily{"nemotron_h", "", false, read_nemotron_h},
    HfFamily{"nemotron-nas", "deci decilm", false, read_nemotron_nas},
    HfFamily{"ministral3", "", false, read_ministral3},
    HfFamily{"mimo", "", false, read_mimo},
    HfFamily{"olmo3", "", false, read_olmo3},
    HfFamily{"smollm3", "", true, read_smollm3},
    HfFamily{"seed_oss", "", false, read_seed_oss},
    HfFamily{"exaone4", "", false, read_exaone4},
    HfFamily{"internlm2", "", false, read_internlm2},
    HfFamily{"qwen", "", false, read_qwen},
    HfFamily{"stablelm", "", false, read_stablelm},
    HfFamily{"starcoder2", "", true, read_starcoder2},
    HfFamily{"phi", "", false, read_phi},
    HfFamily{"glm4_moe_lite", "", false, read_glm4_moe_lite},
    HfFamily{"mistral4", "", false, read_mistral4},
    HfFamily{"minicpm3", "", true, read_minicpm3},
    HfFamily{"olmoe", "", false, read_olmoe},
    HfFamily{"phimoe", "", false, read_phimoe},
    HfFamily{"dots1", "", false, read_dots1},
    HfFamily{"hy_v3", "", false, read_hy_v3},
    HfFamily{"bailing_moe_v2", "", false, read_bailing_moe_v2},
    HfFamily{"ernie4_5_moe", "", true, read_ernie4_5_moe},
    HfFamily{"deepseek_v4", "deepseek_ref", false, read_deepseek_v4},
    HfFamily{"gemma3n", "gemma3n_text", true, read_gemma3n},
    HfFamily{"phi3small", "", true, read_phi3small},
    HfFamily{"olmo", "", false, read_olmo},
    HfFamily{"apertus", "", false, read_apertus},
    HfFamily{"recurrent_gemma", "", true, read_recurrent_gemma},
    HfFamily{"rwkv", "", false, read_rwkv4},
    HfFamily{"rwkv5", "", false, read_rwkv5},
    HfFamily{"rwkv6", "", false, read_rwkv6},
    HfFamily{"rwkv7", "", false, read_rwkv7},
    HfFamily{"bailing_moe_linear", "bailing_moe_linear_v2", false, read_bailing_moe_linear},
    HfFamily{"bailing_hybrid", "bailing_moe_v2_5 bailing_moe_v3", false, read_bailing_hybrid},
    HfFamily{"longcat_flash_ngram", "", false, read_longcat_flash_ngram},
    HfFamily{"laguna", "", false, read_laguna},
    HfFamily{"afmoe", "", false, read_afmoe},
    HfFamily{"solar_open", "", false, read_solar_open},
    HfFamily{"mllama", "mllama_text_model", false, read_mllama},
    HfFamily{"bert", "roberta xlm-roberta camembert", true, read_bert},
    HfFamily{"modernbert", "", true, read_modernbert},
    HfFamily{"t5", "", true, read_t5},
    HfFamily{"mt5", "", false, read_t5},
    HfFamily{"umt5", "", false, read_t5},
    HfFamily{"whisper", "", true, read_whisper},
    HfFamily{"distilbert", "", true, read_distilbert},
    HfFamily{"mpnet", "", true, read_mpnet},
    HfFamily{"nomic_bert", "", true, read_nomic_bert},
    HfFamily{"electra", "", true, read_electra},
    HfFamily{"deberta", "", true, read_deberta},
    HfFamily{"deberta-v2", "", true, read_deberta_v2},
    HfFamily{"bart", "", true, read_bart},
    HfFamily{"mbart", "", true, read_mbart},
    HfFamily{"pegasus", "m2m_100 nllb", true, read_pegasus},
    HfFamily{"marian", "", true, read_marian},
    HfFamily{"t5gemma", "t5_gemma_module", true, read_t5gemma},
    HfFamily{"t5gemma2", "", true, nullptr,
             "its decoder attends to itself and to its encoder at once, by one set of projections"},
    HfFamily{"bitnet", "", true, nullptr, "a norm as wide as the MLP stands in it, which no layer here has"},
    HfFamily{"openelm", "", true, nullptr, "each of its layers has a number of heads of its own"},
    HfFamily{"zamba2", "zamba", true, nullptr, "its layers share blocks of attention, which are counted once"},
};

/// Whether one of the family's names satisfies `matches`.
template <class Match>
bool any_name(const HfFamily& family, const Match& matches) {
  if (matches(family.name)) return true;
  for (std::string_view rest = family.other_names; !rest.empty();) {
    const std::size_t space = std::min(rest.find(' '), rest.size());
    if (matches(rest.substr(0, space))) return true;
    rest.remove_prefix(std::min(space + 1, rest.size()));
  }
  return false;
}

template <class Match>
const HfFamily* find_family(const Match& matches) {
  const auto found = std::find_if(kFamilies.begin(), kFamilies.end(),
                                  [&](const HfFamily& family) { return any_name(family, matches); });
  return found == kFamilies.end() ? nullptr : &*found;
}

/// Letters and digits in small letters: GPTNeoX and gpt_neox are one name.
std::string plain(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z') out += static_cast<char>(c - 'A' + 'a');
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) out += c;
  }
  return out;
}

}  // namespace

std::span<const HfFamily> hf_families() { return kFamilies; }

const HfFamily* find_hf_family(std::string_view model_type) {
  return find_family([&](std::string_view name) { return name == model_type; });
}

const HfFamily* find_hf_family_of_class(std::string_view architecture) {
  const std::string wanted = plain(architecture);
  return find_family([&](std::string_view name) { return plain(name) == wanted; });
}

std::vector<std::string> known_hf_families() {
  std::vector<std::string> out;
  for (const HfFamily& family : kFamilies) {
    if (family.refused.empty()) out.emplace_back(family.name);
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace scalecalc
