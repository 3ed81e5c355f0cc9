// More families without experts; what a function does not mention is as in Llama.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "import/hf_read.h"

namespace scalecalc {

void read_ministral3(HfReading& r) {
  read_shape(r, {.kv_heads = 8, .head_dim = 128, .vocab = 131072, .max_seq = 262144});
  set_sliding(r, read_window(r, 0), [](std::int64_t) { return true; });
}

void read_mimo(HfReading& r) {
  read_shape(r, {.max_seq = 32768});
  r.model.qkv_bias = r.keys.flag({"attention_bias"}, true);
  set_qwen_window(r);
  read_mtp(r);
}

void read_olmo3(HfReading& r) {
  read_olmo2(r);
  set_sliding(r, read_window(r, 4096), [](std::int64_t i) { return (i + 1) % 4 != 0; });
}

void read_smollm3(HfReading& r) {
  read_shape(r, {.kv_heads = 4, .max_seq = 32768});
  read_attention_bias(r, false);
  r.model.mlp_bias = r.keys.flag({"mlp_bias"}, false);
  const bool in_use = r.keys.flag({"use_sliding_window"}, false);
  if (!in_use && r.keys.has({"sliding_window"})) {
    r.keys.remark("sliding_window has no effect: use_sliding_window is false");
  }
  // Its layers slide where they have rotary embeddings.
  set_sliding(r, in_use ? read_window(r, 0) : Size{}, [](std::int64_t i) { return (i + 1) % 4 != 0; });
}

void read_seed_oss(HfReading& r) {
  read_shape(r, {.kv_heads = 8, .head_dim = 128, .max_seq = 524288});
  r.model.qkv_bias = r.keys.flag({"attention_bias"}, true);
  r.model.o_bias = r.keys.flag({"attention_out_bias"}, false);
  r.model.mlp_bias = r.keys.flag({"mlp_bias"}, false);
}

/// The pattern is a number or a word such as LLLG; the last layer is full whatever it says.
void read_exaone4(HfReading& r) {
  read_shape(r, {.max_seq = 2048});
  r.model.qk_norm = "head_dim";
  const ConfigNode* pattern = r.keys.find({"sliding_window_pattern"});
  std::string word = "LLLG";
  if (pattern != nullptr && !pattern->is_null()) {
    word = pattern->text;
    if (word.empty() || word.find_first_not_of("LG") != std::string::npos) {
      const auto every = r.keys.whole(*pattern, "sliding_window_pattern", {1, 1000});
      word = every ? std::string(static_cast<std::size_t>(every->value - 1), 'L') + "G" : "G";
    }
  }
  const auto period = static_cast<std::int64_t>(word.size());
  set_sliding(r, read_window(r, 4096), [&](std::int64_t i) {
    return i + 1 < r.model.layer_count() && word[static_cast<std::size_t>(i % period)] == 'L';
  });
}

void read_internlm2(HfReading& r) {
  read_shape(r, {.max_seq = 32768});
  r.model.qkv_bias = r.model.o_bias = r.keys.flag({"bias"}, false);
}

/// Of the first Qwen, intermediate_size is that of gate and up together.
void read_qwen(HfReading& r) {
  read_shape(r, {.max_seq = 32768});
  r.model.d_ff.value = std::max<std::int64_t>(1, r.model.d_ff.value / 2);
  r.model.qkv_bias = true;
  if (!r.keys.flag({"no_bias"}, true)) {
    r.keys.problems().add(r.keys.find({"no_bias"})->span,
                          "biases beside those of queries, keys and values are not read");
  }
}

void read_stablelm(HfReading& r) {
  read_shape(r, {.max_seq = 4096});
  r.model.qkv_bias = r.keys.flag({"use_qkv_bias"}, false);
  r.model.parallel_block = r.keys.flag({"use_parallel_residual"}, false);
  layernorm(r, r.model.parallel_block ? 1 : 2, true);
}

void read_starcoder2(HfReading& r) {
  read_shape(r, {.kv_heads = 2, .max_seq = 4096});
  all_biases(r);
  r.model.qkv_bias = r.model.o_bias = r.model.mlp_bias = r.keys.flag({"use_bias"}, true);
  set_sliding(r, read_window(r, 0), [](std::int64_t) { return true; });
}

void read_phi(HfReading& r) {
  read_shape(r, {.max_seq = 2048});
  all_biases(r);
  layernorm(r, 1, true);
  r.model.parallel_block = r.model.head_bias = true;
}

}  // namespace scalecalc
