// Lists the weights of an imported model with their sizes and formats, and counts their bits.
#include "import/hf_quantization.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace scalecalc {
namespace {

double product(std::initializer_list<std::int64_t> factors) {
  double out = 1;
  for (const std::int64_t factor : factors) out *= static_cast<double>(factor);
  return out;
}

class LayerWeights {
 public:
  LayerWeights(const HfArchitecture& model, const HfScheme& plain)
      : m_(model), d_(model.d_model.value), plain_(plain) {}

  std::vector<HfWeight> of(const HfLayer& layer) {
    out_.clear();
    if (m_.compressed) {
      compressed(layer);
    } else if (layer.mixer == "mla") {
      mla(layer.reuse);
    } else if (layer.mixer == "gdn") {
      gdn();
    } else if (layer.mixer == "kda") {
      kda();
    } else if (layer.mixer == "conv") {
      attention("in_proj", {d_, 3, d_});
      attention("out_proj", {d_, d_});
    } else if (layer.mixer == "lightning") {
      lightning();
    } else if (layer.mixer == "rwkv") {
      rwkv(layer.reuse);
    } else if (layer.mixer == "rglru") {
      rglru();
    } else if (layer.mixer == "mamba1") {
      mamba1();
    } else if (layer.mixer == "mamba2") {
      mamba2();
    } else if (layer.mixer == "sliding" && m_.local) {
      heads(*m_.local, layer.reuse);
    } else if (layer.mixer != "none") {
      heads({m_.heads, m_.kv_heads, m_.head_dim, m_.v_head_dim.value > 0 ? m_.v_head_dim : m_.head_dim}, layer.reuse);
    }
    if (layer.mixer == "full+mamba2") mamba2();
    if (layer.mixer == "full+cross" || layer.mixer == "sliding+cross") cross();
    if (m_.per_layer) {
      add(WeightPart::kMlp, "per_layer_input_gate", product({d_, m_.per_layer->width.value}));
      add(WeightPart::kMlp, "per_layer_projection", product({d_, m_.per_layer->width.value}));
    }
    if (m_.laurel_rank.value > 0) add(WeightPart::kMlp, "laurel", product({d_, 2, m_.laurel_rank.value}));
    if (layer.ffn == "dense") mlp(WeightPart::kMlp, d_, layer.d_ff > 0 ? layer.d_ff : m_.d_ff.value, 1);
    if (layer.ffn == "dense" && m_.receptance) add(WeightPart::kMlp, "receptance", product({d_, d_}));
    if (layer.ffn == "moe") experts();
    return out_;
  }

 private:
  void add(WeightPart part, std::string_view name, double parameters, double inputs = 0) {
    if (parameters > 0) out_.push_back({part, name, parameters, plain_, inputs});
  }
  /// The first factor is the input's width, unless that is given.
  void attention(std::string_view name, std::initializer_list<std::int64_t> factors, std::int64_t inputs = 0) {
    add(WeightPart::kAttention, name, product(factors), static_cast<double>(inputs > 0 ? inputs : *factors.begin()));
  }

  /// Layers that reuse keys and values have no projections of them, unless they are stored all the same.
  void heads(const HfLocal& shape, bool reuse) {
    const std::int64_t q = shape.heads.value * shape.head_dim.value;
    const std::int64_t input = m_.draft ? 2 * d_ : d_;
    if (m_.draft) attention("fc", {m_.draft->target_layers.value, m_.draft->target_d_model.value, d_});
    attention("q_proj", {input, q, m_.output_gate ? 2 : 1});
    if (!reuse || m_.indexer || m_.reuse_stored) {
      attention("k_proj", {input, shape.kv_heads.value, shape.head_dim.value});
      attention("v_proj", {input, shape.kv_heads.value, shape.v_head_dim.value});
    }
    const std::int64_t output = shape.heads.value * shape.v_head_dim.value;
    attention("o_proj", {output, d_});
    if (m_.head_gate) attention("g_proj", {d_, shape.heads.value});
  }

  /// To an encoder's output, which has the encoder's width.
  void cross() {
    const std::int64_t width = m_.heads.value * m_.head_dim.value, keys = m_.kv_heads.value * m_.head_dim.value;
    const std::int64_t source = m_.towers.empty() ? d_ : m_.towers.front().d_model.value;
    attention("q_proj", {d_, width});
    attention("k_proj", {source, keys});
    attention("v_proj", {source, keys});
    attention("o_proj", {width, d_});
  }

