// Reads families of recurrences without a matrix of attention: RWKV, arXiv:2305.13048 (4), arXiv:2404.05892 (5, 6),
// arXiv:2503.14456 (7); RecurrentGemma, arXiv:2404.07839, which attends to a window in every third layer.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "import/hf_read.h"

namespace scalecalc {
namespace {

/// flash-linear-attention's class of version 6 counts heads; elsewhere files have under this name the width of a head,
/// or a number that nothing reads.
Size head_width(HfReading& r, const HfRwkv& w) {
  const bool counted = w.version == 6 && r.keys.has({"expand_k"}) && !r.keys.has({"head_size", "head_dim"});
  for (const std::string_view key : {"num_attention_heads", "num_heads"}) r.keys.find({key});
  const auto heads = counted ? r.keys.size({"num_heads"}) : std::nullopt;
  if (!heads) return r.keys.size_or({"head_size", "head_dim"}, 64);
  const bool whole = heads->value > 0 && w.width.value % heads->value == 0;
  if (!whole && heads->known) {
    r.keys.problems().add(heads->where,
                          fmt::format("{} channels are no whole number of {} heads", w.width.value, heads->value));
  }
  return {whole ? w.width.value / heads->value : 1, heads->where, whole};
}

/// What all versions have: norms with biases, one more behind the embedding, and channel mixing of two matrices.
HfRwkv& read_rwkv(HfReading& r, std::int64_t version) {
  HfArchitecture& m = r.model;
  read_width(r, {.max_seq = 4096});
  if (const auto context = r.keys.size({"context_length"})) m.max_seq = *context;
  read_layer_count(r);
  layernorm(r, 2, true);
  m.embedding_norm = true;
  m.gated = false;
  m.receptance = version < 7;
  m.token_shift = version < 7 ? 2 : 1;
  for (std::size_t i = 0; i < m.layers.size(); ++i) m.layers[i] = {.mixer = "rwkv", .reuse = version == 7 && i > 0};
  HfRwkv w{.version = version, .width = m.d_model};
  if (!r.keys.is_null({"attention_hidden_size"})) w.width = r.keys.size_or({"attention_hidden_size"}, m.d_model.value);
  if (version >= 5) {
    w.head_dim = head_width(r, w);
    if (w.head_dim.known && w.width.value % w.head_dim.value != 0) {
      r.keys.problems().add(w.head_dim.where, fmt::format("{} channels are no whole number of heads of {}",
                                                          w.width.value, w.head_dim.value));
    }
  }
  m.rwkv = w;
  return *m.rwkv;
}

/// The width of channel mixing where the file does not say it: whole multiples of 32. RWKV's own classes cut down to
/// one, those of flash-linear-attention, which know `hidden_ratio`, round up (fla/models/rwkv6, rwkv7).
void channel_width(HfReading& r, double times, std::string why) {
  HfArchitecture& m = r.model;
  const ConfigNode* ratio = r.model.rwkv->version < 6 ? nullptr : r.keys.find({"hidden_ratio"});
  if (const auto given = r.keys.size({"intermediate_size"})) {
    m.d_ff = *given;
    return;
  }
  if (ratio != nullptr) {
    if (!ratio->is_null()) times = r.keys.decimal(*ratio, "hidden_ratio", {1e-3, 1e3}).value_or(times);
    why = "hidden_ratio x hidden_size, up to a whole multiple of 32";
  }
  constexpr std::int64_t kUnit = 32;
  const auto width = static_cast<std::int64_t>(times * static_cast<double>(m.d_model.value));
  const std::int64_t more = ratio != nullptr ? kUnit - 1 : 0;
  m.d_ff = {std::max(kUnit, (width + more) / kUnit * kUnit), m.d_model.where};
  r.keys.defaulted("intermediate_size", std::to_string(m.d_ff.value), std::move(why));
}

/// Of flash-linear-attention's classes.
void fla_norms(HfReading& r) {
  r.model.norm_bias = r.keys.flag({"norm_bias"}, true);
  r.model.embedding_norm = r.keys.flag({"norm_first"}, true);
}

void only_recurrences(HfReading& r) {
  if (!r.keys.has({"attn"})) return;
  r.keys.problems().add(r.keys.find({"attn"})->span, "layers of attention between those of RWKV are not read");
}

/// Ranks that follow from the width where the file does not say them.
Size rank_by_width(HfReading& r, HfNames names, std::int64_t narrow) {
  constexpr std::int64_t kWide = 4096;
  return r.keys.size_or(names, r.model.d_model.value < kWide ? narrow : 2 * narrow);
}

/// flash-linear-attention's class has keys and values of other widths unless the file says otherwise.
void only_whole_heads(HfReading& r, HfNames names) {
  const ConfigNode* found = r.keys.find(names);
  if (found == nullptr || found->is_null()) return;
  const auto share = r.keys.decimal(*found, *names.begin(), {0, 100});
  if (share && *share != 1) {
    r.keys.problems().add(found->span, fmt::format("'{}' is read as 1 only", *names.begin()));
  }
}

}  // namespace

void read_rwkv4(HfReading& r) {
  read_rwkv(r, 4);
  channel_width(r, 4, "4 x hidden_size");
}

void read_rwkv5(HfReading& r) {
  read_rwkv(r, 5);
  // Before it versions had no gate, and one decay for a head.
  const std::string version = r.keys.text_or({"model_version", "rwkv_version"}, "5_2");
  if (version != "5_2" && version != "5.2") {
    r.keys.problems().add(r.keys.find({"model_version", "rwkv_version"})->span,
                          fmt::format("RWKV of version {} is not read", in_quotes(version)), "read: 5_2");
  }
  channel_width(r, 3.5, "3.5 x hidden_size, in whole multiples of 32");
}

void read_rwkv6(HfReading& r) {
  HfRwkv& w = read_rwkv(r, 6);
  channel_width(r, 3.5, "3.5 x hidden_size, in whole multiples of 32");
  w.mix_rank = rank_by_width(r, {"lora_rank_tokenshift", "proj_low_rank_dim"}, 32);
  w.decay_rank = rank_by_width(r, {"lora_rank_decay", "gate_low_rank_dim"}, 64);
  only_whole_heads(r, {"expand_k"});
  only_whole_heads(r, {"expand_v"});
  fla_norms(r);
  only_recurrences(r);
}

void read_rwkv7(HfReading& r) {
  HfRwkv& w = read_rwkv(r, 7);
  channel_width(r, 4, "4 x hidden_size");
  w.decay_rank = r.keys.required({"decay_low_rank_dim"}, "rank of the decay's projection");
  w.rate_rank = r.keys.required({"a_low_rank_dim"}, "rank of the learning rate's projection");
  w.value_rank = r.keys.required({"v_low_rank_dim", "value_low_rank_dim"}, "rank of the value residual's projection");
  w.gate_rank = r.keys.required({"gate_low_rank_dim"}, "rank of the gate's projection");
  fla_norms(r);
  if (r.keys.has({"value_dim"})) {
    const Size values = same_for_all(r, {"value_dim"}, "width of the values");
    if (values.known && values.value != w.width.value) {
      r.keys.problems().add(values.where, fmt::format("values of {} channels beside keys of {} are not read",
                                                      values.value, w.width.value));
    }
  }
  only_recurrences(r);
}

/// Two of three layers have a gated linear recurrence; MLPs are half as wide as the file says, and have biases.
void read_recurrent_gemma(HfReading& r) {
  HfArchitecture& m = r.model;
  read_width(r, {.max_seq = 8192});
  read_layer_count(r);
  read_heads(r, {});
  m.qkv_bias = r.keys.flag({"attention_bias"}, false);
  m.o_bias = m.mlp_bias = true;
  m.activation = "gelu";
  const Size both = r.keys.required({"intermediate_size"}, "width of gate and up projection together");
  m.d_ff = {std::max<std::int64_t>(1, both.value / 2), both.where, both.known};
  if (both.known && both.value % 2 != 0) {
    r.keys.problems().add(both.where,
                          fmt::format("'intermediate_size' ({}) is that of two matrices, and odd", both.value));
  }
  m.rglru = HfRglru{r.keys.has({"lru_width"}) ? r.keys.size_or({"lru_width"}, m.d_model.value) : m.d_model, m.heads,
                    r.keys.size_or({"conv1d_width"}, 4, {1, 1000})};
  m.window = r.keys.size_or({"attention_window_size"}, 2048, {1, 1e9});
  std::vector<std::string_view> pattern{"rglru", "rglru", "sliding"};
  if (const ConfigNode* types = r.keys.list({"block_types", "_block_types"});
      types != nullptr && !types->items.empty()) {
    pattern.clear();
    for (const ConfigNode& item : types->items) {
      pattern.emplace_back(item.text == "recurrent" ? "rglru" : "sliding");
      if (item.text == "recurrent" || item.text == "attention") continue;
      r.keys.problems().add(item.span, fmt::format("block type {} is not known", in_quotes(item.text)),
                            "known: recurrent, attention");
    }
  } else {
    r.keys.defaulted("block_types", "recurrent, recurrent, attention", kClassDefault);
  }
  for (std::size_t i = 0; i < m.layers.size(); ++i) m.layers[i].mixer = pattern[i % pattern.size()];
  if (m.rglru->width.value % std::max<std::int64_t>(1, m.heads.value) != 0) {
    r.keys.problems().add(m.heads.where, fmt::format("the recurrence's {} channels are no whole number of {} blocks",
                                                     m.rglru->width.value, m.heads.value));
  }
}

}  // namespace scalecalc
