// Reads families with routed experts and attention over the whole sequence or a window.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "import/hf_class.h"
#include "import/hf_read.h"

namespace scalecalc {
namespace {

/// moe_layer_freq: every n-th layer has experts, or a list of 0 and 1 for each layer.
std::vector<bool> read_moe_frequency(HfReading& r) {
  const HfNames names{"moe_layer_freq"};
  std::vector<bool> out(r.model.layers.size(), true);
  const ConfigNode* found = r.keys.find(names);
  if (found != nullptr && found->kind == ConfigNode::Kind::kSequence) {
    if (found->items.size() != out.size()) {
      r.keys.problems().add(found->span, fmt::format("'moe_layer_freq' lists {} layers, and the model has {}",
                                                     found->items.size(), out.size()));
      return out;
    }
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto flag = r.keys.whole(found->items[i], "moe_layer_freq", {0, 1});
      out[i] = flag && flag->value == 1;
    }
    return out;
  }
  const std::int64_t every = r.keys.size_or(names, 1, {1, 1e4}).value;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::int64_t>(i) % every == 0;
  return out;
}

/// topk_method noaux_tc adds a bias to each expert's score.
bool corrects_scores(HfReading& r, const char* otherwise) {
  if (!r.keys.has({"topk_method"})) r.keys.defaulted("topk_method", otherwise, kClassDefault);
  const std::string method = r.keys.text_or({"topk_method"}, otherwise);
  if (method != "noaux_tc" && method != "greedy" && method != "group_limited_greedy") {
    r.keys.problems().add(r.keys.find({"topk_method"})->span,
                          fmt::format("topk_method {} is not known", in_quotes(method)),
                          "known: noaux_tc, greedy, group_limited_greedy");
  }
  return method == "noaux_tc";
}

/// indexer_types: layers with an indexer of their own ("full"), and those that take an earlier one's choice ("shared").
void read_indexer_layers(HfReading& r) {
  const ConfigNode* types = r.keys.list({"indexer_types"});
  const ConfigNode* every = r.keys.find({"index_topk_freq"});
  if (types == nullptr) {
    if (every == nullptr || every->is_null() || every->text == "1") {
      return r.keys.defaulted("indexer_types", "full in every layer", kClassDefault);
    }
    r.keys.problems().add(every->span, fmt::format("'index_topk_freq' is {}, and no 'indexer_types' says which layers "
                                                   "have an indexer",
                                                   value_text(*every)));
    return;
  }
  if (types->items.size() != r.model.layers.size()) {
    r.keys.problems().add(types->span, fmt::format("'indexer_types' lists {} layers, and the model has {}",
                                                   types->items.size(), r.model.layers.size()));
    return;
  }
  for (std::size_t i = 0; i < types->items.size(); ++i) {
    const ConfigNode& type = types->items[i];
    r.model.layers[i].reuse = type.text == "shared";
    if (type.text != "shared" && type.text != "full") {
      r.keys.problems().add(type.span, fmt::format("indexer type {} is not known", in_quotes(type.text)),
                            "known: full, shared");
    } else if (i == 0 && type.text == "shared") {
      r.keys.problems().add(type.span, "the first layer has no indexer before it to share");
    }
  }
}

void deepseek_v3_common(HfReading& r) {
  read_mla_shape(r, {});
  if (!read_moe(r, {.experts = 256, .top_k = 8, .d_ff = 2048})) return;
  read_shared_experts(r, 1);
  dense_prefix(r, 3);
  r.model.moe->router_correction_bias = corrects_scores(r, "noaux_tc");
  read_groups(r, 8, 4);
}

}  // namespace

void dense_prefix(HfReading& r, std::int64_t otherwise) {
  const std::int64_t first = r.keys.size_or({"first_k_dense_replace"}, otherwise, {0, 1e4}).value;
  const std::vector<bool> frequency = read_moe_frequency(r);
  set_moe_layers(r, [&](std::int64_t i) { return i >= first && frequency[static_cast<std::size_t>(i)]; });
}

