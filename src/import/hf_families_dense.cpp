// Reads more families without experts; what a function does not mention is as in Llama.
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
namespace {

/// sliding_window_pattern: every so manieth layer is full, or a word of L and G. `last_full`: so is the last one.
void set_exaone_window(HfReading& r, bool last_full) {
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
    return (!last_full || i + 1 < r.model.layer_count()) && word[static_cast<std::size_t>(i % period)] == 'L';
  });
}

}  // namespace

void read_exaone4(HfReading& r) {
  read_shape(r, {.max_seq = 2048});
  r.model.qk_norm = "head_dim";
  set_exaone_window(r, true);
}

namespace {

/// sliding_windows: of each layer the tokens it looks back, 0 or null for all of them. Windows of one size are read.
void set_listed_windows(HfReading& r, const ConfigNode& listed) {
  HfArchitecture& m = r.model;
  if (listed.items.size() != m.layers.size()) {
    r.keys.problems().add(listed.span, fmt::format("'sliding_windows' lists {} layers, and the model has {}",
                                                   listed.items.size(), m.layers.size()));
    return;
  }
  Size window;
  std::vector<bool> slides;
  for (const ConfigNode& item : listed.items) {
    const Size own = item.is_null() ? Size{} : r.keys.whole(item, "sliding_windows", {0, 1e9}).value_or(Size{});
    slides.push_back(own.value > 0);
    if (window.value == 0) window = own;
    if (own.value == 0 || own.value == window.value) continue;
    r.keys.problems().add(item.span,
                          fmt::format("'sliding_windows' has a window of {} beside one of {}", own.value, window.value),
                          "windows of one size are read, and 0 for layers without");
    return;
  }
  set_sliding(r, window, [&](std::int64_t i) { return slides[static_cast<std::size_t>(i)]; });
  for (std::size_t i = 0; i < slides.size() && window.value > 0; ++i) {
    if (slides[i] || m.layers[i].mixer != "sliding") continue;
    r.keys.problems().add(listed.items[i].span,
                          fmt::format("layer {} slides by 'layer_types', and 'sliding_windows' gives it no window", i));
  }
}

/// is_moe_layer: of each layer whether it has experts.
std::optional<std::vector<bool>> listed_experts(HfReading& r) {
  const ConfigNode* listed = r.keys.list({"is_moe_layer"});
  if (listed == nullptr) return std::nullopt;
  if (listed->items.size() != r.model.layers.size()) {
    r.keys.problems().add(listed->span, fmt::format("'is_moe_layer' lists {} layers, and the model has {}",
                                                    listed->items.size(), r.model.layers.size()));
    return std::nullopt;
  }
  std::vector<bool> out;
  for (const ConfigNode& item : listed->items) {
    const bool word = item.kind == ConfigNode::Kind::kScalar && !item.quoted;
    const bool yes = word && (item.text == "true" || item.text == "1");
    if (!yes && !(word && (item.text == "false" || item.text == "0"))) {
      r.keys.problems().add(item.span,
                            fmt::format("'is_moe_layer' must list true or false, not {}", in_quotes(value_text(item))),
                            "read: true, false, 1, 0");
    }
    out.push_back(yes);
  }
  return out;
}

/// Its modules are dense and look at all tokens, unless mtp_layer_types says that they slide (vLLM exaone_moe.py).
void read_exaone_mtp(HfReading& r) {
  read_mtp(r);
  if (r.model.mtp_layers.value == 0) return;
  r.model.mtp_kind = {.mixer = "full", .ffn = "dense"};
  const ConfigNode* types = r.keys.list({"mtp_layer_types"});
  if (types == nullptr || types->items.empty()) return;
  const std::string& first = types->items.front().text;
  for (const ConfigNode& item : types->items) {
    if (item.text == first && (first == "full_attention" || first == "sliding_attention")) continue;
    r.keys.problems().add(item.span, fmt::format("'mtp_layer_types' has {}", in_quotes(value_text(item))),
                          "modules of one kind are read: full_attention, sliding_attention");
    return;
  }
  if (first != "sliding_attention") return;
  r.model.mtp_kind.mixer = "sliding";
  if (r.model.window.value > 0) return;
  r.keys.problems().add(types->span, "'mtp_layer_types' has sliding modules, and the model has no window");
}

}  // namespace

