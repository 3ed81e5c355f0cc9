// Reports the keys of a config.json that no reader has read and that may change the model.
#include "import/hf_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "config/built_in_words.h"
#include "import/hf_towers.h"

namespace scalecalc {
namespace {

using HfStructure = std::array<std::string_view, 6>;

/// Keys of things that change a model's weights, those of one quantity in one group. A file that has one which its
/// family's reader did not ask for is not what it says it is.
constexpr std::array kStructure{
    HfStructure{"num_local_experts", "num_experts", "n_routed_experts", "num_routed_experts", "moe_num_experts"},
    HfStructure{"n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts"},
    HfStructure{"shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", "share_expert_dim"},
    HfStructure{"kv_lora_rank"},
    HfStructure{"index_n_heads", "sparse_num_index_heads"},
    HfStructure{"indexer_types"},
    HfStructure{"sparse_attention_config"},
    HfStructure{"linear_num_key_heads"},
    HfStructure{"linear_attn_config"},
    HfStructure{"ssm_state_size", "mamba_d_state", "state_size"},
    HfStructure{"mamba_num_heads", "mamba_n_heads"},
    HfStructure{"hybrid_override_pattern", "layers_block_type"},
    HfStructure{"hybrid_layer_pattern"},
    HfStructure{"block_configs"},
    HfStructure{"attn_type_list"},
    HfStructure{"compress_ratios", "compress_rates"},
    HfStructure{"hidden_size_per_layer_input"},
    HfStructure{"num_kv_shared_layers"},
    HfStructure{"use_cla", "cla_share_factor"},
    HfStructure{"global_head_dim", "num_global_key_value_heads"},
    HfStructure{"attention_k_eq_v"},
    HfStructure{"swa_head_dim", "swa_num_attention_heads", "swa_num_key_value_heads", "attention_other_setting"},
    HfStructure{"num_attention_heads_per_layer", "per_layer_config"},
    HfStructure{"moe_latent_size", "routed_expert_hidden_size"},
    HfStructure{"attn_layer_period", "attn_layer_indices", "full_attn_idxs"},
    HfStructure{"word_embed_proj_dim", "embedding_size"},
    HfStructure{"sliding_window", "sliding_window_size"},
    HfStructure{"attention_chunk_size"},
    HfStructure{"num_nextn_predict_layers", "num_mtp_layers", "mtp_num_hidden_layers", "num_mtp_modules"},
    HfStructure{"draft_vocab_size"},
    HfStructure{"dflash_config"},
    HfStructure{"eagle_config"},
    HfStructure{"fc_norm"},
    HfStructure{"markov_rank"},
    HfStructure{"cross_attention_layers", "cross_attention_hidden_size", "add_cross_attention"},
    HfStructure{"is_encoder_decoder", "encoder_layers", "num_decoder_layers"},
    HfStructure{"num_loops", "num_recurrent_layers", "total_ut_steps"},
    HfStructure{"altup_num_inputs", "laurel_rank"},
    HfStructure{"enable_moe_block", "use_double_wide_mlp"},
    HfStructure{"hc_mult", "attn_res_block_size"},
    HfStructure{"o_lora_rank", "o_groups"},
    HfStructure{"num_hash_layers", "zero_expert_num"},
    HfStructure{"use_head_wise_attn_gate", "use_full_rank_gate", "mla_use_output_gate"},
    HfStructure{"add_swa_attention_sink_bias", "add_full_attention_sink_bias"},
    HfStructure{"type_vocab_size"},
    HfStructure{"mamba_d_ssm"},
    HfStructure{"conv_L_cache"},
    HfStructure{"moe_layer_num_skipped"},
    HfStructure{"per_layer_embedding_size", "vocab_size_per_layer_input"},
    HfStructure{"ngram_vocab_size_ratio", "oe_vocab_size_ratio"},
    HfStructure{"emb_neighbor_num"},
    HfStructure{"emb_split_num"},
    HfStructure{"lru_width"},
    HfStructure{"conv_kernel_size"},
    HfStructure{"ff_intermediate_size"},
};

/// The same of models with experts: which layers have them, and which of them a token may visit.
constexpr std::array<std::string_view, 8> kExpertStructure{"decoder_sparse_step",
                                                           "first_k_dense_replace",
                                                           "interleave_moe_layer_step",
                                                           "mlp_only_layers",
                                                           "moe_layer_freq",
                                                           "moe_layer_start_index",
                                                           "n_group",
                                                           "num_dense_layers"};

/// Keys by which files say whether they have something that every model here has or has not.
struct Switch {
  std::string_view key;
  std::string_view what;
  bool (*has)(const HfArchitecture& m);
};
constexpr auto kQkvBias = [](const HfArchitecture& m) { return m.qkv_bias; };
constexpr auto kAnyBias = [](const HfArchitecture& m) { return m.qkv_bias || m.o_bias; };
constexpr auto kQkNorm = [](const HfArchitecture& m) { return m.qk_norm != "none"; };
constexpr auto kParallel = [](const HfArchitecture& m) { return m.parallel_block; };
constexpr std::array kSwitches{
    Switch{"qkv_bias", "a bias of queries, keys and values", kQkvBias},
    Switch{"use_qkv_bias", "a bias of queries, keys and values", kQkvBias},
    Switch{"add_qkv_bias", "a bias of queries, keys and values", kQkvBias},
    Switch{"attention_bias", "a bias of attention", kAnyBias},
    Switch{"use_bias", "a bias", kAnyBias},
    Switch{"attention_out_bias", "a bias of attention's output", [](const HfArchitecture& m) { return m.o_bias; }},
    Switch{"mlp_bias", "a bias of the MLP", [](const HfArchitecture& m) { return m.mlp_bias; }},
    Switch{"lm_head_bias", "a bias of the head", [](const HfArchitecture& m) { return m.head_bias; }},
    Switch{"use_qk_norm", "norms of queries and keys", kQkNorm},
    Switch{"qk_layernorm", "norms of queries and keys", kQkNorm},
    Switch{"qk_norm", "norms of queries and keys", kQkNorm},
    Switch{"attn_output_gate", "a gate of attention's output", [](const HfArchitecture& m) { return m.output_gate; }},
    Switch{"parallel_attn", "attention and MLP side by side", kParallel},
    Switch{"use_parallel_residual", "attention and MLP side by side", kParallel},
};

/// Whether a key changes no shape: numerics, rotary settings, tokens, training, generation, how a library runs the
/// model.
bool harmless(std::string_view key) {
  static const ConfigNode kWords = built_in_words("words/config_json.yaml");
  const auto any = [](const char* list, auto is_so) {
    const std::vector<ConfigNode>& items = kWords.find(list)->items;
    return std::any_of(items.begin(), items.end(), [&](const ConfigNode& item) { return is_so(item.text); });
  };
  return any("harmless", [&](const std::string& text) { return key == text; }) ||
         any("harmless_starts", [&](const std::string& text) { return key.starts_with(text); }) ||
         any("harmless_ends", [&](const std::string& text) { return key.ends_with(text); });
}

/// What was read of a group, or null.
const ConfigNode* read_of(const HfKeys& keys, const HfStructure& group) {
  for (const std::string_view key : group) {
    const ConfigNode* value = key.empty() ? nullptr : keys.text().find(key);
    if (value != nullptr && keys.was_read(*value)) return value;
  }
  return nullptr;
}

/// 0, 1, false and an empty list are how files say that they have none.
bool says_none(const ConfigNode& value) {
  if (value.kind != ConfigNode::Kind::kScalar) return value.items.empty() && value.entries.empty();
  return value.is_null() || value.text == "0" || value.text == "1" || value.text == "false";
}

/// A window that is switched off, as the Qwens' files have it.
bool window_is_off(const HfKeys& keys, std::string_view key) {
  const ConfigNode* in_use = keys.text().find("use_sliding_window");
  return key == "sliding_window" && in_use != nullptr && in_use->text == "false";
}

/// Wrappers say again what their language model says.
bool repeats(const HfKeys& keys, std::string_view key) {
  const ConfigNode* inside = keys.nested() ? keys.text().find(key) : nullptr;
  const ConfigNode* outside = keys.top().find(key);
  return inside != nullptr && outside != nullptr && inside->kind == ConfigNode::Kind::kScalar &&
         keys.was_read(*inside) && inside->text == outside->text;
}

void report_structure(HfReading& r) {
  for (const HfStructure& group : kStructure) {
    const ConfigNode* known = read_of(r.keys, group);
    for (const std::string_view key : group) {
      const ConfigNode* value = key.empty() ? nullptr : r.keys.text().find(key);
      if (value == nullptr || r.keys.was_read(*value) || window_is_off(r.keys, key)) continue;
      if (known != nullptr ? value->is_null() || value->text == known->text : says_none(*value)) continue;
      const std::string message =
          known != nullptr
              ? fmt::format("'{}' is {}, and another key says {}", key, value_text(*value), value_text(*known))
              : fmt::format("'{}' is set, and models of family '{}' have no such thing", key, r.family.name);
      r.keys.problems().add(value->span, message, known != nullptr ? "" : "is 'model_type' right?");
    }
  }
}

void report_expert_structure(HfReading& r) {
  if (!r.model.moe) return;
  for (const std::string_view key : kExpertStructure) {
    const ConfigNode* value = r.keys.text().find(key);
    if (value == nullptr || r.keys.was_read(*value) || says_none(*value)) continue;
    r.keys.problems().add(value->span, fmt::format("'{}' is {}, and the experts of family '{}' are read without it",
                                                   key, value_text(*value), r.family.name));
  }
}

void report_switches(HfReading& r) {
  for (const Switch& s : kSwitches) {
    const ConfigNode* value = r.keys.text().find(s.key);
    if (value == nullptr || value->is_null() || r.keys.was_read(*value)) continue;
    const bool has = s.has(r.model);
    if (value->text == (has ? "true" : "false")) continue;
    // Libraries leave a false alone where the class has the thing anyway.
    if (has && value->text == "false") {
      r.keys.warn(fmt::format("'{}' is false, and models of family '{}' always have {}", s.key, r.family.name, s.what));
    } else {
      r.keys.problems().add(value->span, fmt::format("'{}' is {}, and models of family '{}' are read without {}", s.key,
                                                     value_text(*value), r.family.name, s.what));
    }
  }
}

void report_layer_types(HfReading& r) {
  const ConfigNode* types = r.keys.text().find("layer_types");
  if (types == nullptr || r.keys.was_read(*types)) return;
  for (const ConfigNode& item : types->items) {
    if (item.text == "full_attention" || item.text == "attention") continue;
    r.keys.problems().add(
        item.span, fmt::format("layer type {} is not known of family '{}'", in_quotes(item.text), r.family.name));
    return;
  }
}

bool is_checked(std::string_view key) {
  const auto in_group = [&](const HfStructure& group) {
    return std::find(group.begin(), group.end(), key) != group.end();
  };
  return key == "layer_types" || key == "topk_group" ||
         std::find(kExpertStructure.begin(), kExpertStructure.end(), key) != kExpertStructure.end() ||
         std::any_of(kStructure.begin(), kStructure.end(), in_group) ||
         std::any_of(kSwitches.begin(), kSwitches.end(), [&](const Switch& s) { return s.key == key; });
}

}  // namespace

void report_unread_keys(HfReading& r) {
  report_structure(r);
  report_expert_structure(r);
  report_switches(r);
  report_layer_types(r);
  std::vector<std::string> unknown;
  for (const std::string& key : r.keys.unread()) {
    const ConfigNode* value = r.keys.text().find(key) != nullptr ? r.keys.text().find(key) : r.keys.top().find(key);
    if (value != nullptr && value->is_null()) continue;
    if (!is_checked(key) && !harmless(key) && !of_named_tower(r.keys, key) && !repeats(r.keys, key))
      unknown.push_back(key);
  }
  if (unknown.empty()) return;
  r.keys.warn(fmt::format("keys of no known meaning, from which nothing is read: {}", join(unknown, ", ")));
}

}  // namespace scalecalc
