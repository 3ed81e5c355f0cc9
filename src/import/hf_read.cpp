// Reads the parts of a config.json that most families share: widths, heads, layers and experts.
#include "import/hf_read.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace scalecalc {
namespace {

constexpr Range kLayerRange{1, 10'000};
constexpr Range kContextRange{1, 1e9};
constexpr Range kExpertRange{0, 1e5};

Size size_or_required(HfReading& r, HfNames names, std::string_view what, std::int64_t otherwise, Range range) {
  return otherwise > 0 ? r.keys.size_or(names, otherwise, range) : r.keys.required(names, what, range);
}

/// A value that follows from others.
Size derived(HfReading& r, std::string_view key, std::int64_t value, const SourceSpan& where, std::string why) {
  r.keys.defaulted(key, std::to_string(value), std::move(why));
  return {value, where, true};
}

Size head_dim_by_division(HfReading& r) {
  const HfArchitecture& m = r.model;
  if (m.d_model.known && m.heads.known && m.d_model.value % m.heads.value != 0) {
    r.keys.problems().add(m.heads.where, fmt::format("hidden_size ({}) is not a multiple of num_attention_heads ({}), "
                                                     "and the file has no 'head_dim'",
                                                     m.d_model.value, m.heads.value));
  }
  const std::int64_t value = std::max<std::int64_t>(1, m.d_model.value / m.heads.value);
  return derived(r, "head_dim", value, m.heads.where, "hidden_size / num_attention_heads");
}

std::optional<std::string_view> mixer_of(std::string_view word, std::string_view linear) {
  if (word == "full_attention" || word == "attention") return "full";
  if (word == "conv" && linear == "conv") return "conv";
  if (word == "sliding_attention") return "sliding";
  if (word == "chunked_attention") return "chunked";
  if ((word == "linear_attention" || word == "mamba") && !linear.empty()) return linear;
  return std::nullopt;
}

}  // namespace

void read_width(HfReading& r, const ShapeDefaults& defaults) {
  HfArchitecture& m = r.model;
  m.d_model = size_or_required(r, {"hidden_size", "n_embd", "n_embed", "d_model"}, "width of the model",
                               defaults.d_model, kSizeRange);
  m.vocab =
      size_or_required(r, {"vocab_size", "padded_vocab_size"}, "entries of the vocabulary", defaults.vocab, kSizeRange);
  m.max_seq = size_or_required(r, {"max_position_embeddings", "n_positions", "max_seq_len", "seq_length"},
                               "longest sequence", defaults.max_seq, kContextRange);
  // What a model was trained on may be less than it has positions for.
  if (r.keys.find({"max_position_embeddings", "n_positions", "max_seq_len"}) == nullptr && m.max_seq.known &&
      r.keys.find({"seq_length"}) != nullptr) {
    r.keys.defaulted("max_position_embeddings", std::to_string(m.max_seq.value), "seq_length");
  }
  const ConfigNode* tie = r.keys.find_on_top({"tie_word_embeddings", "tie_embedding"});
  m.tied_embeddings = r.family.tied;
  if (tie == nullptr || tie->is_null()) {
    r.keys.defaulted("tie_word_embeddings", r.family.tied ? "true" : "false", kClassDefault);
  } else if (tie->text == "true" || tie->text == "false") {
    m.tied_embeddings = tie->text == "true";
  } else {
    r.keys.problems().add(tie->span, "'tie_word_embeddings' must be true or false");
  }
}

void read_heads(HfReading& r, const ShapeDefaults& defaults) {
  HfArchitecture& m = r.model;
  m.heads = size_or_required(r, {"num_attention_heads", "n_head", "n_heads", "num_heads"}, "attention heads",
                             defaults.heads, kSizeRange);
  const HfNames kv_names{"num_key_value_heads", "num_kv_heads", "n_head_kv", "attn_config.kv_n_heads"};
  if (const auto kv = r.keys.size(kv_names)) {
    m.kv_heads = *kv;
  } else if (defaults.kv_heads > 0 && !r.keys.is_null(kv_names)) {
    m.kv_heads = derived(r, "num_key_value_heads", defaults.kv_heads, m.heads.where, kClassDefault);
  } else {
    m.kv_heads = derived(r, "num_key_value_heads", m.heads.value, m.heads.where, "as many as num_attention_heads");
  }
  const HfNames dim_names{"head_dim", "attention_head_dim", "kv_channels"};
  if (const auto head_dim = r.keys.size(dim_names)) {
    m.head_dim = *head_dim;
  } else if (defaults.head_dim > 0 && !r.keys.is_null(dim_names)) {
    m.head_dim = derived(r, "head_dim", defaults.head_dim, m.heads.where, kClassDefault);
  } else {
    m.head_dim = head_dim_by_division(r);
  }
}

void read_layer_count(HfReading& r, std::int64_t otherwise) {
  const Size count = size_or_required(r, {"num_hidden_layers", "n_layer", "n_layers", "num_layers"}, "number of layers",
                                      otherwise, kLayerRange);
  r.model.layers.assign(static_cast<std::size_t>(count.value), HfLayer{});
}

void read_d_ff(HfReading& r, DffRule rule, std::int64_t otherwise) {
  const HfNames names{"intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size", "ffn_config.ffn_hidden_size"};
  HfArchitecture& m = r.model;
  if (rule == DffRule::kRequired) {
    m.d_ff = size_or_required(r, names, "width of the MLP", otherwise, kSizeRange);
  } else if (const auto found = r.keys.size(names)) {
    m.d_ff = *found;
  } else if (rule == DffRule::kFourTimes) {
    m.d_ff = derived(r, "intermediate_size", 4 * m.d_model.value, m.d_model.where, "4 x hidden_size");
  }
}

void read_shape(HfReading& r, const ShapeDefaults& defaults) {
  read_width(r, defaults);
  read_layer_count(r, defaults.layers);
  read_heads(r, defaults);
  read_d_ff(r, defaults.d_ff, defaults.width);
}

void read_attention_bias(HfReading& r, bool otherwise) {
  r.model.qkv_bias = r.model.o_bias = r.keys.flag({"attention_bias"}, otherwise);
}

void layernorm(HfReading& r, std::int64_t per_layer, bool bias) {
  r.model.layernorm = true;
  r.model.norm_bias = bias;
  r.model.norms_per_layer = per_layer;
}

void all_biases(HfReading& r) {
  r.model.qkv_bias = r.model.o_bias = r.model.mlp_bias = true;
  r.model.gated = false;
  layernorm(r, 2, true);
}

Size read_window(HfReading& r, std::int64_t otherwise) {
  const HfNames names{"sliding_window"};
  if (otherwise == 0) return r.keys.size_or_none(names, {1, 1e9});
  return r.keys.says_none(names) ? Size{} : r.keys.size_or(names, otherwise, {1, 1e9});
}

std::optional<std::vector<std::string_view>> read_layer_types(HfReading& r, HfNames names, std::string_view linear) {
  const ConfigNode* list = r.keys.list(names);
  if (list == nullptr) return std::nullopt;
  std::vector<std::string_view> mixers;
  for (const ConfigNode& item : list->items) {
    const auto mixer = mixer_of(item.text, linear);
    if (!mixer) {
      r.keys.problems().add(
          item.span, fmt::format("layer type {} is not known of family '{}'", in_quotes(item.text), r.family.name));
    }
    mixers.push_back(mixer.value_or("full"));
  }
  if (mixers.size() != r.model.layers.size()) {
    r.keys.problems().add(list->span, fmt::format("'{}' lists {} layers, and the model has {}", *names.begin(),
                                                  mixers.size(), r.model.layers.size()));
    mixers.resize(r.model.layers.size(), "full");
  }
  return mixers;
}

void set_sliding(HfReading& r, const Size& window, const std::function<bool(std::int64_t)>& slides) {
  HfArchitecture& m = r.model;
  const auto listed = read_layer_types(r, {"layer_types"}, "");
  for (std::int64_t i = 0; i < m.layer_count(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    m.layers[at].mixer = listed ? (*listed)[at] : window.value > 0 && slides(i) ? "sliding" : "full";
  }
  if (!m.has_mixer("sliding")) return;
  if (window.value == 0) r.keys.problems().add(r.keys.span(), "the file has sliding layers and no 'sliding_window'");
  m.window = window;
}

void set_qwen_window(HfReading& r) {
  const bool in_use = r.keys.flag({"use_sliding_window"}, false);
  const Size window = in_use ? read_window(r, 4096) : Size{};
  const std::int64_t first = in_use ? r.keys.size_or({"max_window_layers"}, 28, {0, 1e6}).value : 0;
  if (!in_use && r.keys.has({"sliding_window"})) {
    r.keys.remark("sliding_window has no effect: use_sliding_window is false");
  }
  set_sliding(r, window, [&](std::int64_t i) { return i >= first; });
}

bool read_moe(HfReading& r, const MoeDefaults& defaults) {
  const HfNames experts{"n_routed_experts",   "num_local_experts", "num_experts",
                        "num_routed_experts", "moe_num_experts",   "ffn_config.moe_num_experts"};
  HfMoe moe;
  if (r.keys.is_null(experts)) {
    r.keys.remark("the number of experts is null: read as a dense model");
    return false;
  }
  moe.experts = size_or_required(r, experts, "routed experts", defaults.experts, kExpertRange);
  if (moe.experts.value <= 1) {
    r.keys.remark("the model has one expert or none: read as a dense model");
    return false;
  }
  moe.top_k = size_or_required(r,
                               {"num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_top_k",
                                "top_k_experts", "moe_k", "moe_topk", "ffn_config.moe_top_k"},
                               "experts a token visits", defaults.top_k, {1, 1e5});
  if (moe.top_k.known && moe.experts.known && moe.top_k.value > moe.experts.value) {
    r.keys.problems().add(moe.top_k.where, fmt::format("a token visits {} experts, and there are {}", moe.top_k.value,
                                                       moe.experts.value));
  }
  if (const auto width = r.keys.size({"moe_intermediate_size", "expert_ffn_hidden_size"})) {
    moe.d_ff = *width;
  } else if (defaults.d_ff > 0 && !r.keys.is_null({"moe_intermediate_size"})) {
    moe.d_ff = derived(r, "moe_intermediate_size", defaults.d_ff, r.keys.span(), kClassDefault);
  } else {
    if (r.model.d_ff.value == 0) read_d_ff(r, DffRule::kRequired);
    moe.d_ff = r.model.d_ff;
    r.keys.defaulted("moe_intermediate_size", std::to_string(moe.d_ff.value), "intermediate_size");
  }
  r.model.moe = moe;
  return true;
}

void read_shared_experts(HfReading& r, std::int64_t otherwise) {
  if (!r.model.moe) return;
  const HfNames names{"n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert"};
  HfMoe& moe = *r.model.moe;
  moe.shared_experts = r.keys.says_none(names) ? Size{} : r.keys.size_or(names, otherwise, {0, 1e4});
  moe.shared_d_ff = {moe.shared_experts.value * moe.d_ff.value, moe.shared_experts.where};
}

void read_shared_width(HfReading& r, HfNames names, std::int64_t otherwise) {
  if (!r.model.moe) return;
  HfMoe& moe = *r.model.moe;
  if (r.keys.says_none(names)) return;
  moe.shared_d_ff = r.keys.size_or(names, otherwise, {0, kSizeRange.max});
  moe.shared_experts = {moe.shared_d_ff.value > 0 ? 1 : 0, moe.shared_d_ff.where};
}

void set_moe_layers(HfReading& r, const std::function<bool(std::int64_t)>& is_moe) {
  HfArchitecture& m = r.model;
  if (!m.moe) return;
  for (std::int64_t i = 0; i < m.layer_count(); ++i)
    m.layers[static_cast<std::size_t>(i)].ffn = is_moe(i) ? "moe" : "dense";
  const ConfigNode* listed = r.keys.list({"mlp_layer_types"});
  if (listed == nullptr) return;
  if (listed->items.size() != m.layers.size()) {
    r.keys.problems().add(listed->span, fmt::format("'mlp_layer_types' lists {} layers, and the model has {}",
                                                    listed->items.size(), m.layers.size()));
    return;
  }
  for (std::size_t i = 0; i < m.layers.size(); ++i) {
    const ConfigNode& item = listed->items[i];
    if (item.text != "dense" && item.text != "sparse" && item.text != "moe") {
      r.keys.problems().add(item.span, fmt::format("MLP layer type {} is not known", in_quotes(item.text)),
                            "known: dense, sparse, moe");
    }
    m.layers[i].ffn = item.text == "dense" ? "dense" : "moe";
  }
}

Size same_for_all(HfReading& r, HfNames names, std::string_view what, Range range) {
  const ConfigNode* found = r.keys.find(names);
  if (found == nullptr || found->kind != ConfigNode::Kind::kSequence) return r.keys.required(names, what, range);
  if (found->items.size() < r.model.layers.size() || found->items.empty()) {
    r.keys.problems().add(found->span, fmt::format("'{}' lists {} layers, and the model has {}", *names.begin(),
                                                   found->items.size(), r.model.layers.size()));
    return {1, found->span, false};
  }
  for (const ConfigNode& item : found->items) {
    if (item.text == found->items.front().text) continue;
    r.keys.problems().add(item.span,
                          fmt::format("'{}' differs from layer to layer, which is not read", *names.begin()));
    return {1, found->span, false};
  }
  return r.keys.whole(found->items.front(), *names.begin(), range).value_or(Size{1, found->span, false});
}

std::vector<std::int64_t> read_layer_numbers(HfReading& r, HfNames names) {
  std::vector<std::int64_t> out;
  const ConfigNode* list = r.keys.list(names);
  if (list == nullptr) return out;
  for (const ConfigNode& item : list->items) {
    const Range range{0, static_cast<double>(r.model.layer_count() - 1)};
    if (const auto number = r.keys.whole(item, *names.begin(), range)) out.push_back(number->value);
  }
  return out;
}

void set_qwen_moe_layers(HfReading& r) {
  const std::int64_t step = r.keys.size_or({"decoder_sparse_step"}, 1, {1, 1e4}).value;
  const std::vector<std::int64_t> dense = read_layer_numbers(r, {"mlp_only_layers"});
  set_moe_layers(r, [&](std::int64_t i) {
    return (i + 1) % step == 0 && std::find(dense.begin(), dense.end(), i) == dense.end();
  });
}

void read_mtp(HfReading& r) {
  const Size modules = r.keys.size_or_none(
      {"num_nextn_predict_layers", "num_mtp_layers", "mtp_num_hidden_layers", "num_mtp_modules"}, {0, 16});
  if (modules.value == 0 || r.model.layers.empty()) return;
  r.model.mtp_layers = modules;
  r.model.mtp_kind = r.model.layers.back();
}

}  // namespace scalecalc