  /// Compressors and the indexer's weights of heads are not quantized by those who publish such models.
  void compressed(const HfLayer& layer) {
    const HfCompressed& c = *m_.compressed;
    const std::int64_t width = m_.heads.value * m_.head_dim.value;
    attention("wq_a", {d_, c.q_lora_rank.value});
    attention("wq_b", {c.q_lora_rank.value, width});
    attention("wkv", {d_, m_.head_dim.value});
    attention("wo_a", {width, c.o_lora_rank.value});
    attention("wo_b", {c.o_groups.value, c.o_lora_rank.value, d_});
    if (layer.mixer == "hca") attention("compressor", {2, d_, m_.head_dim.value});
    if (layer.mixer != "csa" || !m_.indexer) return;
    attention("compressor", {4, d_, m_.head_dim.value + m_.indexer->head_dim.value});
    attention("indexer", {c.q_lora_rank.value, m_.indexer->heads.value, m_.indexer->head_dim.value});
    attention("weights_proj", {d_, m_.indexer->heads.value});
  }

  void mla(bool reuse) {
    const HfMla& a = *m_.mla;
    const std::int64_t heads = m_.heads.value;
    const std::int64_t qk = a.qk_nope_head_dim.value + a.qk_rope_head_dim.value;
    if (a.q_lora_rank.value > 0) {
      attention("q_a_proj", {d_, a.q_lora_rank.value});
      attention("q_b_proj", {a.q_lora_rank.value, heads, qk});
    } else {
      attention("q_proj", {d_, heads, qk});
    }
    attention("kv_a_proj_with_mqa", {d_, a.kv_lora_rank.value + a.qk_rope_head_dim.value});
    attention("kv_b_proj", {a.kv_lora_rank.value, heads, a.qk_nope_head_dim.value + a.v_head_dim.value});
    attention("o_proj", {heads * a.v_head_dim.value, d_});
    if (m_.output_gate) attention("g_proj", {d_, heads, a.v_head_dim.value});
    if (m_.head_gate) attention("g_proj", {d_, heads});
    if (!m_.indexer || reuse) return;
    const HfIndexer& i = *m_.indexer;
    attention("indexer", {i.heads.value, i.head_dim.value, std::max<std::int64_t>(a.q_lora_rank.value, 1)});
    attention("indexer", {d_, i.head_dim.value + i.heads.value});
  }

  void gdn() {
    const HfGdn& g = *m_.gdn;
    const std::int64_t keys = g.key_heads.value * g.key_head_dim.value;
    const std::int64_t values = g.value_heads.value * g.value_head_dim.value;
    attention("in_proj_qkv", {d_, 2 * keys + values});
    attention("in_proj_z", {d_, values});
    attention("out_proj", {values, d_});
  }

  void kda() {
    const HfKda& k = *m_.kda;
    const std::int64_t width = k.heads.value * k.head_dim.value;
    attention("qkv_proj", {d_, 3, width});
    if (k.full_rank_decay) attention("f_proj", {d_, width});
    if (!k.full_rank_decay) attention("f_a_proj", {d_, k.head_dim.value});
    if (!k.full_rank_decay) attention("f_b_proj", {k.head_dim.value, width});
    attention("b_proj", {d_, k.heads.value});
    if (k.full_rank_gate) attention("g_proj", {d_, width});
    if (!k.full_rank_gate) attention("g_proj", {k.head_dim.value, width + d_});
    attention("out_proj", {width, d_});
  }

  void lightning() {
    const std::int64_t width = m_.lightning->heads.value * m_.lightning->head_dim.value;
    attention("qkv_proj", {d_, 3, width});
    attention("output_gate", {d_, width});
    attention("out_proj", {width, d_});
  }

  void rwkv(bool shares) {
    const HfRwkv& w = *m_.rwkv;
    const std::int64_t width = w.width.value;
    attention("qkv_proj", {d_, 3, width});
    if (w.version == 5 || w.version == 6) attention("g_proj", {d_, width});
    attention("adapter", {w.mix_rank.value, 10, d_});
    for (const Size& rank : {w.decay_rank, w.rate_rank, w.gate_rank}) attention("adapter", {rank.value, d_ + width});
    if (shares) attention("adapter", {w.value_rank.value, d_ + width});
    attention("out_proj", {width, d_});
  }

  void rglru() {
    const std::int64_t width = m_.rglru->width.value;
    attention("in_proj", {d_, 2, width});
    attention("gates", {width / std::max<std::int64_t>(m_.rglru->blocks.value, 1), 2, width});
    attention("out_proj", {width, d_});
  }