void read_groups(HfReading& r, std::int64_t groups, std::int64_t picked) {
  if (!r.model.moe) return;
  const Size all = r.keys.size_or({"n_group"}, groups, {0, 1e4});
  const Size some = r.keys.size_or({"topk_group"}, picked, {0, 1e4});
  if (some.value <= 0 || some.value >= all.value) return;
  r.model.moe->n_group = all;
  r.model.moe->topk_group = some;
}

void read_mla_shape(HfReading& r, const MlaDefaults& d) {
  HfArchitecture& m = r.model;
  const ShapeDefaults defaults{.max_seq = d.max_seq};
  read_width(r, defaults);
  read_layer_count(r);
  m.heads = r.keys.required({"num_attention_heads"}, "attention heads");
  read_d_ff(r, DffRule::kRequired);
  HfMla mla;
  const HfNames query_rank{"q_lora_rank"};
  if (r.keys.is_null(query_rank)) {
    r.keys.remark("q_lora_rank is null: queries are projected directly");
  } else {
    mla.q_lora_rank = r.keys.size_or(query_rank, d.q_lora_rank);
  }
  mla.kv_lora_rank = r.keys.size_or({"kv_lora_rank"}, d.kv_lora_rank);
  mla.qk_nope_head_dim = r.keys.size_or({"qk_nope_head_dim"}, d.qk_nope_head_dim);
  mla.qk_rope_head_dim = r.keys.size_or({"qk_rope_head_dim"}, d.qk_rope_head_dim);
  mla.v_head_dim = r.keys.size_or({"v_head_dim"}, d.v_head_dim);
  m.mla = mla;
  for (HfLayer& layer : m.layers) layer.mixer = "mla";
  if (r.keys.flag({"attention_bias"}, false)) {
    r.keys.problems().add(r.keys.find({"attention_bias"})->span, "biases of latent attention are not read");
  }
}

/// Youtu-LLM: dense layers with latent attention.
void read_youtu_llm(HfReading& r) {
  read_mla_shape(r, {.max_seq = 131072});
  r.model.mlp_bias = r.keys.flag({"mlp_bias"}, false);
}

void read_mixtral(HfReading& r) {
  read_shape(r, {.kv_heads = 8, .max_seq = 131072});
  set_sliding(r, read_window(r, 0), [](std::int64_t) { return true; });
  if (read_moe(r, {.experts = 8, .top_k = 2})) set_moe_layers(r, [](std::int64_t) { return true; });
}

void read_qwen2_moe(HfReading& r) {
  read_shape(r, {.kv_heads = 16, .max_seq = 32768, .d_ff = DffRule::kOptional});
  r.model.qkv_bias = r.keys.flag({"qkv_bias"}, true);
  const bool in_use = r.keys.flag({"use_sliding_window"}, false);
  const Size window = in_use ? read_window(r, 4096) : Size{};
  const std::int64_t last = in_use ? r.keys.size_or({"max_window_layers"}, 28, {0, 1e6}).value : 0;
  set_sliding(r, window, [&](std::int64_t i) { return i < last && i % 2 == 0; });
  if (!read_moe(r, {.experts = 60, .top_k = 4, .d_ff = 1408})) return;
  read_shared_width(r, {"shared_expert_intermediate_size"}, 5632);
  r.model.moe->shared_gate = true;
  set_qwen_moe_layers(r);
}

void read_qwen3_moe(HfReading& r) {
  read_shape(r, {.kv_heads = 4, .max_seq = 32768, .d_ff = DffRule::kOptional});
  read_attention_bias(r, false);
  r.model.qk_norm = "head_dim";
  set_qwen_window(r);
  if (read_moe(r, {.experts = 128, .top_k = 8, .d_ff = 768})) set_qwen_moe_layers(r);
}

void read_deepseek(HfReading& r) {
  read_shape(r, {.max_seq = 2048});
  read_attention_bias(r, false);
  if (!read_moe(r, {})) return;
  read_shared_experts(r, 0);
  dense_prefix(r, 0);
}

void read_deepseek_v2(HfReading& r) {
  if (!r.keys.flag({"use_mla"}, true)) {
    for (const std::string_view key :
         {"kv_lora_rank", "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"}) {
      r.keys.find({key});
    }
    read_deepseek(r);
    read_groups(r, 1, 1);
    return;
  }
  read_mla_shape(r, {.max_seq = 2048});
  if (!read_moe(r, {})) return;
  read_shared_experts(r, 2);
  dense_prefix(r, 0);
  r.model.moe->router_correction_bias = corrects_scores(r, "greedy");
  read_groups(r, 1, 1);
}