/// K-EXAONE: EXAONE 4's attention, and experts as DeepSeek-V3 has them.
void read_exaone_moe(HfReading& r) {
  read_shape(r, {.max_seq = 2048});
  r.model.qk_norm = "head_dim";
  if (const ConfigNode* windows = r.keys.list({"sliding_windows"})) {
    r.keys.find({"sliding_window"});  // the list goes before them
    r.keys.find({"sliding_window_pattern"});
    set_listed_windows(r, *windows);
  } else {
    set_exaone_window(r, false);
  }
  if (!read_moe(r, {.experts = 64, .top_k = 8, .d_ff = 1024})) return;
  read_shared_experts(r, 1);
  read_groups(r, 1, 1);
  r.model.moe->router_correction_bias = true;
  const auto listed = listed_experts(r);
  const ConfigNode* ends = r.keys.find({"first_last_k_dense_replace"});
  if (ends != nullptr && !ends->is_null() && !r.keys.has({"is_moe_layer"}) && !r.keys.has({"mlp_layer_types"})) {
    r.keys.problems().add(ends->span,
                          fmt::format("'first_last_k_dense_replace' is {}, and nothing says which layers have experts",
                                      value_text(*ends)),
                          "read: is_moe_layer, mlp_layer_types, first_k_dense_replace");
  }
  const std::int64_t dense = r.keys.size_or({"first_k_dense_replace"}, 1, {0, 1e4}).value;
  set_moe_layers(r, [&](std::int64_t i) { return listed ? (*listed)[static_cast<std::size_t>(i)] : i >= dense; });
  read_exaone_mtp(r);
}