  void mamba1() {
    const HfMamba1& s = *m_.mamba1;
    attention("in_proj", {d_, 2, s.d_inner.value});
    attention("x_proj", {s.d_inner.value, s.dt_rank.value + 2 * s.d_state.value});
    attention("dt_proj", {s.dt_rank.value, s.d_inner.value});
    attention("out_proj", {s.d_inner.value, d_});
  }

  void mamba2() {
    const HfMamba2& s = *m_.mamba2;
    const std::int64_t inner = s.heads.value * s.head_dim.value;
    attention("in_proj", {d_, 2 * inner + 2 * s.groups.value * s.d_state.value + s.heads.value});
    attention("out_proj", {inner, d_});
  }

  void mlp(WeightPart part, std::int64_t width, std::int64_t d_ff, std::int64_t copies) {
    const double all = product({width, d_ff, copies});
    const double outer = product({width, copies}), inner = product({d_ff, copies});
    if (m_.gated) add(part, "gate_proj", all, outer);
    add(part, "up_proj", all, outer);
    add(part, "down_proj", all, inner);
  }

  void experts() {
    const HfMoe& moe = *m_.moe;
    const std::int64_t latent = moe.latent.value;
    add(WeightPart::kRouter, "gate", product({d_, moe.experts.value}));
    mlp(WeightPart::kExperts, latent > 0 ? latent : d_, moe.d_ff.value, moe.experts.value);
    add(WeightPart::kExperts, "latent_proj", product({d_, 2, latent}));
    mlp(WeightPart::kShared, d_, moe.shared_d_ff.value, 1);
  }

  const HfArchitecture& m_;
  std::int64_t d_;
  HfScheme plain_;
  std::vector<HfWeight> out_;
};

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

bool contains_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) { return contains(text, part); });
}