void read_deepseek_v3(HfReading& r) {
  deepseek_v3_common(r);
  read_mtp(r);
}

void read_deepseek_v32(HfReading& r) {
  deepseek_v3_common(r);
  r.model.indexer =
      HfIndexer{r.keys.required({"index_n_heads"}, "heads of the indexer"),
                r.keys.required({"index_head_dim"}, "head width of the indexer"), r.keys.size_or({"index_topk"}, 2048)};
  if (const ConfigNode* types = r.keys.list({"layer_types"})) {
    for (const ConfigNode& type : types->items) {
      if (type.text == "deepseek_sparse_attention") continue;
      r.keys.problems().add(type.span, "'layer_types' is read as deepseek_sparse_attention only");
    }
  }
  read_indexer_layers(r);
  read_mtp(r);
  r.model.mtp_kind.reuse = false;  // a module chooses for itself
}

void read_glm4_moe(HfReading& r) {
  read_shape(r, {.kv_heads = 8, .max_seq = 131072});
  r.model.qkv_bias = r.keys.flag({"attention_bias"}, false);  // the output projection never has one
  if (r.keys.flag({"use_qk_norm"}, false)) r.model.qk_norm = "head_dim";
  if (!read_moe(r, {.experts = 128, .top_k = 8, .d_ff = 1408})) return;
  read_shared_experts(r, 1);
  dense_prefix(r, 1);
  r.model.moe->router_correction_bias = true;
  read_groups(r, 1, 1);
  read_mtp(r);
}

void read_gpt_oss(HfReading& r) {
  read_shape(r, {.kv_heads = 8, .head_dim = 64, .max_seq = 131072});
  read_attention_bias(r, true);
  r.model.sinks = true;
  set_sliding(r, read_window(r, 128), [](std::int64_t i) { return i % 2 == 0; });
  if (!read_moe(r, {.experts = 128, .top_k = 4})) return;
  r.model.moe->router_bias = r.model.moe->expert_bias = true;
  set_moe_layers(r, [](std::int64_t) { return true; });
}

void read_llama4(HfReading& r) {
  HfArchitecture& m = r.model;
  read_shape(r, {.kv_heads = 8, .head_dim = 128, .max_seq = 131072});
  read_attention_bias(r, false);
  r.keys.find({"use_qk_norm"});  // these norms have no weights
  const HfNames chunk_size{"attention_chunk_size"};
  const Size chunk = r.keys.says_none(chunk_size) ? Size{} : r.keys.size_or(chunk_size, 8192, {1, 1e9});
  const std::int64_t interval = r.keys.size_or({"no_rope_layer_interval"}, 4, {1, 1e4}).value;
  // no_rope_layers marks with 0 the layers without rotary embedding, which attend to the whole sequence.
  const ConfigNode* rope = r.keys.list({"no_rope_layers"});
  const bool by_list = rope != nullptr && !rope->items.empty();
  if (by_list && rope->items.size() != m.layers.size()) {
    r.keys.problems().add(rope->span, fmt::format("'no_rope_layers' lists {} layers, and the model has {}",
                                                  rope->items.size(), m.layers.size()));
    return;
  }
  const auto listed = read_layer_types(r, {"layer_types"}, "");
  for (std::size_t i = 0; i < m.layers.size(); ++i) {
    const bool full = by_list ? rope->items[i].text == "0" : (static_cast<std::int64_t>(i) + 1) % interval == 0;
    m.layers[i].mixer = listed ? (*listed)[i] : full || chunk.value == 0 ? "full" : "chunked";
  }
  if (m.has_mixer("chunked")) m.chunk = chunk;
  if (m.has_mixer("chunked") && chunk.value == 0) {
    r.keys.problems().add(r.keys.span(), "the file has chunked layers and no 'attention_chunk_size'");
  }
  if (!read_moe(r, {.experts = 16, .top_k = 1})) return;
  // intermediate_size is the width of an expert and of the shared expert; dense layers have a key of their own.
  m.moe->shared_experts = {1, m.moe->d_ff.where};
  m.moe->shared_d_ff = m.moe->d_ff;
  const std::int64_t step = r.keys.size_or({"interleave_moe_layer_step"}, 1, {1, 1e4}).value;
  const std::vector<std::int64_t> chosen = read_layer_numbers(r, {"moe_layers"});
  set_moe_layers(r, [&](std::int64_t i) {
    return chosen.empty() ? (i + 1) % step == 0 : std::find(chosen.begin(), chosen.end(), i) != chosen.end();
  });
  r.keys.find({"intermediate_size_mlp"});  // also where no layer is dense
  m.d_ff = m.has_ffn("dense") ? r.keys.size_or({"intermediate_size_mlp"}, 16384) : Size{};
}

