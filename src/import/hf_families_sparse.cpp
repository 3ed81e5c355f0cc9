// Reads more families with routed experts.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "import/hf_read.h"

namespace scalecalc {

/// Trinity of Arcee: norms before and behind each part, a gate of the output, full attention in every so many layers.
void read_afmoe(HfReading& r) {
  HfArchitecture& m = r.model;
  read_shape(r, {.head_dim = 128, .max_seq = 16384});
  read_attention_bias(r, false);
  m.norms_per_layer = 4;
  m.qk_norm = "head_dim";
  m.output_gate = true;
  const std::int64_t every = r.keys.size_or({"global_attn_every_n_layers"}, 4, {1, 1e4}).value;
  set_sliding(r, read_window(r, 1024), [&](std::int64_t i) { return (i + 1) % every != 0; });
  if (!read_moe(r, {.experts = 64, .top_k = 6, .d_ff = 1408})) return;
  read_shared_experts(r, 2);
  const std::int64_t dense = r.keys.size_or({"num_dense_layers"}, 1, {0, 1e4}).value;
  set_moe_layers(r, [&](std::int64_t i) { return i >= dense; });
  m.moe->router_correction_bias = true;
  read_groups(r, 1, 1);
  for (const HfNames& names : {HfNames{"num_expert_groups"}, HfNames{"num_limited_groups"}}) {
    if (r.keys.size_or(names, 1, {0, 1e4}).value > 1) {
      r.keys.problems().add(r.keys.find(names)->span, fmt::format("'{}' is read as 1 only", *names.begin()));
    }
  }
}

namespace {

/// One number of heads in full layers and one in sliding ones.
void heads_by_kind(HfReading& r) {
  HfArchitecture& m = r.model;
  const ConfigNode* listed = r.keys.list({"num_attention_heads_per_layer"});
  if (listed == nullptr) {
    r.keys.defaulted("num_attention_heads_per_layer", "num_attention_heads in every layer", kClassDefault);
    return;
  }
  if (listed->items.size() != m.layers.size()) {
    r.keys.problems().add(listed->span, fmt::format("'num_attention_heads_per_layer' lists {} layers, and the model "
                                                    "has {}",
                                                    listed->items.size(), m.layers.size()));
    return;
  }
  Size full, sliding;
  for (std::size_t i = 0; i < m.layers.size(); ++i) {
    const auto heads = r.keys.whole(listed->items[i], "num_attention_heads_per_layer");
    if (!heads) return;
    Size& known = m.layers[i].mixer == "sliding" ? sliding : full;
    if (known.value == 0) known = *heads;
    if (known.value == heads->value) continue;
    r.keys.problems().add(
        heads->where, fmt::format("layers of one kind with {} and {} heads are not read", known.value, heads->value));
    return;
  }
  if (full.value > 0) m.heads = full;
  if (sliding.value > 0) m.local = HfLocal{sliding, m.kv_heads, m.head_dim, m.head_dim};
}

}  // namespace

/// Laguna of Poolside: other numbers of heads in sliding layers, each of which a gate scales.
void read_laguna(HfReading& r) {
  HfArchitecture& m = r.model;
  read_shape(r, {.kv_heads = 8, .head_dim = 128, .max_seq = 131072});
  read_attention_bias(r, false);
  m.qk_norm = "head_dim";
  if (r.keys.find({"gating"}) == nullptr) r.keys.defaulted("gating", "per-head", kClassDefault);
  const std::string gates = r.keys.text_or({"gating"}, "per-head");
  m.head_gate = gates == "per-head" || gates == "true";
  m.output_gate = gates == "per-element";
  if (!m.head_gate && !m.output_gate && gates != "false") {
    r.keys.problems().add(r.keys.find({"gating"})->span, fmt::format("gates of kind {} are not read", in_quotes(gates)),
                          "read: per-head, per-element");
  }
  set_sliding(r, read_window(r, 512), [](std::int64_t) { return false; });
  heads_by_kind(r);
  if (!read_moe(r, {.experts = 256, .top_k = 8, .d_ff = 512})) return;
  read_shared_width(r, {"shared_expert_intermediate_size"}, 512);
  const std::vector<std::int64_t> dense = read_layer_numbers(r, {"mlp_only_layers"});
  if (dense.empty()) r.keys.defaulted("mlp_only_layers", "the first layer", kClassDefault);
  const std::int64_t step = r.keys.size_or({"decoder_sparse_step"}, 1, {1, 1e4}).value;
  set_moe_layers(r, [&](std::int64_t i) {
    if (dense.empty()) return i > 0;
    return (i + 1) % step == 0 && std::find(dense.begin(), dense.end(), i) == dense.end();
  });
  m.moe->router_correction_bias = true;
}

/// Solar Open of Upstage: GLM-4.5's experts in every layer.
void read_solar_open(HfReading& r) {
  HfArchitecture& m = r.model;
  read_shape(r, {.kv_heads = 8, .head_dim = 128, .max_seq = 131072, .d_ff = DffRule::kOptional});
  m.qkv_bias = r.keys.flag({"attention_bias"}, false);  // the output projection never has one
  if (!read_moe(r, {.experts = 128, .top_k = 8, .d_ff = 1280})) return;
  read_shared_experts(r, 1);
  r.keys.find({"first_k_dense_replace"});  // the class has experts in every layer whatever it says
  set_moe_layers(r, [](std::int64_t) { return true; });
  m.moe->router_correction_bias = true;
  read_groups(r, 1, 1);
}

void read_glm4v_moe(HfReading& r) {
  read_glm4_moe(r);
  r.model.qkv_bias = r.keys.flag({"attention_bias"}, true);
}

/// Of several layers that follow each other (cla_share_factor) the first has keys and values, which the others read and
/// norm anew (HunYuanAttention, which makes both norms whatever a layer reads).
void read_hunyuan_attention(HfReading& r) {
  HfArchitecture& m = r.model;
  read_attention_bias(r, false);
  m.mlp_bias = r.keys.flag({"mlp_bias"}, false);
  r.keys.find({"cla_share_factor"});  // says nothing without use_cla
  if (r.keys.flag({"use_cla"}, false)) {
    const std::int64_t factor = r.keys.size_or({"cla_share_factor"}, 1, {1, 1e4}).value;
    for (std::int64_t i = 0; i < m.layer_count(); ++i) m.layers[static_cast<std::size_t>(i)].reuse = i % factor != 0;
  }
  const bool reuses = std::any_of(m.layers.begin(), m.layers.end(), [](const HfLayer& layer) { return layer.reuse; });
  if (r.keys.flag({"use_qk_norm"}, true)) m.qk_norm = reuses ? "head_dim_reused" : "head_dim";
}

/// Its files list a number for each layer where others have one.
void read_hunyuan_moe(HfReading& r) {
  HfArchitecture& m = r.model;
  read_shape(r, {.max_seq = 2048});
  read_hunyuan_attention(r);
  HfMoe moe;
  moe.experts = same_for_all(r, {"num_experts"}, "routed experts", {1, 1e5});
  if (moe.experts.value <= 1) return;
  moe.top_k = same_for_all(r, {"moe_topk"}, "experts a token visits", {1, 1e5});
  const bool own_width = r.keys.has({"moe_intermediate_size"});
  moe.d_ff = own_width ? same_for_all(r, {"moe_intermediate_size"}, "width of an expert") : m.d_ff;
  if (moe.top_k.known && moe.experts.known && moe.top_k.value > moe.experts.value) {
    r.keys.problems().add(moe.top_k.where, fmt::format("a token visits {} experts, and there are {}", moe.top_k.value,
                                                       moe.experts.value));
  }
  if (r.keys.has({"num_shared_expert"}) && r.keys.flag({"use_mixed_mlp_moe"}, true)) {
    moe.shared_experts = same_for_all(r, {"num_shared_expert"}, "shared experts", {0, 1e4});
    moe.shared_d_ff = {moe.shared_experts.value * m.d_ff.value, moe.shared_experts.where};
  }
  m.moe = moe;
  const std::int64_t dense = r.keys.size_or_none({"moe_layer_num_skipped"}, {0, 1e4}).value;
  set_moe_layers(r, [&](std::int64_t i) { return i >= dense; });
}

void read_granitemoe(HfReading& r) {
  read_shape(r, {.max_seq = 2048});
  read_attention_bias(r, false);
  if (!read_moe(r, {.experts = 8, .top_k = 2})) return;
  read_shared_width(r, {"shared_intermediate_size"}, 0);
  set_moe_layers(r, [](std::int64_t) { return true; });
}

void read_bailing_moe(HfReading& r) {
  read_shape(r, {.max_seq = 16384});
  r.model.qkv_bias = r.keys.flag({"use_qkv_bias"}, false);
  r.model.o_bias = r.keys.flag({"use_bias"}, false);
  if (!read_moe(r, {})) return;
  read_shared_experts(r, 0);
  dense_prefix(r, 0);
}

/// Two latent attentions and two dense MLPs a layer, and experts beside them that read what the first MLP reads: two
/// layers here, of which the first has its dense MLP as a shared expert. A choice of the router may be no expert at
/// all.
void read_longcat_flash(HfReading& r) {
  HfArchitecture& m = r.model;
  read_mla_shape(r, {131072, 1536, 512, 128, 64, 128});
  if (!read_moe(r, {.experts = 512, .top_k = 12})) return;
  HfMoe& moe = *m.moe;
  moe.zero_experts = r.keys.size_or_none({"zero_expert_num"}, {0, 1e5});
  const std::int64_t choices = moe.experts.value + moe.zero_experts.value;
  if (moe.top_k.value * moe.experts.value % choices != 0) {
    r.keys.problems().add(moe.top_k.where, fmt::format("of {} choices among {} experts and {} that are none, the mean "
                                                       "number of experts is no whole number",
                                                       moe.top_k.value, moe.experts.value, moe.zero_experts.value));
    return;
  }
  if (moe.zero_experts.value > 0) {
    const std::int64_t asked = moe.top_k.value;
    moe.top_k.value = asked * moe.experts.value / choices;
    r.keys.remark(fmt::format("{} of a token's {} choices are experts on average, the others cost nothing",
                              moe.top_k.value, asked));
  }
  moe.shared_experts = {1, m.d_ff.where};
  moe.shared_d_ff = m.d_ff;
  moe.router_correction_bias = true;
  if (r.keys.flag({"router_bias"}, false)) moe.router_bias = true;
  m.layers.assign(2 * m.layers.size(), m.layers.empty() ? HfLayer{} : m.layers.front());
  for (std::size_t i = 0; i < m.layers.size(); ++i) m.layers[i].ffn = i % 2 == 0 ? "moe" : "dense";
}

/// LongCat-Flash-Lite, arXiv:2601.21204: for each length of n-grams from two on so many tables of hashes, each two rows
/// longer than the last, whose rows together are as wide as the model.
void read_longcat_flash_ngram(HfReading& r) {
  HfArchitecture& m = r.model;
  read_longcat_flash(r);
  const Size longest = r.keys.required({"emb_neighbor_num"}, "tokens of the longest n-gram", {2, 100});
  const Size splits = r.keys.required({"emb_split_num"}, "tables of each length of n-grams", {1, 100});
  const ConfigNode* said = r.keys.find({"ngram_vocab_size_ratio"});
  if (said == nullptr || said->is_null()) {
    r.keys.problems().add(r.keys.span(), "the file has no 'ngram_vocab_size_ratio' (rows of a table / vocabulary)");
    return;
  }
  const auto ratio = r.keys.decimal(*said, "ngram_vocab_size_ratio", {1e-3, 1e6});
  const std::int64_t tables = splits.value * (longest.value - 1);
  if (!ratio || !longest.known || !splits.known) return;
  if (m.d_model.value % tables != 0) {
    r.keys.problems().add(splits.where,
                          fmt::format("{} tables do not divide the width of {}", tables, m.d_model.value));
    return;
  }
  const auto rows = static_cast<std::int64_t>(*ratio * static_cast<double>(m.vocab.value));
  m.ngrams = HfNgrams{
      {tables, splits.where}, {tables * rows + tables * tables, said->span}, {m.d_model.value / tables, splits.where}};
  r.keys.remark(fmt::format("{} tables of n-grams have {} rows together", tables, m.ngrams->rows.value));
}

namespace {

/// Layers marked 1 choose blocks of keys by an indexer; the others attend to all.
void block_sparse(HfReading& r) {
  HfArchitecture& m = r.model;
  const HfNames marks{"sparse_attention_config.sparse_attention_freq", "sparse_attention_freq"};
  const ConfigNode* listed = r.keys.list(marks);
  if (listed == nullptr || listed->items.size() != m.layers.size()) {
    r.keys.problems().add(
        listed == nullptr ? r.keys.span() : listed->span,
        fmt::format("'sparse_attention_freq' must mark each of the {} layers with 0 or 1", m.layers.size()));
    return;
  }
  const auto size = [&](HfNames names, std::int64_t otherwise) { return r.keys.size_or(names, otherwise); };
  const Size block = size({"sparse_attention_config.sparse_block_size", "index_block_size"}, 128);
  const Size top = size({"sparse_attention_config.sparse_topk_blocks", "index_topk_blocks"}, 16);
  const Size local = r.keys.size_or({"sparse_attention_config.sparse_local_block", "index_local_blocks"}, 1, {0, 1e6});
  const Size first = r.keys.size_or({"sparse_attention_config.sparse_init_block"}, 0, {0, 1e6});
  m.indexer = HfIndexer{.heads = size({"sparse_attention_config.sparse_num_index_heads", "index_n_heads"}, 4),
                        .head_dim = size({"sparse_attention_config.sparse_index_dim", "index_head_dim"}, 128),
                        .top_k = {(top.value + local.value + first.value) * block.value, top.where},
                        .weights = false};
  for (std::size_t i = 0; i < m.layers.size(); ++i) {
    const auto mark = r.keys.whole(listed->items[i], "sparse_attention_freq", {0, 1});
    m.layers[i].whole = mark && mark->value == 0;
  }
  if (std::all_of(m.layers.begin(), m.layers.end(), [](const HfLayer& layer) { return layer.whole; })) {
    m.indexer.reset();
    for (HfLayer& layer : m.layers) layer.whole = false;
  }
}

}  // namespace

void read_minimax_m3(HfReading& r) {
  HfArchitecture& m = r.model;
  read_shape(r, {.kv_heads = 4, .head_dim = 128, .max_seq = 1048576});
  if (r.keys.flag({"use_qk_norm"}, true)) m.qk_norm = "head_dim";
  const std::string kind = r.keys.text_or({"qk_norm_type"}, "per_head");
  if (kind != "per_head") {
    r.keys.problems().add(r.keys.find({"qk_norm_type"})->span, "'qk_norm_type' is read as per_head only");
  }
  m.output_gate = r.keys.flag({"attention_output_gate"}, false);
  block_sparse(r);
  if (!read_moe(r, {.experts = 128, .top_k = 4})) return;
  m.moe->router_correction_bias = r.keys.flag({"use_routing_bias"}, true);
  const Size shared = r.keys.size_or({"n_shared_experts"}, 1, {0, 16});
  read_shared_width(r, {"shared_intermediate_size"}, shared.value * m.moe->d_ff.value);
  dense_prefix(r, 0);
  if (m.has_ffn("dense")) m.d_ff = r.keys.required({"dense_intermediate_size"}, "width of a dense MLP");
  // A module the file counts here is stored; num_mtp_modules is what was trained.
  const Size modules = r.keys.size_or_none({"num_nextn_predict_layers"}, {0, 16});
  r.keys.find({"num_mtp_modules"});
  if (modules.value > 0) m.mtp_layers = modules, m.mtp_kind = m.layers.back();
}

namespace {

/// "3,4,5": the layers with experts.
std::vector<bool> listed_experts(HfReading& r, const ConfigNode& enumerated) {
  std::vector<bool> out(r.model.layers.size(), false);
  for (std::string_view rest = enumerated.text; !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    ConfigNode item;
    item.text = std::string(rest.substr(0, comma));
    item.span = enumerated.span;
    const auto number = r.keys.whole(item, "moe_layers_enum", {0, static_cast<double>(out.size()) - 1});
    if (number) out[static_cast<std::size_t>(number->value)] = true;
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return out;
}

}  // namespace

void read_step3p7(HfReading& r) {
  HfArchitecture& m = r.model;
  read_width(r, {.max_seq = 262144});
  read_layer_count(r);
  const auto groups = r.keys.size({"num_attention_groups"});
  read_heads(r, {.head_dim = 128});
  if (groups) m.kv_heads = *groups;
  read_d_ff(r, DffRule::kRequired);
  m.qk_norm = "head_dim";
  m.head_gate = r.keys.flag({"use_head_wise_attn_gate"}, true);
  set_sliding(r, read_window(r, 512), [](std::int64_t i) { return i % 4 != 0; });
  if (m.has_mixer("sliding")) {
    const Size heads = r.keys.required({"attention_other_setting.num_attention_heads", "sliding_num_attention_heads"},
                                       "attention heads of a sliding layer");
    const Size kv = r.keys.size_or({"attention_other_setting.num_attention_groups"}, m.kv_heads.value);
    const Size dim = r.keys.size_or({"attention_other_setting.head_dim"}, m.head_dim.value);
    m.local = HfLocal{heads, kv, dim, dim};
  }
  if (!read_moe(r, {})) return;
  read_shared_width(r, {"share_expert_dim"}, m.moe->d_ff.value);
  r.keys.find({"n_shared_experts"});
  m.moe->router_correction_bias = r.keys.flag({"use_moe_router_bias"}, true);
  const ConfigNode* enumerated = r.keys.find({"moe_layers_enum"});
  if (enumerated != nullptr && !enumerated->is_null()) {
    const std::vector<bool> chosen = listed_experts(r, *enumerated);
    set_moe_layers(r, [&](std::int64_t i) { return chosen[static_cast<std::size_t>(i)]; });
  } else {
    dense_prefix(r, 3);
  }
  read_mtp(r);
}

}  // namespace scalecalc