/// Without the marks of regular expressions and in small letters.
std::string bare(std::string_view pattern) {
  std::string out;
  if (pattern.starts_with("re:")) pattern.remove_prefix(3);
  for (const char c : pattern) {
    if (c == '\\' || c == '^' || c == '$') continue;
    out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

/// A pattern cut at its layer number: "model.layers.3.self_attn*" is {3, "self_attn*"}.
struct LayerPattern {
  bool valid = true;
  std::optional<std::size_t> layer;  ///< empty: every layer
  bool has_layer = false;
  std::string_view rest;
};

LayerPattern layer_of(std::string_view text) {
  LayerPattern out;
  out.rest = text;
  for (const std::string_view word : {"layers.", "blocks.", "h."}) {
    const std::size_t at = text.find(word);
    if (at == std::string_view::npos || (at > 0 && text[at - 1] != '.' && text[at - 1] != '*')) continue;
    out.has_layer = true;
    std::string_view rest = text.substr(at + word.size());
    std::size_t number = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error == std::errc{}) {
      out.layer = number;
      rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    } else if (rest.starts_with("*") || rest.starts_with("d+") || rest.starts_with("[0-9]") || rest.starts_with(".")) {
      rest.remove_prefix(std::min(rest.find('.', 1), rest.size()));  // any number
    } else {
      out.valid = false;
    }
    out.rest = rest;
    return out;
  }
  return out;
}

/// The matrix a pattern names, among those of LayerWeights; empty if it names none or a choice of several.
std::string_view matrix_of(std::string_view rest) {
  // A name that holds another stands before it.
  constexpr std::array<std::string_view, 29> kNames{"embed_tokens_per_layer",
                                                    "embed_tokens",
                                                    "per_layer_input_gate",
                                                    "per_layer_model_projection",
                                                    "per_layer_projection",
                                                    "q_a_proj",
                                                    "q_b_proj",
                                                    "kv_a_proj_with_mqa",
                                                    "kv_b_proj",
                                                    "gate_up_proj",
                                                    "gate_proj",
                                                    "up_proj",
                                                    "down_proj",
                                                    "qkv_proj",
                                                    "q_proj",
                                                    "k_proj",
                                                    "v_proj",
                                                    "o_proj",
                                                    "in_proj_qkvz",
                                                    "in_proj_qkv",
                                                    "in_proj_z",
                                                    "in_proj_a",
                                                    "in_proj_b",
                                                    "in_proj",
                                                    "out_proj",
                                                    "x_proj",
                                                    "dt_proj",
                                                    "indexer",
                                                    "output_gate"};
  if (contains(rest, "(")) return {};
  const auto found = std::find_if(kNames.begin(), kNames.end(), [&](std::string_view n) { return contains(rest, n); });
  return found == kNames.end() ? std::string_view{} : *found;
}

bool matrix_matches(std::string_view wanted, std::string_view name) {
  if (wanted.empty() || wanted == name) return true;
  if (wanted == "gate_up_proj") return name == "gate_proj" || name == "up_proj";
  if (wanted == "qkv_proj") return name == "q_proj" || name == "k_proj" || name == "v_proj";
  return (wanted == "in_proj" || wanted == "in_proj_qkvz") && name.starts_with("in_proj");
}

/// Parts that the names in a pattern stand for.
struct PartSet {
  bool any = false;
  std::array<bool, kWeightPartNames.size()> parts{};
  PartSet& add(WeightPart part) {
    any = parts[static_cast<std::size_t>(part)] = true;
    return *this;
  }
  bool has(WeightPart part) const { return parts[static_cast<std::size_t>(part)]; }
};

PartSet feed_forward() {
  return PartSet{}.add(WeightPart::kMlp).add(WeightPart::kExperts).add(WeightPart::kShared).add(WeightPart::kRouter);
}

/// Whether the last name of the pattern is one of these.
bool ends_in(std::string_view rest, std::initializer_list<std::string_view> names) {
  while (!rest.empty() && (rest.back() == '*' || rest.back() == '.')) rest.remove_suffix(1);
  const std::size_t dot = rest.rfind('.');
  const std::string_view last = dot == std::string_view::npos ? rest : rest.substr(dot + 1);
  return std::find(names.begin(), names.end(), last) != names.end();
}

/// `beside`: experts are no modules of the MLP but stand beside it.
PartSet parts_of(const LayerPattern& pattern, bool beside) {
  const std::string_view rest = pattern.rest;
  PartSet out;
  if (contains_any(rest, {"per_layer_", "laurel", "altup"})) return out.add(WeightPart::kMlp);
  if (contains(rest, "embed") || ends_in(rest, {"wte"})) return out.add(WeightPart::kEmbedding);
  if (contains(rest, "lm_head") || ends_in(rest, {"head", "embed_out"})) return out.add(WeightPart::kHead);
  if (contains(rest, "shared_expert_gate") || ends_in(rest, {"gate", "router"})) return out.add(WeightPart::kRouter);
  if (contains(rest, "shared_expert")) return out.add(WeightPart::kShared);
  if (contains_any(rest, {"experts", "latent_proj"})) return out.add(WeightPart::kExperts);
  if (contains_any(rest, {"attn", "attention", "mamba"})) return out.add(WeightPart::kAttention);
  if (contains(rest, "shared_mlp") || (beside && contains_any(rest, {"mlp", "ffn", "feed_forward"}))) {
    return out.add(WeightPart::kMlp).add(WeightPart::kShared);
  }
  const std::string_view matrix = matrix_of(rest);
  for (const std::string_view word : {"mlp", "ffn"}) {
    // "ffn.*gate_proj": of experts too.
    const std::size_t at = rest.find(word), matrix_at = rest.find("_proj");
    if (at == std::string_view::npos || matrix_at == std::string_view::npos || matrix_at < at) continue;
    if (!contains(rest.substr(at, matrix_at - at), ".*")) continue;
    return out.add(WeightPart::kMlp).add(WeightPart::kExperts).add(WeightPart::kShared);
  }
  if (contains_any(rest, {"mlp", "feed_forward", "ffn", "block_sparse_moe"})) {
    return contains(rest, "_proj") ? out.add(WeightPart::kMlp) : feed_forward();
  }
  if (matrix == "gate_proj" || matrix == "up_proj" || matrix == "down_proj" || matrix == "gate_up_proj") {
    // Nemotron-H keeps all kinds of layers under "mixer".
    return out.add(WeightPart::kMlp).add(WeightPart::kExperts).add(WeightPart::kShared);
  }
  if (!matrix.empty()) return out.add(WeightPart::kAttention);
  const bool whole_layer =
      pattern.has_layer && (rest.find_first_not_of(".*") == std::string_view::npos || ends_in(rest, {"mixer"}));
  if (whole_layer) return feed_forward().add(WeightPart::kAttention);
  return out;
}

}  // namespace