void read_minimax_m2(HfReading& r) {
  read_shape(r, {.kv_heads = 8, .head_dim = 128, .max_seq = 196608});
  if (r.keys.flag({"use_qk_norm"}, true)) {
    r.model.qk_norm = "full";
    const ConfigNode* type = r.keys.find({"qk_norm_type"});
    if (type != nullptr && !type->is_null() && type->text != "per_layer") {
      r.keys.problems().add(type->span, "'qk_norm_type' is read as per_layer only");
    }
  }
  if (const ConfigNode* types = r.keys.list({"attn_type_list"})) {
    for (const ConfigNode& type : types->items) {
      if (type.text != "1") r.keys.problems().add(type.span, "'attn_type_list' is read as full attention (1) only");
    }
  }
  if (!read_moe(r, {.experts = 256, .top_k = 8})) return;
  r.model.moe->router_correction_bias = r.keys.flag({"use_routing_bias"}, true);
  read_shared_width(r, {"shared_intermediate_size"}, 0);
  set_moe_layers(r, [](std::int64_t) { return true; });
  read_mtp(r);
}

void read_mimo_v2_flash(HfReading& r) {
  HfArchitecture& m = r.model;
  read_shape(r, {.max_seq = 262144});
  m.v_head_dim = r.keys.required({"v_head_dim"}, "width of a value head");
  m.local = HfLocal{r.keys.required({"swa_num_attention_heads"}, "heads of a sliding layer"),
                    r.keys.required({"swa_num_key_value_heads"}, "kv heads of a sliding layer"),
                    r.keys.required({"swa_head_dim"}, "head width of a sliding layer"),
                    r.keys.required({"swa_v_head_dim"}, "width of a value head of a sliding layer")};
  read_attention_bias(r, false);
  const ConfigNode* pattern = r.keys.list({"hybrid_layer_pattern"});  // 1 marks the layers that slide
  if (pattern == nullptr || pattern->items.size() != m.layers.size()) {
    r.keys.problems().add(pattern == nullptr ? r.keys.span() : pattern->span,
                          fmt::format("'hybrid_layer_pattern' must list each of the {} layers", m.layers.size()));
    return;
  }
  const Size window = r.keys.required({"sliding_window", "sliding_window_size"}, "tokens a sliding layer looks back");
  r.keys.find({"attention_chunk_size"});  // its files repeat the window under this name
  set_sliding(r, window, [&](std::int64_t i) { return pattern->items[static_cast<std::size_t>(i)].text == "1"; });
  m.local_sinks = r.keys.flag({"add_swa_attention_sink_bias"}, false);
  m.sinks = r.keys.flag({"add_full_attention_sink_bias"}, false);
  if (!read_moe(r, {})) return;
  read_shared_experts(r, 0);
  dense_prefix(r, 0);
  m.moe->router_correction_bias = corrects_scores(r, "greedy");
  read_groups(r, 1, 1);
}

void read_dbrx(HfReading& r) {
  read_shape(r, {.kv_heads = 1, .max_seq = 2048});
  layernorm(r, 2, false);
  if (read_moe(r, {.experts = 4, .top_k = 1})) set_moe_layers(r, [](std::int64_t) { return true; });
}

