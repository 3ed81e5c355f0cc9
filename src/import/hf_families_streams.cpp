// Reads families with several residual streams: DeepSeek-V4 (huggingface/transformers: models/deepseek_v4) and Gemma
// 3n (models/gemma3n; ml-explore/mlx-lm: gemma3n.py).
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "import/hf_read.h"

namespace scalecalc {
namespace {

constexpr std::int64_t kCsaRatio = 4, kHcaRatio = 128;

std::optional<std::string_view> compressed_mixer(std::string_view word) {
  if (word == "0" || word == "sliding_attention") return "sliding";
  if (word == "4" || word == "compressed_sparse_attention") return "csa";
  if (word == "128" || word == "heavily_compressed_attention") return "hca";
  return std::nullopt;
}

/// Ratios by the names of layer_types are those that are known.
void check_rates(HfReading& r) {
  const ConfigNode* rates = r.keys.find({"compress_rates"});
  if (rates == nullptr || rates->is_null()) return;
  for (const ConfigNode::Entry& entry : rates->entries) {
    const auto mixer = compressed_mixer(entry.key);
    if (mixer && compressed_mixer(entry.value.text) == mixer) continue;
    r.keys.problems().add(
        entry.value.span,
        fmt::format("'compress_rates' gives {} a rate of {}", in_quotes(entry.key), in_quotes(entry.value.text)),
        "read: compressed_sparse_attention 4, heavily_compressed_attention 128");
  }
  if (rates->entries.empty()) r.keys.problems().add(rates->span, "'compress_rates' must be a map of rates");
}

/// One ratio or word a layer; the list goes on for the prediction modules.
void read_compression(HfReading& r) {
  HfArchitecture& m = r.model;
  const ConfigNode* list = r.keys.list({"layer_types"});
  const ConfigNode* ratios = r.keys.list({"compress_ratios"});
  if (list == nullptr) list = ratios;
  if (list == nullptr) {
    r.keys.defaulted("layer_types", "two heavily compressed layers, then sparse and heavily compressed ones in turn",
                     kClassDefault);
    for (std::size_t i = 0; i < m.layers.size(); ++i) m.layers[i].mixer = i < 2 || i % 2 == 1 ? "hca" : "csa";
    return;
  }
  if (list->items.size() < m.layers.size() || list->items.size() > m.layers.size() + 16) {
    r.keys.problems().add(
        list->span, fmt::format("{} layers are listed, and the model has {}", list->items.size(), m.layers.size()));
    return;
  }
  for (std::size_t i = 0; i < m.layers.size(); ++i) {
    const auto mixer = compressed_mixer(list->items[i].text);
    if (!mixer) {
      r.keys.problems().add(list->items[i].span,
                            fmt::format("compression {} is not known", in_quotes(list->items[i].text)),
                            "known: 0 (a window alone), 4, 128, or the names of layer_types");
    }
    m.layers[i].mixer = mixer.value_or("sliding");
    const auto ratio = ratios == nullptr || ratios == list || i >= ratios->items.size()
                           ? mixer
                           : compressed_mixer(ratios->items[i].text);
    if (ratio != mixer) {
      r.keys.problems().add(ratios->items[i].span, "'compress_ratios' and 'layer_types' say different things");
    }
  }
}

/// The first layers' experts are chosen by a table of token ids.
void read_hashed(HfReading& r) {
  HfArchitecture& m = r.model;
  if (const ConfigNode* listed = r.keys.list({"mlp_layer_types"})) {
    r.keys.find({"num_hash_layers"});
    if (listed->items.size() < m.layers.size()) {
      r.keys.problems().add(listed->span, fmt::format("'mlp_layer_types' lists {} layers, and the model has {}",
                                                      listed->items.size(), m.layers.size()));
      return;
    }
    for (std::size_t i = 0; i < m.layers.size(); ++i) {
      const ConfigNode& item = listed->items[i];
      if (item.text != "hash_moe" && item.text != "moe" && item.text != "sparse") {
        r.keys.problems().add(item.span, fmt::format("MLP layer type {} is not known", in_quotes(item.text)),
                              "known: hash_moe, moe");
      }
      m.layers[i].hashed = item.text == "hash_moe";
    }
    return;
  }
  const Size count = r.keys.size_or({"num_hash_layers"}, 3, {0, 1e4});
  for (std::size_t i = 0; i < m.layers.size(); ++i) m.layers[i].hashed = static_cast<std::int64_t>(i) < count.value;
}

}  // namespace

void read_deepseek_v4(HfReading& r) {
  HfArchitecture& m = r.model;
  read_width(r, {.max_seq = 1048576});
  read_layer_count(r);
  read_heads(r, {.kv_heads = 1, .head_dim = 512});
  m.sinks = true;
  m.local_sinks = true;
  m.window = r.keys.size_or({"sliding_window"}, 128, {1, 1e9});
  m.compressed = HfCompressed{r.keys.size_or({"q_lora_rank"}, 1024),
                              r.keys.size_or({"o_lora_rank"}, 1024),
                              r.keys.size_or({"o_groups"}, 8),
                              {kCsaRatio, m.heads.where},
                              {kHcaRatio, m.heads.where}};
  check_rates(r);
  read_compression(r);
  const HfIndexer indexer{r.keys.size_or({"index_n_heads"}, 64), r.keys.size_or({"index_head_dim"}, 128),
                          r.keys.size_or({"index_topk"}, 512)};
  if (m.has_mixer("csa")) m.indexer = indexer;
  if (m.kv_heads.value != 1) {
    r.keys.problems().add(m.kv_heads.where, "'num_key_value_heads' of compressed attention is 1");
  }
  m.streams = r.keys.size_or({"hc_mult"}, 4, {1, 64});
  if (!read_moe(r, {.experts = 256, .top_k = 6})) {
    r.keys.problems().add(r.keys.span(), "the file has no experts, and all layers of DeepSeek-V4 have them");
    return;
  }
  m.moe->router_correction_bias = true;
  read_shared_experts(r, 1);
  for (HfLayer& layer : m.layers) layer.ffn = "moe";
  read_hashed(r);
  read_mtp(r);
  m.mtp_kind.hashed = false;
  if (m.mtp_layers.value > 0) m.mtp_kind.mixer = "sliding";  // the ratio behind the layers' is 0
  for (const std::string_view key : {"qk_nope_head_dim", "kv_lora_rank", "v_head_dim", "first_k_dense_replace"}) {
    r.keys.find({key});
  }
}

/// A layer works on one of four streams, the others are predicted and corrected; layers at the end take keys and values
/// of earlier ones, and store projections of their own.
void read_gemma3n(HfReading& r) {
  HfArchitecture& m = r.model;
  read_width(r, {.d_model = 2048, .vocab = 262400, .max_seq = 32768});
  read_layer_count(r, 35);
  read_heads(r, {.heads = 8, .kv_heads = 2, .head_dim = 256});
  m.d_ff = r.keys.has({"intermediate_size"}) ? same_for_all(r, {"intermediate_size"}, "width of the MLP")
                                             : r.keys.size_or({"intermediate_size"}, 16384);
  read_attention_bias(r, false);
  m.activation = "gelu";
  m.norms_per_layer = 4;
  m.qk_norm = "head_dim";
  if (!r.keys.has({"layer_types"})) r.keys.defaulted("layer_types", "every fifth layer full", kClassDefault);
  set_sliding(r, read_window(r, 512), [](std::int64_t i) { return (i + 1) % 5 != 0; });
  share_keys(r, 15);
  m.reuse_stored = true;
  m.streams = r.keys.size_or({"altup_num_inputs"}, 4, {1, 64});
  m.stream_kind = "altup";
  m.laurel_rank = r.keys.size_or({"laurel_rank"}, 64);
  m.per_layer = HfPerLayer{r.keys.size_or({"hidden_size_per_layer_input"}, 256),
                           r.keys.size_or({"vocab_size_per_layer_input"}, 262144)};
  const ConfigNode* sparse = r.keys.find({"activation_sparsity_pattern"});
  if (sparse != nullptr && !sparse->is_null()) {
    r.keys.remark("activations that activation_sparsity_pattern drops are multiplied all the same here");
  }
  for (const std::string_view key : {"altup_active_idx", "altup_coef_clip", "altup_correct_scale"}) r.keys.find({key});
}

}  // namespace scalecalc
