// Reads families whose tokens attend in both directions or to another stack's output: BERT, arXiv:1810.04805, and its
// kin; ModernBERT, arXiv:2412.13663; T5, arXiv:1910.10683; BART and its kin; Whisper, arXiv:2212.04356; Llama 3.2
// Vision.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "import/hf_checks.h"
#include "import/hf_class.h"
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

namespace {

/// Norms behind each part, and none at the end; the sum of the tables is normed.
void as_bert(HfReading& r, HfEncoder kind) {
  HfArchitecture& m = r.model;
  all_biases(r);
  m.causal = m.final_norm = false;
  m.embedding_norm = true;
  m.encoder = kind;
}

void only_absolute_positions(HfReading& r) {
  const std::string kind = r.keys.text_or({"position_embedding_type"}, "absolute");
  if (kind == "absolute") return;
  r.keys.problems().add(r.keys.find({"position_embedding_type"})->span,
                        fmt::format("positions of kind {} are not read", in_quotes(kind)), "read: absolute");
}

}  // namespace

/// Positions and segments are tables beside the words'.
void read_bert(HfReading& r) {
  HfArchitecture& m = r.model;
  read_shape(r, {.max_seq = 512});
  as_bert(r, HfEncoder::kBert);
  const Size segments = r.keys.size_or({"type_vocab_size"}, 2, {0, 1e6});
  m.learned_positions = {m.max_seq.value + segments.value, m.max_seq.where};
  refuse_set(r, {"is_decoder"}, "a BERT that generates is not read");
  refuse_set(r, {"add_cross_attention"}, "a BERT with cross attention is not read");
  only_absolute_positions(r);
}

/// DistilBERT, arXiv:1910.01108: BERT's layers under other names, without segments and pooler.
void read_distilbert(HfReading& r) {
  HfArchitecture& m = r.model;
  m.d_model = r.keys.required({"dim", "hidden_size"}, "width of the model");
  m.vocab = r.keys.required({"vocab_size"}, "entries of the vocabulary");
  m.max_seq = r.keys.size_or({"max_position_embeddings"}, 512);
  const Size layers = r.keys.required({"n_layers", "num_hidden_layers"}, "number of layers", {1, 1e4});
  m.layers.assign(static_cast<std::size_t>(layers.value), {});
  m.heads = m.kv_heads = r.keys.required({"n_heads", "num_attention_heads"}, "attention heads");
  m.head_dim = {std::max<std::int64_t>(1, m.d_model.value / std::max<std::int64_t>(1, m.heads.value)), m.heads.where};
  m.d_ff = r.keys.required({"hidden_dim"}, "width of the MLP");
  as_bert(r, HfEncoder::kUnpooled);
  m.tied_embeddings = r.keys.flag({"tie_word_embeddings"}, true);
  m.learned_positions = m.max_seq;
  r.keys.flag({"sinusoidal_pos_embds"}, false);  // the table is there either way
}