void read_grok(HfReading& r) {
  read_shape(r, {.kv_heads = 8, .head_dim = 128, .max_seq = 8192});
  r.model.norms_per_layer = 4;
  if (read_moe(r, {.experts = 8, .top_k = 2})) set_moe_layers(r, [](std::int64_t) { return true; });
}

void read_glm4_moe_lite(HfReading& r) {
  read_mla_shape(r, {202752, 768, 512, 192, 64, 256});
  if (!read_moe(r, {.experts = 64, .top_k = 4, .d_ff = 1536})) return;
  read_shared_experts(r, 1);
  dense_prefix(r, 1);
  r.model.moe->router_correction_bias = true;
  read_groups(r, 1, 1);
  read_mtp(r);
}

void read_mistral4(HfReading& r) {
  read_mla_shape(r, {1048576, 1024, 256, 64, 64, 128});
  if (!read_moe(r, {.experts = 128, .top_k = 4, .d_ff = 2048})) return;
  read_shared_experts(r, 1);
  dense_prefix(r, 0);
  read_groups(r, 1, 1);
}

void read_minicpm3(HfReading& r) {
  const Size width = r.keys.required({"hidden_size"}, "width of the model");
  const Size heads = r.keys.required({"num_attention_heads"}, "attention heads");
  const std::int64_t v_head_dim = std::max<std::int64_t>(1, width.value / heads.value);
  read_mla_shape(r, {32768, 768, 256, 64, 32, v_head_dim});
}

void read_olmoe(HfReading& r) {
  read_shape(r, {.max_seq = 4096});
  read_attention_bias(r, false);
  r.model.qk_norm = "full";
  if (read_moe(r, {.experts = 64, .top_k = 8})) set_moe_layers(r, [](std::int64_t) { return true; });
}

void read_phimoe(HfReading& r) {
  read_shape(r, {.kv_heads = 8, .max_seq = 131072});
  read_attention_bias(r, false);
  r.model.head_bias = r.keys.flag({"lm_head_bias"}, false);
  layernorm(r, 2, true);
  set_sliding(r, read_window(r, 0), [](std::int64_t) { return true; });
  if (read_moe(r, {.experts = 16, .top_k = 2})) set_moe_layers(r, [](std::int64_t) { return true; });
}

namespace {

/// Experts behind a dense prefix, shared ones beside them, a bias on each expert's score, norms of queries and keys.
void prefixed_experts(HfReading& r, const MoeDefaults& defaults, std::int64_t shared) {
  r.model.qk_norm = "head_dim";
  if (!read_moe(r, defaults)) return;
  read_shared_experts(r, shared);
  dense_prefix(r, 1);
  r.model.moe->router_correction_bias = true;
  read_groups(r, 1, 1);
  read_mtp(r);
}

}  // namespace

void read_dots1(HfReading& r) {
  read_shape(r, {.max_seq = 2048});
  read_attention_bias(r, false);
  prefixed_experts(r, {}, 0);
}

void read_hy_v3(HfReading& r) {
  read_shape(r, {.kv_heads = 8, .head_dim = 128, .max_seq = 262144});
  read_attention_bias(r, false);
  prefixed_experts(r, {.experts = 192, .top_k = 8, .d_ff = 1536}, 1);
}

void read_bailing_moe_v2(HfReading& r) {
  read_shape(r, {.max_seq = 32768});
  r.model.qkv_bias = r.keys.flag({"use_qkv_bias"}, false);
  r.model.o_bias = r.keys.flag({"use_bias"}, false);
  prefixed_experts(r, {.experts = 256, .top_k = 8, .d_ff = 512}, 1);
  if (!r.keys.flag({"use_qk_norm"}, true)) r.model.qk_norm = "none";
  if (r.model.moe && !r.keys.flag({"moe_router_enable_expert_bias"}, true)) r.model.moe->router_correction_bias = false;
}