void read_internlm2(HfReading& r) {
  read_shape(r, {.max_seq = 32768});
  r.model.qkv_bias = r.model.o_bias = r.keys.flag({"bias"}, false);
  r.model.reward = HfReward::kPlain;
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
  // A norm without bias for each head, so as many weights as the projections are wide.
  if (r.keys.flag({"qk_layernorm"}, false)) r.model.qk_norm = "full";
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

void read_glm(HfReading& r) {
  read_shape(r, {.kv_heads = 2, .head_dim = 128, .max_seq = 131072});
  r.model.qkv_bias = r.keys.flag({"attention_bias"}, true);
}

void read_glm4(HfReading& r) {
  read_shape(r, {.kv_heads = 2, .head_dim = 128, .max_seq = 131072});
  r.model.qkv_bias = r.keys.flag({"attention_bias"}, false);
  r.model.norms_per_layer = 4;
}

void read_glm4v(HfReading& r) {
  read_glm4(r);
  r.model.qkv_bias = true;
}

/// The first names of GLM; the bare class has the head.
void read_chatglm(HfReading& r) {
  HfArchitecture& m = r.model;
  read_shape(r, {.max_seq = 2048});
  const bool grouped = r.keys.flag({"multi_query_attention"}, false);
  const HfNames groups{"multi_query_group_num"};
  if (grouped) m.kv_heads = r.keys.size_or(groups, 1);
  if (!grouped) r.keys.find(groups);
  const bool bias = r.keys.flag({"add_bias_linear"}, false);
  m.o_bias = m.mlp_bias = bias;
  m.qkv_bias = r.keys.flag({"add_qkv_bias"}, false) || bias;
  m.final_norm = r.keys.flag({"post_layer_norm"}, true);
  if (!r.keys.flag({"rmsnorm"}, true)) layernorm(r, 2, true);
  m.headed_model = true;
}

void read_ernie4_5(HfReading& r) {
  read_shape(r, {.head_dim = 128, .max_seq = 131072});
  r.model.qkv_bias = r.model.o_bias = r.model.mlp_bias = r.keys.flag({"use_bias"}, false);
}

void read_hunyuan_dense(HfReading& r) {
  read_shape(r, {.max_seq = 2048});
  read_hunyuan_attention(r);
}

void read_arcee(HfReading& r) {
  read_shape(r, {.max_seq = 4096});
  read_attention_bias(r, false);
  r.model.mlp_bias = r.keys.flag({"mlp_bias"}, false);
  r.model.gated = false;
}

void read_internlm(HfReading& r) {
  read_shape(r, {.max_seq = 2048});
  r.model.qkv_bias = r.model.o_bias = r.keys.flag({"bias"}, true);
}

/// InternLM 3: Llama, with no bias in what is released.
void read_internlm3(HfReading& r) {
  read_shape(r, {.max_seq = 32768});
  for (const HfNames& names : {HfNames{"bias"}, HfNames{"qkv_bias"}}) {
    if (!r.keys.flag(names, false)) continue;
    r.keys.problems().add(r.keys.find(names)->span, fmt::format("'{}' is read as false only", *names.begin()));
  }
}

/// Helium: Llama, whose biases of attention leave out the output.
void read_helium(HfReading& r) {
  read_shape(r, {.head_dim = 128, .max_seq = 4096});
  r.model.qkv_bias = r.keys.flag({"attention_bias"}, false);
  r.model.mlp_bias = r.keys.flag({"mlp_bias"}, false);
}

void read_mpt(HfReading& r) {
  HfArchitecture& m = r.model;
  read_width(r, {.max_seq = 2048});
  read_layer_count(r);
  read_heads(r, {});
  const Size times = r.keys.size_or({"expansion_ratio"}, 4, {1, 64});
  m.d_ff = {times.value * m.d_model.value, m.d_model.where};
  m.gated = false;
  const bool bias = !r.keys.flag({"no_bias"}, true);
  m.qkv_bias = m.o_bias = m.mlp_bias = bias;
  layernorm(r, 2, bias);
  // Rotary and linear biases of positions have no weights, and either turns the table off.
  const bool learned = r.keys.flag({"learned_pos_emb"}, true);
  if (learned && !r.keys.flag({"attn_config.alibi", "alibi"}, false) && !r.keys.flag({"attn_config.rope"}, false)) {
    m.learned_positions = m.max_seq;
  }
  if (r.keys.flag({"attn_config.qk_ln"}, false)) {
    r.keys.problems().add(r.keys.find({"attn_config.qk_ln"})->span, "norms of queries and keys (qk_ln) are not read");
  }
}

void read_gpt_bigcode(HfReading& r) {
  HfArchitecture& m = r.model;
  read_shape(r, {.max_seq = 1024, .d_ff = DffRule::kFourTimes});
  all_biases(r);
  if (r.keys.flag({"multi_query"}, true)) m.kv_heads = {1, m.heads.where};
  m.learned_positions = m.max_seq;
}

namespace {

/// [[names], repeats]
void add_repeated(HfReading& r, const ConfigNode& group, std::vector<const ConfigNode*>& names) {
  if (group.items.size() != 2 || group.items[0].items.empty()) {
    r.keys.problems().add(group.span, "'attention_types' must list [[names], repeats]");
    return;
  }
  const auto times = r.keys.whole(group.items[1], "attention_types", {1, 10000});
  for (std::int64_t i = 0; times && i < times->value; ++i) {
    for (const ConfigNode& item : group.items[0].items) names.push_back(&item);
  }
}

}  // namespace

/// attention_layers names each layer; attention_types, in the files, repeats a few names.
void read_gpt_neo(HfReading& r) {
  HfArchitecture& m = r.model;
  read_shape(r, {.max_seq = 2048, .d_ff = DffRule::kFourTimes});
  all_biases(r);
  m.qkv_bias = false;
  m.learned_positions = m.max_seq;
  std::vector<const ConfigNode*> names;
  const ConfigNode* listed = r.keys.list({"attention_layers"});
  if (listed != nullptr) {
    for (const ConfigNode& item : listed->items) names.push_back(&item);
  }
  const ConfigNode* types = r.keys.list({"attention_types"});
  if (listed == nullptr && types != nullptr) {
    for (const ConfigNode& group : types->items) add_repeated(r, group, names);
  }
  if (names.size() != m.layers.size()) {
    r.keys.problems().add(
        types == nullptr ? r.keys.span() : types->span,
        fmt::format("'attention_types' names {} layers, and the model has {}", names.size(), m.layers.size()));
    return;
  }
  const Size window = r.keys.size_or({"window_size"}, 256, {1, 1e9});
  for (const ConfigNode* name : names) {
    if (name->text == "global" || name->text == "local") continue;
    r.keys.problems().add(name->span,
                          fmt::format("layer type {} is not known of family 'gpt_neo'", in_quotes(name->text)),
                          "known: global, local");
  }
  set_sliding(r, window, [&](std::int64_t i) { return names[static_cast<std::size_t>(i)]->text == "local"; });
}

void share_keys(HfReading& r, std::int64_t otherwise) {
  HfArchitecture& m = r.model;
  const Size shared = otherwise > 0 ? r.keys.size_or({"num_kv_shared_layers"}, otherwise, {0, 1e4})
                                    : r.keys.size_or_none({"num_kv_shared_layers"}, {0, 1e4});
  const bool wide = r.keys.flag({"use_double_wide_mlp"}, false);
  if (shared.value >= m.layer_count()) {
    r.keys.problems().add(shared.where, fmt::format("{} of {} layers share keys and values: none is left that has them",
                                                    shared.value, m.layer_count()));
    return;
  }
  for (std::int64_t i = m.layer_count() - shared.value; i < m.layer_count(); ++i) {
    HfLayer& layer = m.layers[static_cast<std::size_t>(i)];
    layer.reuse = true;
    if (wide) layer.d_ff = 2 * m.d_ff.value;
  }
}

namespace {

/// Experts beside the dense MLP, each branch between norms of its own.
void gemma_experts(HfReading& r) {
  HfArchitecture& m = r.model;
  if (!r.keys.flag({"enable_moe_block"}, false)) return;
  if (!read_moe(r, {})) return;
  m.moe->shared_experts = {1, m.d_ff.where};
  m.moe->shared_d_ff = m.d_ff;
  m.moe->branch_norms = {3, m.d_ff.where};
  m.moe->router_scale = m.moe->beside_mlp = true;
  set_moe_layers(r, [](std::int64_t) { return true; });
}

}  // namespace

void read_gemma4(HfReading& r) {
  HfArchitecture& m = r.model;
  read_shape(r, {.heads = 8, .kv_heads = 4, .head_dim = 256, .vocab = 262144, .max_seq = 131072});
  read_attention_bias(r, false);
  m.activation = "gelu";
  m.norms_per_layer = 4;
  m.qk_norm = "head_dim";
  m.layer_scale = true;
  m.local = HfLocal{m.heads, m.kv_heads, m.head_dim, m.head_dim};
  m.head_dim = r.keys.size_or({"global_head_dim"}, 512);
  m.shared_kv = r.keys.flag({"attention_k_eq_v"}, false);
  const auto global = r.keys.size({"num_global_key_value_heads"});
  if (m.shared_kv && global) m.kv_heads = *global;
  if (m.shared_kv && !global) {
    r.keys.defaulted("num_global_key_value_heads", std::to_string(m.kv_heads.value), "num_key_value_heads");
  }
  if (!r.keys.has({"layer_types"})) r.keys.defaulted("layer_types", "every sixth layer full", kClassDefault);
  set_sliding(r, read_window(r, 512), [&](std::int64_t i) { return (i + 1) % 6 != 0 && i + 1 < m.layer_count(); });
  share_keys(r, 0);
  gemma_experts(r);
  const Size width = r.keys.says_none({"hidden_size_per_layer_input"})
                         ? Size{}
                         : r.keys.size_or({"hidden_size_per_layer_input"}, 256, {0, kSizeRange.max});
  const Size vocab = r.keys.size_or({"vocab_size_per_layer_input"}, 262144);
  if (width.value > 0) m.per_layer = HfPerLayer{width, vocab};
}

}  // namespace scalecalc