HfWeights::HfWeights(const HfArchitecture& model, const HfScheme& plain)
    : experts_beside_(model.moe && model.moe->beside_mlp) {
  const std::int64_t width = model.embedding_dim.value > 0 ? model.embedding_dim.value : model.d_model.value;
  const double table = product({model.vocab.value, width});
  if (!model.draft) outer_.push_back({WeightPart::kEmbedding, "embed_tokens", table, plain});
  if (model.per_layer) {
    const std::int64_t all = model.per_layer->width.value * model.layer_count();
    outer_.push_back(
        {WeightPart::kEmbedding, "embed_tokens_per_layer", product({model.per_layer->vocab.value, all}), plain});
    outer_.push_back({WeightPart::kMlp, "per_layer_model_projection", product({model.d_model.value, all}), plain});
  }
  if (model.ngrams) {
    const HfNgrams& n = *model.ngrams;
    outer_.push_back({WeightPart::kEmbedding, "ngram_embeddings", product({n.rows.value, n.width.value}), plain});
    outer_.push_back({WeightPart::kEmbedding, "ngram_projections",
                      product({n.tables.value, n.width.value, model.d_model.value}), plain});
  }
  const double head = model.head_outputs ? product({model.head_outputs->value, model.d_model.value}) : table;
  if (model.streams.value > 1 && model.stream_kind == "altup") {
    const double each = product({model.d_model.value, model.d_model.value, model.streams.value - 1});
    outer_.push_back({WeightPart::kMlp, "altup", 2 * each, plain});
  }
  if (!model.tied_embeddings && head > 0) outer_.push_back({WeightPart::kHead, "lm_head", head, plain});
  LayerWeights weights(model, plain);
  for (const HfLayer& layer : model.layers) layers_.push_back(weights.of(layer));
}

template <class Visit>
void HfWeights::visit(const Visit& visit) const {
  for (const HfWeight& weight : outer_) visit(weight);
  for (const std::vector<HfWeight>& layer : layers_) {
    for (const HfWeight& weight : layer) visit(weight);
  }
}

HfWeights::Meaning HfWeights::set(std::string_view pattern, const HfScheme& scheme) {
  const std::string text = bare(pattern);
  if (contains_any(text, {"norm", "bias", "vision", "visual", "projector", "multi_modal", "image", "audio",
                          "patch_merge", "conv1d"})) {
    return Meaning::kNothing;
  }
  if (contains(text, "mtp")) {
    return text.ends_with("mtp") || text.ends_with("mtp*") || text.ends_with("mtp.*") ? Meaning::kModules
                                                                                      : Meaning::kNothing;
  }
  const LayerPattern where = layer_of(text);
  const PartSet parts = parts_of(where, experts_beside_);
  if (where.layer && *where.layer >= layers_.size()) {  // a prediction module: as a whole, or one matrix of it
    return where.rest.find_first_not_of(".*") == std::string_view::npos ? Meaning::kModules : Meaning::kNothing;
  }
  if (!where.valid || !parts.any) return Meaning::kUnknown;
  const std::string_view matrix = matrix_of(where.rest);
  const auto apply = [&](std::vector<HfWeight>& weights) {
    for (HfWeight& weight : weights) {
      if (parts.has(weight.part) && matrix_matches(matrix, weight.name)) weight.scheme = scheme;
    }
  };
  if (!where.has_layer) apply(outer_);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    if (!where.layer || *where.layer == i) apply(layers_[i]);
  }
  return Meaning::kWeights;
}

void HfWeights::set_part(WeightPart part, const HfScheme& scheme) {
  const auto apply = [&](std::vector<HfWeight>& weights) {
    for (HfWeight& weight : weights) {
      if (weight.part == part) weight.scheme = scheme;
    }
  };
  apply(outer_);
  for (std::vector<HfWeight>& layer : layers_) apply(layer);
}

void HfWeights::set_named(std::string_view name, const HfScheme& scheme) {
  for (std::vector<HfWeight>& layer : layers_) {
    for (HfWeight& weight : layer) {
      if (weight.name == name) weight.scheme = scheme;
    }
  }
}

double HfWeights::parameters() const {
  double sum = 0;
  visit([&](const HfWeight& weight) { sum += weight.parameters; });
  return sum;
}

double HfWeights::parameters(WeightPart part) const {
  double sum = 0;
  visit([&](const HfWeight& weight) { sum += weight.part == part ? weight.parameters : 0; });
  return sum;
}

double HfWeights::parameters(WeightPart part, WeightFormat format) const {
  double sum = 0;
  visit([&](const HfWeight& w) { sum += w.part == part && w.scheme.format == format ? w.parameters : 0; });
  return sum;
}

double HfWeights::stored_bits() const {
  double sum = 0;
  visit([&](const HfWeight& w) { sum += w.stored_bits(); });
  return sum;
}

double HfWeights::stored_bits(WeightPart part) const {
  double sum = 0;
  visit([&](const HfWeight& w) { sum += w.part == part ? w.stored_bits() : 0; });
  return sum;
}

double HfWeights::stored_bits(WeightPart part, WeightFormat format) const {
  double sum = 0;
  visit([&](const HfWeight& w) { sum += w.part == part && w.scheme.format == format ? w.stored_bits() : 0; });
  return sum;
}

}  // namespace scalecalc