/// Ring-linear, arXiv:2510.19338 section 2: lightning attention with norms of queries and keys, and full attention at
/// the end of each group of layers.
void read_bailing_moe_linear(HfReading& r) {
  HfArchitecture& m = r.model;
  read_bailing_moe_v2(r);
  if (r.keys.has({"kv_lora_rank"})) {
    r.keys.problems().add(r.keys.find({"kv_lora_rank"})->span, "latent beside linear attention is not read");
  }
  if (m.qkv_bias || m.o_bias) r.keys.problems().add(r.keys.span(), "biases of linear attention are not read");
  const Size group = r.keys.size_or({"layer_group_size"}, 1, {1, 1e4});
  if (m.layer_count() % group.value != 0) {
    r.keys.problems().add(group.where,
                          fmt::format("{} layers are no whole number of groups of {}", m.layer_count(), group.value));
  }
  const auto listed = read_layer_types(r, {"layer_types"}, "lightning");
  for (std::size_t i = 0; i < m.layers.size(); ++i) {
    const bool full = (static_cast<std::int64_t>(i) + 1) % group.value == 0;
    m.layers[i].mixer = listed ? (*listed)[i] : full ? "full" : "lightning";
  }
  m.lightning = HfLightning{m.heads, m.head_dim, m.qk_norm != "none"};
  if (!m.moe) return;
  const auto shared = r.keys.size({"moe_shared_expert_intermediate_size"});
  if (shared) m.moe->shared_d_ff = {shared->value * m.moe->shared_experts.value, shared->where};
}

namespace {

/// layer_group_size: every so manieth layer is latent attention, and so are those behind the last whole group; or a
/// list with a 1 for each linear layer.
void set_bailing_mixers(HfReading& r, std::string_view linear) {
  std::vector<HfLayer>& layers = r.model.layers;
  const ConfigNode* said = r.keys.find({"layer_group_size"});
  if (said != nullptr && said->kind == ConfigNode::Kind::kSequence) {
    if (said->items.size() != layers.size()) {
      r.keys.problems().add(said->span, fmt::format("'layer_group_size' lists {} layers, and the model has {}",
                                                    said->items.size(), layers.size()));
      return;
    }
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const auto flag = r.keys.whole(said->items[i], "layer_group_size", {0, 1});
      layers[i].mixer = flag && flag->value == 1 ? linear : "mla";
    }
    return;
  }
  // Of Ling 3 the class's default is another in each release.
  const HfNames names{"layer_group_size"};
  const auto group = static_cast<std::size_t>(
      (linear == "kda" ? r.keys.required(names, "layers of a group", {1, 1e4}) : r.keys.size_or(names, 5, {1, 1e4}))
          .value);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const bool whole = (i + 1) % group == 0 || i >= layers.size() / group * group;
    layers[i].mixer = whole ? "mla" : linear;
  }
}

/// What changes the shapes of this family and no released model has.
void refuse_bailing_variants(HfReading& r, bool delta) {
  for (const HfNames& names :
       {HfNames{"use_qkv_bias"}, HfNames{"use_bias"}, HfNames{"use_mla_nope"}, HfNames{"multi_gate"},
        HfNames{"scale_router_input"}, HfNames{"use_nGPT"}, HfNames{"up_proj_norm"}, HfNames{"value_norm"},
        HfNames{"use_kda_lora"}, HfNames{"mtp_use_kda"}}) {
    const ConfigNode* said = r.keys.find(names);
    if (said == nullptr || said->is_null() || said->text == "false") continue;
    r.keys.problems().add(said->span, fmt::format("'{}' is read as false only", *names.begin()));
  }
  const std::string router = r.keys.text_or({"router_type"}, "topN");
  if (router == "MultiRouter") r.keys.problems().add(r.keys.find({"router_type"})->span, "a MultiRouter is not read");
  if (delta && !r.keys.flag({"no_kda_lora"}, true)) {
    r.keys.problems().add(r.keys.find({"no_kda_lora"})->span, "'no_kda_lora' is read as true only");
  }
  // 0: as many as heads, as all of them are read.
  const auto linear = r.keys.size({"num_kv_heads_for_linear_attn"}, {0, 1e5});
  if (!linear || !linear->known || linear->value == 0 || linear->value == r.model.heads.value) return;
  r.keys.problems().add(
      linear->where, fmt::format("'num_kv_heads_for_linear_attn' is {}, and is read as 0 or num_attention_heads ({})",
                                 linear->value, r.model.heads.value));
}