namespace {

/// A width that the layers' own must equal.
void same_as_model(HfReading& r, HfNames names) {
  const auto width = r.keys.size(names);
  if (!width || width->value == r.model.d_model.value) return;
  r.keys.problems().add(width->where, fmt::format("'{}' is {}, and is read as hidden_size ({}) only", *names.begin(),
                                                  width->value, r.model.d_model.value));
}

/// "p2c|c2p", or a list of both.
void only_both_position_scores(HfReading& r) {
  const ConfigNode* kinds = r.keys.find({"pos_att_type"});
  std::string said = kinds == nullptr ? "" : kinds->text;
  if (kinds != nullptr) {
    for (const ConfigNode& item : kinds->items) said += item.text + '|';
  }
  const bool both = said.find("c2p") != std::string::npos && said.find("p2c") != std::string::npos;
  if (both && said.find("p2p") == std::string::npos) return;
  r.keys.problems().add(kinds == nullptr ? r.keys.span() : kinds->span,
                        "'pos_att_type' is read as c2p and p2c together only");
}

/// Contents are scored against `span` relative positions before and behind a token, whose table all layers share.
void read_disentangled(HfReading& r, const Size& span, bool own_projections, bool normed) {
  HfArchitecture& m = r.model;
  if (!r.keys.flag({"relative_attention"}, false)) {
    r.keys.problems().add(r.keys.span(), "'relative_attention' is read as true only");
  }
  only_both_position_scores(r);
  m.disentangled = HfDisentangled{{2 * span.value, span.where}, own_projections};
  m.position_biases = {(2 * span.value + (normed ? 2 : 0)) * m.d_model.value, span.where};
  m.learned_positions = r.keys.size_or({"type_vocab_size"}, 0, {0, 1e6});
  if (r.keys.flag({"position_biased_input"}, true)) m.learned_positions.value += m.max_seq.value;
  same_as_model(r, {"embedding_size"});
  same_as_model(r, {"pooler_hidden_size"});
}

/// Positions before a token that are told apart; below 1, or not said: all there are.
Size read_span(HfReading& r, HfNames names) {
  const ConfigNode* said = r.keys.find(names);
  Size out = r.model.max_seq;
  if (said != nullptr && !said->is_null() && !said->text.starts_with("-") && said->text != "0") {
    out = r.keys.whole(*said, *names.begin()).value_or(out);
  }
  r.keys.remark(fmt::format("{} relative positions are told apart before a token, and as many behind it", out.value));
  return out;
}

}  // namespace

/// ELECTRA, arXiv:2003.10555: BERT's layers behind an embedding that may be narrower, and a head that tells which
/// tokens were replaced.
void read_electra(HfReading& r) {
  HfArchitecture& m = r.model;
  read_shape(r, {.max_seq = 512});
  as_bert(r, HfEncoder::kElectra);
  refuse_set(r, {"is_decoder"}, "an ELECTRA that generates is not read");
  only_absolute_positions(r);
  const Size width = r.keys.size_or({"embedding_size"}, 128);
  const Size segments = r.keys.size_or({"type_vocab_size"}, 2, {0, 1e6});
  const Size rows{m.max_seq.value + segments.value, m.max_seq.where};
  if (width.value == m.d_model.value) {
    m.learned_positions = rows;
  } else {
    m.embedding_dim = width;
    m.embedding_bias = true;
    m.input_tokens = rows;
  }
}

/// DeBERTa, arXiv:2006.03654: positions have projections of their own in each layer.
void read_deberta(HfReading& r) {
  read_shape(r, {.max_seq = 512});
  as_bert(r, HfEncoder::kUnpooled);
  r.model.key_bias = false;
  read_disentangled(r, read_span(r, {"max_relative_positions"}), true, false);
}

/// DeBERTa-v2 and v3, arXiv:2111.09543: positions in buckets, projected by the matrices of contents.
void read_deberta_v2(HfReading& r) {
  HfArchitecture& m = r.model;
  read_shape(r, {.max_seq = 512});
  as_bert(r, HfEncoder::kUnpooled);
  if (const auto width = r.keys.size({"attention_head_size"})) m.head_dim = *width;
  r.keys.find({"max_relative_positions"});
  const ConfigNode* buckets = r.keys.find({"position_buckets"});
  const bool in_buckets = buckets != nullptr && !buckets->is_null() && !buckets->text.starts_with("-");
  if (!r.keys.has({"norm_rel_ebd"})) r.keys.defaulted("norm_rel_ebd", "none", kClassDefault);
  const std::string norms = r.keys.text_or({"norm_rel_ebd"}, "none");
  if (norms != "none" && norms != "layer_norm") {
    r.keys.problems().add(r.keys.find({"norm_rel_ebd"})->span,
                          fmt::format("norm_rel_ebd {} is not known", in_quotes(norms)), "known: none, layer_norm");
  }
  read_disentangled(r, in_buckets ? read_span(r, {"position_buckets"}) : read_span(r, {"max_relative_positions"}),
                    false, norms == "layer_norm");
  if (!r.keys.flag({"share_att_key"}, false)) {
    r.keys.problems().add(r.keys.span(), "'share_att_key' is read as true only");
  }
  if (r.keys.size_or_none({"conv_kernel_size"}, {0, 1000}).value > 0) {
    r.keys.problems().add(r.keys.find({"conv_kernel_size"})->span, "a convolution beside the first layer is not read");
  }
}

