// Families whose tokens attend in both directions or to another stack's output: BERT, arXiv:1810.04805; ModernBERT,
// arXiv:2412.13663; T5, arXiv:1910.10683; Whisper, arXiv:2212.04356; Llama 3.2 Vision.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "import/hf_read.h"

namespace scalecalc {
namespace {

void refuse_set(HfReading& r, HfNames names, std::string_view what) {
  if (!r.keys.flag(names, false)) return;
  r.keys.problems().add(r.keys.find(names)->span, fmt::format("'{}' is set: {}", *names.begin(), what));
}

/// Width and heads of an encoder whose layers are full attention with `d_kv` wide heads.
HfTower encoder_of(const HfArchitecture& m, std::int64_t layers, const SourceSpan& where) {
  HfTower t;
  t.name = "encoder";
  t.counted = true;
  t.d_model = m.d_model;
  t.layers = {layers, where};
  t.heads = m.heads;
  t.head_dim = m.head_dim;
  t.d_ff = m.d_ff;
  t.gated = m.gated;
  t.final_norm = true;
  return t;
}

}  // namespace

/// Positions and segments are tables beside the words'; norms behind each part, and none at the end.
void read_bert(HfReading& r) {
  HfArchitecture& m = r.model;
  read_shape(r, {.max_seq = 512});
  all_biases(r);
  m.causal = m.final_norm = false;
  m.embedding_norm = true;
  m.encoder = HfEncoder::kBert;
  const Size segments = r.keys.size_or({"type_vocab_size"}, 2, {0, 1e6});
  m.learned_positions = {m.max_seq.value + segments.value, m.max_seq.where};
  refuse_set(r, {"is_decoder"}, "a BERT that generates is not read");
  refuse_set(r, {"add_cross_attention"}, "a BERT with cross attention is not read");
  const std::string kind = r.keys.text_or({"position_embedding_type"}, "absolute");
  if (kind != "absolute") {
    r.keys.problems().add(r.keys.find({"position_embedding_type"})->span,
                          fmt::format("positions of kind {} are not read", in_quotes(kind)), "read: absolute");
  }
}

/// Every third layer attends to all, the others to a window around each token; the first has no norm before attention.
void read_modernbert(HfReading& r) {
  HfArchitecture& m = r.model;
  read_shape(r, {.max_seq = 8192});
  layernorm(r, 2, r.keys.flag({"norm_bias"}, false));
  read_attention_bias(r, false);
  m.mlp_bias = r.keys.flag({"mlp_bias"}, false);
  m.causal = false;
  m.embedding_norm = true;
  m.encoder = HfEncoder::kModernBert;
  const Size window = r.keys.size_or({"local_attention", "sliding_window"}, 128, {1, 1e9});
  const bool listed = r.keys.has({"layer_types"});
  const std::int64_t every = listed ? 1 : r.keys.size_or({"global_attn_every_n_layers"}, 3, {1, 1e4}).value;
  r.keys.find({"global_attn_every_n_layers"});
  set_sliding(r, window, [&](std::int64_t i) { return i % every != 0; });
  if (!m.layers.empty()) m.layers.front().norms = 1;
  for (const HfNames& names : {HfNames{"classifier_bias"}, HfNames{"decoder_bias"}}) {
    const bool usual = *names.begin() == "decoder_bias";
    if (r.keys.flag(names, usual) == usual) continue;
    r.keys.problems().add(r.keys.find(names)->span,
                          fmt::format("'{}' is read as {} only", *names.begin(), usual ? "true" : "false"));
  }
}

/// An encoder and a decoder of one width; distances add to the scores from a table in each stack's first layer, of
/// umT5 in every layer.
void read_t5(HfReading& r) {
  HfArchitecture& m = r.model;
  read_width(r, {.max_seq = 512});
  const Size layers = r.keys.required({"num_layers"}, "layers of the encoder", {1, 1e4});
  const Size decoder = r.keys.size_or({"num_decoder_layers"}, layers.value, {1, 1e4});
  m.layers.assign(static_cast<std::size_t>(decoder.value), {.mixer = "full+cross"});
  m.heads = m.kv_heads = r.keys.required({"num_heads"}, "attention heads");
  m.head_dim = r.keys.required({"d_kv"}, "width of a head");
  m.d_ff = r.keys.required({"d_ff"}, "width of the MLP");
  const bool later = r.family.name != "t5";
  const std::string kind = r.keys.text_or({"feed_forward_proj"}, later ? "gated-gelu" : "relu");
  m.gated = kind.starts_with("gated-");
  for (const HfNames& names : {HfNames{"is_gated_act"}, HfNames{"is_encoder_decoder"}}) {
    const bool expected = *names.begin() == "is_gated_act" ? m.gated : true;
    if (r.keys.flag(names, expected) == expected) continue;
    r.keys.problems().add(r.keys.find(names)->span,
                          fmt::format("'{}' is {}, and the file is read as {}", *names.begin(), !expected, expected));
  }
  const std::int64_t buckets = r.keys.size_or({"relative_attention_num_buckets"}, 32).value;
  const std::int64_t tables = r.family.name == "umt5" ? layers.value : 1;
  HfTower encoder = encoder_of(m, layers.value, layers.where);
  encoder.layernorm = encoder.qkv_bias = encoder.o_bias = encoder.mlp_bias = false;
  encoder.position_biases = tables * buckets * m.heads.value;
  m.position_biases = {(r.family.name == "umt5" ? decoder.value : 1) * buckets * m.heads.value, m.heads.where};
  m.towers.push_back(encoder);
  for (const std::string_view key : {"relative_attention_max_distance", "dense_act_fn", "num_hidden_layers"}) {
    r.keys.find({key});
  }
}

/// Frames of sound through two convolutions, of which the second halves them; keys have no bias.
void read_whisper(HfReading& r) {
  HfArchitecture& m = r.model;
  m.d_model = r.keys.required({"d_model"}, "width of the model");
  m.vocab = r.keys.required({"vocab_size"}, "entries of the vocabulary");
  m.max_seq = r.keys.size_or({"max_target_positions"}, 448);
  m.tied_embeddings = r.keys.flag({"tie_word_embeddings"}, true);
  const Size layers = r.keys.required({"encoder_layers"}, "layers of the encoder", {1, 1e4});
  const Size decoder = r.keys.required({"decoder_layers"}, "layers of the decoder", {1, 1e4});
  m.layers.assign(static_cast<std::size_t>(decoder.value), {.mixer = "full+cross"});
  m.heads = m.kv_heads = r.keys.required({"decoder_attention_heads"}, "heads of the decoder");
  m.head_dim = {std::max<std::int64_t>(1, m.d_model.value / std::max<std::int64_t>(1, m.heads.value)), m.heads.where};
  m.d_ff = r.keys.required({"decoder_ffn_dim"}, "width of the decoder's MLP");
  all_biases(r);
  m.key_bias = false;
  m.learned_positions = m.max_seq;
  const Size frames = r.keys.size_or({"max_source_positions"}, 1500);
  const Size bands = r.keys.size_or({"num_mel_bins"}, 80);
  m.cross_tokens = frames;
  HfTower encoder = encoder_of(m, layers.value, layers.where);
  encoder.heads = r.keys.required({"encoder_attention_heads"}, "heads of the encoder");
  encoder.head_dim = {};
  encoder.d_ff = r.keys.required({"encoder_ffn_dim"}, "width of the encoder's MLP");
  encoder.key_bias = false;
  constexpr std::int64_t kTaps = 3;
  const std::int64_t d = m.d_model.value;
  encoder.stem = {{kTaps * bands.value, d, true}, {kTaps * d, d, true}};
  encoder.learned_positions = encoder.tokens = frames.value;
  m.towers.push_back(encoder);
  for (const HfNames& names : {HfNames{"is_encoder_decoder"}}) {
    if (!r.keys.flag(names, true)) {
      r.keys.problems().add(r.keys.find(names)->span, "'is_encoder_decoder' is false, and Whisper has both");
    }
  }
  // Repeats encoder_layers for libraries that ask for it.
  if (const auto repeated = r.keys.size({"num_hidden_layers"}); repeated && repeated->value != layers.value) {
    r.keys.problems().add(repeated->where, fmt::format("'num_hidden_layers' is {}, and 'encoder_layers' is {}",
                                                       repeated->value, layers.value));
  }
}

/// Some layers attend to what the vision tower hands on, and to nothing else; a few tokens have an embedding and no row
/// of the head.
void read_mllama(HfReading& r) {
  HfArchitecture& m = r.model;
  read_shape(r, {.kv_heads = 8, .max_seq = 131072});
  m.cross_gates = true;
  refuse_set(r, {"add_cross_attention"}, "the layers that attend to images are those of 'cross_attention_layers'");
  const std::vector<std::int64_t> across = read_layer_numbers(r, {"cross_attention_layers"});
  if (across.empty()) {
    r.keys.problems().add(r.keys.span(), "the file has no 'cross_attention_layers' (numbers of layers)");
  }
  for (const std::int64_t i : across) {
    if (i < m.layer_count()) m.layers[static_cast<std::size_t>(i)].mixer = "cross";
  }
  constexpr std::int64_t kSpecial = 8;
  m.input_tokens = {kSpecial, m.vocab.where};
}

}  // namespace scalecalc
