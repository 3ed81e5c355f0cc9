// Reads families whose layers differ in kind: linear attention or a state space beside attention, or blocks chosen one
// by one.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "import/hf_read.h"

namespace scalecalc {
namespace {

/// Gated delta networks with full attention in every full_attention_interval-th layer (Qwen3-Next on).
void qwen_hybrid(HfReading& r, const ShapeDefaults& defaults) {
  HfArchitecture& m = r.model;
  read_shape(r, defaults);
  read_attention_bias(r, false);
  m.qk_norm = "head_dim";
  m.output_gate = r.keys.flag({"attn_output_gate"}, true);
  m.gdn = HfGdn{r.keys.size_or({"linear_num_key_heads"}, 16), r.keys.size_or({"linear_key_head_dim"}, 128),
                r.keys.size_or({"linear_num_value_heads"}, 32), r.keys.size_or({"linear_value_head_dim"}, 128),
                r.keys.size_or({"linear_conv_kernel_dim"}, 4, {1, 1000})};
  const auto listed = read_layer_types(r, {"layer_types"}, "gdn");
  const std::int64_t interval = listed ? 1 : r.keys.size_or({"full_attention_interval"}, 4, {1, 1e4}).value;
  for (std::size_t i = 0; i < m.layers.size(); ++i) {
    const bool full = (static_cast<std::int64_t>(i) + 1) % interval == 0;
    m.layers[i].mixer = listed ? (*listed)[i] : full ? "full" : "gdn";
  }
}

void qwen_hybrid_experts(HfReading& r, const MoeDefaults& defaults) {
  if (!read_moe(r, defaults)) return;
  read_shared_width(r, {"shared_expert_intermediate_size"}, 512);
  r.model.moe->shared_gate = r.model.moe->shared_experts.value > 0;
  set_qwen_moe_layers(r);
}

/// MTP modules repeat the last layer that attends to the whole sequence.
void qwen_mtp(HfReading& r) {
  read_mtp(r);
  if (r.model.mtp_layers.value > 0) r.model.mtp_kind.mixer = "full";
}

/// One layer of a Nemotron-H pattern: a mixer or a feed-forward part, never both.
std::optional<HfLayer> nemotron_layer(std::string_view word) {
  if (word == "M" || word == "mamba" || word == "linear_attention") return HfLayer{.mixer = "mamba2", .ffn = "none"};
  if (word == "*" || word == "attention" || word == "full_attention") return HfLayer{.mixer = "full", .ffn = "none"};
  if (word == "-" || word == "mlp") return HfLayer{.mixer = "none", .ffn = "dense"};
  if (word == "E" || word == "moe") return HfLayer{.mixer = "none", .ffn = "moe"};
  return std::nullopt;
}

/// hybrid_override_pattern, one sign a layer, or layers_block_type, one word a layer.
void read_nemotron_layers(HfReading& r) {
  HfArchitecture& m = r.model;
  const auto add = [&](std::string_view word, const SourceSpan& where) {
    const auto layer = nemotron_layer(word);
    if (!layer) {
      r.keys.problems().add(where, fmt::format("layer {} is not known of family 'nemotron_h'", in_quotes(word)),
                            "known: M mamba, * attention, - mlp, E moe");
    }
    m.layers.push_back(layer.value_or(HfLayer{}));
  };
  const ConfigNode* where = nullptr;
  if (const ConfigNode* list = r.keys.list({"layers_block_type", "layer_types"})) {
    where = list;
    for (const ConfigNode& item : list->items) add(item.text, item.span);
  } else if (const ConfigNode* pattern = r.keys.find({"hybrid_override_pattern"})) {
    where = pattern;
    for (const char sign : pattern->text) add(std::string_view(&sign, 1), pattern->span);
  }
  if (where == nullptr || m.layers.empty()) {
    r.keys.problems().add(where == nullptr ? r.keys.span() : where->span,
                          "the file has no 'hybrid_override_pattern' (one sign a layer)",
                          "also read: layers_block_type");
    return;
  }
  const auto count = r.keys.size({"num_hidden_layers"}, {1, 10'000});
  if (count && count->value != m.layer_count()) {
    r.keys.problems().add(count->where, fmt::format("'num_hidden_layers' is {}, and the pattern has {} layers",
                                                    count->value, m.layer_count()));
  }
}

/// A Mamba2 mixer with the biases Nemotron-H has; others are not counted.
void read_mamba2(HfReading& r) {
  r.model.mamba2 = HfMamba2{r.keys.required({"mamba_num_heads"}, "heads of a Mamba layer"),
                            r.keys.required({"mamba_head_dim"}, "head width of a Mamba layer"),
                            r.keys.size_or({"n_groups", "mamba_n_groups"}, 8),
                            r.keys.size_or({"ssm_state_size"}, 128),
                            r.keys.size_or({"conv_kernel", "mamba_d_conv"}, 4, {1, 1000}),
                            read_scan_chunk(r, 128)};
  const bool conv_bias = r.keys.flag({"use_conv_bias", "mamba_conv_bias"}, true);
  const bool bias = r.keys.flag({"use_bias"}, false) || r.keys.flag({"mamba_proj_bias"}, false);
  if (bias || !conv_bias) {
    r.keys.problems().add(r.keys.span(), "Mamba layers are read with a bias of the convolution and no other",
                          "the file sets use_bias, mamba_proj_bias or use_conv_bias otherwise");
  }
}

struct NasPart {
  bool present = false;
  const ConfigNode* map = nullptr;
};

NasPart nas_part(HfReading& r, const ConfigNode& block, std::string_view name) {
  const ConfigNode* map = block.find(name);
  if (map == nullptr || map->kind != ConfigNode::Kind::kMap) {
    r.keys.problems().add(block.span, fmt::format("a block has no '{}'", name));
    return {};
  }
  const auto is_set = [&](std::string_view key) {
    const ConfigNode* flag = map->find(key);
    return flag != nullptr && flag->text == "true";
  };
  if (is_set("replace_with_linear")) {
    r.keys.problems().add(map->span, fmt::format("'{}' replaced by a linear layer is not read", name));
  }
  return {!is_set("no_op"), map};
}

void nas_heads(HfReading& r, const ConfigNode& map) {
  HfArchitecture& m = r.model;
  const ConfigNode* group = map.find("n_heads_in_group");
  if (group == nullptr || group->is_null()) {
    r.keys.problems().add(map.span, "the block has no 'n_heads_in_group' (query heads for each kv head)");
    return;
  }
  const auto size = r.keys.whole(*group, "n_heads_in_group", {1, static_cast<double>(m.heads.value)});
  if (!size) return;
  const Size kv{m.heads.value / size->value, size->where};
  if (m.kv_heads.value != 0 && m.kv_heads.value != kv.value) {
    r.keys.problems().add(size->where, "layers with different numbers of kv heads are not read");
  }
  m.kv_heads = kv;
}

/// Two thirds of the multiple of d_model, up to whole 256s, as the model's own code rounds it.
std::int64_t nas_width(HfReading& r, const ConfigNode& map) {
  constexpr std::int64_t kUnit = 256;
  const ConfigNode* multiple = map.find("ffn_mult");
  if (multiple == nullptr || multiple->is_null()) {
    r.keys.problems().add(map.span, "the block has no 'ffn_mult' (width of the MLP over hidden_size)");
    return kUnit;
  }
  const double factor = r.keys.decimal(*multiple, "ffn_mult", {1e-3, 1000}).value_or(1);
  const auto width = static_cast<std::int64_t>(2 * factor * static_cast<double>(r.model.d_model.value) / 3);
  return std::max<std::int64_t>(1, (width + kUnit - 1) / kUnit) * kUnit;
}

}  // namespace

void read_qwen3_next(HfReading& r) {
  qwen_hybrid(r, {.kv_heads = 2, .head_dim = 256, .max_seq = 32768, .d_ff = DffRule::kOptional});
  qwen_hybrid_experts(r, {.experts = 512, .top_k = 10, .d_ff = 512});
  qwen_mtp(r);
}

void read_qwen3_5(HfReading& r) {
  qwen_hybrid(r, {.kv_heads = 4, .head_dim = 256, .max_seq = 32768});
  qwen_mtp(r);
}

void read_qwen3_5_moe(HfReading& r) {
  qwen_hybrid(r, {.kv_heads = 2, .head_dim = 256, .max_seq = 32768, .d_ff = DffRule::kOptional});
  qwen_hybrid_experts(r, {.experts = 256, .top_k = 8, .d_ff = 512});
  qwen_mtp(r);
}

void read_minimax(HfReading& r) {
  HfArchitecture& m = r.model;
  read_shape(r, {.kv_heads = 8, .max_seq = 131072});
  m.lightning = HfLightning{m.heads, m.head_dim};
  const auto listed = read_layer_types(r, {"layer_types"}, "lightning");
  const ConfigNode* types = listed ? nullptr : r.keys.list({"attn_type_list"});
  if (types != nullptr && types->items.size() != m.layers.size()) {
    r.keys.problems().add(types->span, fmt::format("'attn_type_list' lists {} layers, and the model has {}",
                                                   types->items.size(), m.layers.size()));
    return;
  }
  if (!listed && types == nullptr) {
    r.keys.defaulted("layer_types", "full and linear attention in turn", kClassDefault);
  }
  for (std::size_t i = 0; i < m.layers.size(); ++i) {
    const bool full = types != nullptr ? types->items[i].text == "1" : i % 2 == 0;
    m.layers[i].mixer = listed ? (*listed)[i] : full ? "full" : "lightning";
  }
  if (!read_moe(r, {.experts = 8, .top_k = 2})) return;
  read_shared_width(r, {"shared_intermediate_size"}, 0);
  set_moe_layers(r, [](std::int64_t) { return true; });
}

void read_jamba(HfReading& r) {
  HfArchitecture& m = r.model;
  read_shape(r, {.kv_heads = 8, .max_seq = 262144});
  const std::int64_t expand = r.keys.size_or({"mamba_expand"}, 2, {1, 64}).value;
  const ConfigNode* rank = r.keys.find({"mamba_dt_rank"});
  HfMamba1 mamba{{expand * m.d_model.value, m.d_model.where},
                 r.keys.size_or({"mamba_d_state"}, 16),
                 r.keys.size_or({"mamba_d_conv"}, 4, {1, 1000}),
                 {(m.d_model.value + 15) / 16, m.d_model.where}};
  if (rank == nullptr || rank->is_null() || rank->text == "auto") {
    r.keys.defaulted("mamba_dt_rank", std::to_string(mamba.dt_rank.value), "hidden_size / 16");
  } else if (const auto given = r.keys.whole(*rank, "mamba_dt_rank")) {
    mamba.dt_rank = *given;
  }
  m.mamba1 = mamba;
  if (!r.keys.flag({"mamba_conv_bias"}, true) || r.keys.flag({"mamba_proj_bias"}, false)) {
    r.keys.problems().add(r.keys.span(), "Mamba layers are read with a bias of the convolution and no other",
                          "the file sets mamba_proj_bias or mamba_conv_bias otherwise");
  }
  const std::int64_t period = r.keys.size_or({"attn_layer_period"}, 8, {1, 1e4}).value;
  const std::int64_t offset = r.keys.size_or({"attn_layer_offset"}, 4, {0, 1e4}).value;
  for (std::size_t i = 0; i < m.layers.size(); ++i) {
    m.layers[i].mixer = static_cast<std::int64_t>(i) % period == offset ? "full" : "mamba1";
  }
  if (!read_moe(r, {.experts = 16, .top_k = 2})) return;
  const std::int64_t every = r.keys.size_or({"expert_layer_period"}, 2, {1, 1e4}).value;
  const std::int64_t first = r.keys.size_or({"expert_layer_offset"}, 1, {0, 1e4}).value;
  set_moe_layers(r, [&](std::int64_t i) { return i % every == first; });
}

void read_nemotron_h(HfReading& r) {
  HfArchitecture& m = r.model;
  read_width(r, {.max_seq = 4096});
  m.gated = false;
  m.norms_per_layer = 1;
  m.mlp_bias = r.keys.flag({"mlp_bias"}, false);
  read_nemotron_layers(r);
  if (m.has_mixer("full")) {
    read_heads(r, {.head_dim = 128});
    read_attention_bias(r, false);
  }
  if (m.has_mixer("mamba2")) read_mamba2(r);
  if (m.has_ffn("dense")) read_d_ff(r, DffRule::kRequired);
  if (!m.has_ffn("moe")) return;
  if (!read_moe(r, {})) {
    r.keys.problems().add(r.keys.span(), "the pattern has expert layers, and the file no experts");
    return;
  }
  m.moe->latent = r.keys.size_or_none({"moe_latent_size"});
  if (r.keys.size_or({"n_shared_experts"}, 1, {0, 1}).value > 0)
    read_shared_width(r, {"moe_shared_expert_intermediate_size"}, 7688);
  m.moe->router_correction_bias = true;
  read_mtp(r);
  if (m.mtp_layers.value > 0) {
    m.mtp_kind = {.mixer = "full", .ffn = "moe"};
    r.keys.remark("an MTP module is read as one layer of attention and experts");
  }
}

void read_nemotron_nas(HfReading& r) {
  HfArchitecture& m = r.model;
  read_width(r, {.max_seq = 131072});
  read_layer_count(r);
  m.heads = r.keys.required({"num_attention_heads"}, "attention heads");
  m.head_dim = {std::max<std::int64_t>(1, m.d_model.value / m.heads.value), m.heads.where};
  read_attention_bias(r, false);
  m.mlp_bias = r.keys.flag({"mlp_bias"}, false);
  const ConfigNode* blocks = r.keys.list({"block_configs"});
  if (blocks == nullptr || blocks->items.size() != m.layers.size()) {
    r.keys.problems().add(blocks == nullptr ? r.keys.span() : blocks->span,
                          fmt::format("'block_configs' must describe each of the {} layers", m.layers.size()));
    return;
  }
  for (std::size_t i = 0; i < m.layers.size(); ++i) {
    const ConfigNode& block = blocks->items[i];
    const NasPart attention = nas_part(r, block, "attention");
    const NasPart mlp = nas_part(r, block, "ffn");
    if (!attention.present && !mlp.present) {
      r.keys.problems().add(block.span, "a layer with neither attention nor MLP is not read");
    }
    m.layers[i] = {.mixer = attention.present ? "full" : "none", .ffn = mlp.present ? "dense" : "none"};
    m.layers[i].norms = (attention.present ? 1 : 0) + (mlp.present ? 1 : 0);
    if (attention.present) nas_heads(r, *attention.map);
    if (mlp.present) m.layers[i].d_ff = nas_width(r, *mlp.map);
  }
}

}  // namespace scalecalc
