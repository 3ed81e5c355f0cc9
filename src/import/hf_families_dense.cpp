// Families without experts. Each function says what its family adds to or changes in the common shape; what it does
// not mention is as in Llama: rmsnorm twice a layer, gated MLP, no biases, full attention.
#include "import/hf_read.h"

namespace scalecalc {
namespace {

constexpr std::int64_t kQwenHeads = 32;  // kv heads of the class, whatever the model's own

void gemma_common(HfReading& r, const ShapeDefaults& defaults) {
  read_shape(r, defaults);
  read_attention_bias(r, false);
}

/// The window is said by the pattern: every pattern-th layer is full.
void every_nth_full(HfReading& r, std::int64_t window, std::int64_t otherwise) {
  const std::int64_t pattern =
      r.keys.size_or({"sliding_window_pattern", "_sliding_window_pattern"}, otherwise, {1, 1000}).value;
  set_sliding(r, read_window(r, window), [&](std::int64_t i) { return (i + 1) % pattern != 0; });
}

}  // namespace

void read_llama(HfReading& r) {
  read_shape(r, {.max_seq = 2048});
  read_attention_bias(r, false);
  r.model.mlp_bias = r.keys.flag({"mlp_bias"}, false);
}

void read_mistral(HfReading& r) {
  read_shape(r, {.kv_heads = 8, .max_seq = 131072});
  set_sliding(r, read_window(r, 4096), [](std::int64_t) { return true; });
}

void read_qwen2(HfReading& r) {
  read_shape(r, {.kv_heads = kQwenHeads, .max_seq = 32768});
  r.model.qkv_bias = true;
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

}  // namespace scalecalc