/// Ling 3 by its class or model_type, or in a file without a class by keys that the one before has not.
bool is_ling_3(HfReading& r) {
  const std::string_view stem = hf_class(r.keys.text()).stem;
  if (stem == "BailingMoeV3") return true;
  if (stem == "BailingMoeV2_5") return false;
  const ConfigNode* type = r.keys.text().find("model_type");
  if (type != nullptr && type->text == "bailing_moe_v3") return true;
  const auto& entries = r.keys.text().entries;
  return std::any_of(entries.begin(), entries.end(), [](const ConfigNode::Entry& e) {
    return e.key.starts_with("kda_") || e.key == "no_kda_lora" || e.key == "short_conv_kernel_size" ||
           e.key == "gated_attention_proj_granularity_type";
  });
}

/// A gate of latent attention's output, one a head or one an element.
void read_bailing_gate(HfReading& r) {
  const HfNames names{"gated_attention_proj_granularity_type"};
  if (r.keys.says_none(names)) return;
  if (!r.keys.has(names)) r.keys.defaulted(*names.begin(), "head_wise", kClassDefault);
  const std::string kind = r.keys.text_or(names, "head_wise");
  r.model.head_gate = kind == "head_wise";
  r.model.output_gate = kind == "element_wise";
  if (r.model.head_gate || r.model.output_gate) return;
  r.keys.problems().add(r.keys.find(names)->span, fmt::format("gates of kind {} are not read", in_quotes(kind)),
                        "read: head_wise, element_wise");
}

}  // namespace

/// Ling and Ring 2.5 (arXiv:2606.15079; inclusionAI/Ring-V2.5, modeling_bailing_moe_v2_5.py): lightning attention with
/// latent attention at the end of each group of layers. Ling 3 has delta attention with short convolutions instead.
void read_bailing_hybrid(HfReading& r) {
  HfArchitecture& m = r.model;
  read_mla_shape(r, {.max_seq = 32768, .q_lora_rank = 0});
  const bool delta = is_ling_3(r);
  const Size dim = r.keys.size_or({"head_dim"}, 128);
  refuse_bailing_variants(r, delta);
  set_bailing_mixers(r, delta ? "kda" : "lightning");
  const bool normed = r.keys.flag({"use_qk_norm"}, true);
  if (delta) {
    m.kda = HfKda{m.heads, dim, r.keys.size_or({"short_conv_kernel_size"}, 4, {1, 1000}), true, true};
    read_bailing_gate(r);
  } else {
    m.lightning = HfLightning{m.heads, dim, normed};
  }
  if (!read_moe(r, {.experts = 256, .top_k = 8, .d_ff = 512})) return;
  read_shared_experts(r, 1);
  dense_prefix(r, 1);
  read_groups(r, 8, 4);
  m.moe->router_correction_bias = r.keys.flag({"moe_router_enable_expert_bias"}, true);
  if (const auto shared = r.keys.size({"moe_shared_expert_intermediate_size"})) {
    m.moe->shared_d_ff = {shared->value * m.moe->shared_experts.value, shared->where};
  }
  read_mtp(r);
  if (m.mtp_layers.value > 0) m.mtp_kind.mixer = "mla";
}

void read_ernie4_5_moe(HfReading& r) {
  read_shape(r, {.kv_heads = 4, .max_seq = 131072});
  r.model.qkv_bias = r.model.o_bias = r.model.mlp_bias = r.keys.flag({"use_bias"}, false);
  if (!read_moe(r, {.experts = 64, .top_k = 6, .d_ff = 1536})) return;
  read_shared_experts(r, 2);
  const std::int64_t first = r.keys.size_or({"moe_layer_start_index"}, 1, {0, 1e4}).value;
  const std::int64_t every = r.keys.size_or({"moe_layer_interval"}, 1, {1, 1e4}).value;
  const std::int64_t end = r.keys.size_or({"moe_layer_end_index"}, -1, {-1, 1e4}).value;
  const std::int64_t last = end < 0 ? r.model.layer_count() - 1 : end;
  set_moe_layers(r, [&](std::int64_t i) { return i >= first && i <= last && (i + 1) % every == 0; });
  r.model.moe->router_correction_bias = true;
}

}  // namespace scalecalc