/// MPNet, arXiv:2004.09297: no segments, and a table of distances for all layers.
void read_mpnet(HfReading& r) {
  HfArchitecture& m = r.model;
  read_shape(r, {.max_seq = 512});
  as_bert(r, HfEncoder::kBert);
  m.learned_positions = m.max_seq;
  const Size buckets = r.keys.size_or({"relative_attention_num_buckets"}, 32);
  m.position_biases = {buckets.value * m.heads.value, buckets.where};
}

/// Nomic's BERT, arXiv:2402.01613: rotary positions, gated MLPs.
void read_nomic_bert(HfReading& r) {
  HfArchitecture& m = r.model;
  read_shape(r, {.max_seq = 2048});
  as_bert(r, HfEncoder::kUnpooled);
  const ConfigNode* said = r.keys.find({"activation_function"});
  if (said == nullptr || said->is_null()) r.keys.defaulted("activation_function", "gelu, not gated", kClassDefault);
  const std::string activation = r.keys.text_or({"activation_function"}, "gelu");
  m.gated = activation == "swiglu" || activation == "geglu" || activation == "glu";
  if (!m.gated && !activation.starts_with("gelu") && activation != "relu" && activation != "silu") {
    r.keys.problems().add(said == nullptr ? r.keys.span() : said->span,
                          fmt::format("activation {} is not known", in_quotes(activation)),
                          "known: gelu, relu, silu, swiglu, geglu, glu");
  }
  m.qkv_bias = m.o_bias = r.keys.flag({"qkv_proj_bias"}, true);
  m.mlp_bias = r.keys.flag({"mlp_fc1_bias"}, true);
  if (r.keys.flag({"mlp_fc2_bias"}, true) != m.mlp_bias) {
    const ConfigNode* second = r.keys.find({"mlp_fc2_bias"});
    r.keys.problems().add(second == nullptr ? r.keys.span() : second->span, "an MLP with one bias of two is not read");
  }
  m.final_norm = r.keys.flag({"prenorm"}, false);
  const Size segments = r.keys.size_or({"type_vocab_size"}, 2, {0, 1e6});
  m.learned_positions = segments;
  const ConfigNode* rotary = r.keys.find({"rotary_emb_fraction"});
  const double share =
      rotary == nullptr || rotary->is_null() ? 0 : r.keys.decimal(*rotary, "rotary_emb_fraction", {0, 1}).value_or(0);
  if (rotary == nullptr) r.keys.defaulted("rotary_emb_fraction", "0: a table of positions", kClassDefault);
  if (share == 0) m.learned_positions.value += m.max_seq.value;
  for (const HfNames& names : {HfNames{"causal"}, HfNames{"parallel_block"}, HfNames{"use_rms_norm"}}) {
    refuse_set(r, names, "such a file of this family is not read");
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
  m.activation = "gelu";
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

namespace {

/// One stack of T5Gemma, shaped as Gemma 2.
void read_t5gemma_stack(HfReading& r) {
  read_shape(r, {.d_model = 2304,
                 .layers = 26,
                 .width = 9216,
                 .heads = 8,
                 .kv_heads = 4,
                 .head_dim = 256,
                 .vocab = 256000,
                 .max_seq = 8192});
  read_attention_bias(r, false);
  r.model.activation = "gelu";
  r.model.norms_per_layer = 4;
  set_sliding(r, read_window(r, 4096), [](std::int64_t i) { return i % 2 == 0; });
}

/// The encoder beside it, with an embedding of its own. A window reaches as far behind a token as before it.
HfTower t5gemma_encoder(const HfArchitecture& e, const SourceSpan& where) {
  HfTower out = encoder_of(e, e.layer_count(), where);
  out.kv_heads = e.kv_heads;
  out.norms = e.norms_per_layer;
  out.activation = e.activation;
  out.layernorm = out.mlp_bias = false;
  out.qkv_bias = out.o_bias = e.qkv_bias;
  out.vocab = e.vocab;
  if (!e.has_mixer("sliding")) return out;
  out.window = {2 * e.window.value - 1, e.window.where};
  for (std::int64_t i = 0; i < e.layer_count(); ++i) {
    if (e.layers[static_cast<std::size_t>(i)].mixer == "full") out.full_layers.push_back(i);
  }
  return out;
}

/// Of its classes those with both stacks and the vocabulary's head, or none.
void check_t5gemma_class(HfReading& r) {
  const HfClass whole = hf_class(r.keys.top());
  if (whole.node == nullptr) return;
  const bool known = whole.head == HfHead::kVocabulary || whole.head == HfHead::kNone;
  if (known && find_hf_family_of_class(whole.stem) == &r.family) return;
  r.keys.problems().add(whole.node->span, fmt::format("architecture {} is not read", in_quotes(whole.node->text)),
                        "read: T5GemmaForConditionalGeneration, T5GemmaModel");
}

}  // namespace

/// T5Gemma, arXiv:2504.06225: Gemma 2 as encoder and, with cross attention in each layer, as decoder; their sizes may
/// differ.
void read_t5gemma(HfReading& r) {
  HfArchitecture& m = r.model;
  check_t5gemma_class(r);
  read_t5gemma_stack(r);
  for (HfLayer& layer : m.layers) layer.mixer = layer.mixer == "sliding" ? "sliding+cross" : "full+cross";
  const ConfigNode* map = r.keys.find_on_top({"encoder"});
  if (map == nullptr || map->kind != ConfigNode::Kind::kMap) {
    r.keys.problems().add(r.keys.top().span, "the file has no 'encoder' (a map of its sizes)");
    return;
  }
  ImportNotes notes;
  HfKeys keys(r.keys.top(), *map, "encoder", r.keys.problems(), notes);
  HfArchitecture encoder;
  HfReading reading{r.family, keys, encoder};
  read_t5gemma_stack(reading);
  report_unread_keys(reading);
  for (const ImportNotes::Default& d : notes.defaults) r.keys.defaulted("encoder." + d.key, d.value, d.why);
  m.towers.push_back(t5gemma_encoder(encoder, map->span));
  const auto source = r.keys.size({"cross_attention_hidden_size"});
  if (source && source->value != encoder.d_model.value) {
    r.keys.problems().add(source->where, fmt::format("'cross_attention_hidden_size' is {}, and the encoder is {} wide",
                                                     source->value, encoder.d_model.value));
  }
}

namespace {

/// The layers of a decoder beside an encoder, as BART and Whisper call their widths, and how many the encoder has.
Size read_decoder(HfReading& r, const HfNames& positions, std::int64_t most) {
  HfArchitecture& m = r.model;
  m.d_model = r.keys.required({"d_model"}, "width of the model");
  m.vocab = r.keys.required({"vocab_size"}, "entries of the vocabulary");
  m.max_seq = r.keys.size_or(positions, most);
  m.tied_embeddings = r.keys.flag({"tie_word_embeddings"}, true);
  const Size layers = r.keys.required({"encoder_layers"}, "layers of the encoder", {1, 1e4});
  const Size decoder = r.keys.required({"decoder_layers"}, "layers of the decoder", {1, 1e4});
  m.layers.assign(static_cast<std::size_t>(decoder.value), {.mixer = "full+cross"});
  m.heads = m.kv_heads = r.keys.required({"decoder_attention_heads"}, "heads of the decoder");
  m.head_dim = {std::max<std::int64_t>(1, m.d_model.value / std::max<std::int64_t>(1, m.heads.value)), m.heads.where};
  m.d_ff = r.keys.required({"decoder_ffn_dim"}, "width of the decoder's MLP");
  all_biases(r);
  return layers;
}

/// The encoder beside it, once all else of the model is read.
HfTower read_encoder(HfReading& r, const Size& layers) {
  HfTower out = encoder_of(r.model, layers.value, layers.where);
  out.heads = r.keys.required({"encoder_attention_heads"}, "heads of the encoder");
  out.head_dim = {};
  out.d_ff = r.keys.required({"encoder_ffn_dim"}, "width of the encoder's MLP");
  return out;
}

/// What tells the kin of BART apart: a table of positions, a norm of the embedding, and norms before each part with one
/// more behind all of them.
struct BartKind {
  bool table = true, embedding_norm = true, norm_first = false;
};

void read_bart_kind(HfReading& r, const BartKind& kind) {
  HfArchitecture& m = r.model;
  const Size layers = read_decoder(r, {"max_position_embeddings"}, 1024);
  m.final_norm = kind.norm_first;
  m.embedding_norm = kind.embedding_norm;
  m.classifies_dense = true;
  HfTower encoder = read_encoder(r, layers);
  encoder.final_norm = kind.norm_first;
  if (kind.embedding_norm) encoder.other_weights = 2 * m.d_model.value;
  if (kind.table) {
    constexpr std::int64_t kOffset = 2;  // the table starts two rows early
    m.learned_positions = {m.max_seq.value + kOffset, m.max_seq.where};
    encoder.learned_positions = m.learned_positions.value;
  }
  m.towers.push_back(encoder);
  if (!r.keys.flag({"is_encoder_decoder"}, true)) {
    r.keys.problems().add(
        r.keys.find({"is_encoder_decoder"})->span,
        fmt::format("'is_encoder_decoder' is false, and models of family '{}' have both", r.family.name));
  }
  for (const HfNames& names : {HfNames{"decoder_vocab_size"}, HfNames{"num_hidden_layers"}}) {
    const std::int64_t other = *names.begin() == "decoder_vocab_size" ? m.vocab.value : layers.value;
    const auto repeated = r.keys.size(names);
    if (!repeated || repeated->value == other) continue;
    r.keys.problems().add(repeated->where, fmt::format("'{}' is {}, and the file says {} elsewhere", *names.begin(),
                                                       repeated->value, other));
  }
  if (!r.keys.flag({"share_encoder_decoder_embeddings"}, true)) {
    r.keys.problems().add(r.keys.find({"share_encoder_decoder_embeddings"})->span,
                          "embeddings of the encoder's own are not read");
  }
}

}  // namespace

/// BART, arXiv:1910.13461; mBART, arXiv:2001.08210.
void read_bart(HfReading& r) { read_bart_kind(r, {}); }
void read_mbart(HfReading& r) { read_bart_kind(r, {.norm_first = true}); }
/// Pegasus, arXiv:1912.08777; M2M-100 and NLLB, arXiv:2010.11125: sines for positions.
void read_pegasus(HfReading& r) { read_bart_kind(r, {.table = false, .embedding_norm = false, .norm_first = true}); }
void read_marian(HfReading& r) { read_bart_kind(r, {.table = false, .embedding_norm = false}); }

/// Frames of sound through two convolutions, of which the second halves them; keys have no bias.
void read_whisper(HfReading& r) {
  HfArchitecture& m = r.model;
  const Size layers = read_decoder(r, {"max_target_positions"}, 448);
  m.key_bias = false;
  m.learned_positions = m.max_seq;
  const Size frames = r.keys.size_or({"max_source_positions"}, 1500);
  const Size bands = r.keys.size_or({"num_mel_bins"}, 80);
  m.cross_tokens = frames;
  HfTower encoder = read_encoder(r, layers);
  encoder.key_bias = false;
  constexpr std::int64_t kTaps = 3;
  const std::int64_t d = m.d_model.value;
  encoder.stem = {{kTaps * bands.value, d, true, 2}, {kTaps * d, d, true}};  // the second halves the frames
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
