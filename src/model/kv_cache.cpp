// Counts the bytes of a model's cache per token and sequence, for serving and for `model`. Keys and values: scaling
// book, chapter 4. The MLA latent, whole on every tensor rank: DeepSeek-V2, arXiv:2405.04434 section 2.1. Index keys:
// DeepSeek-V3.2, arXiv:2512.02556 section 2. States: the sources of mixer_ops.cpp; a convolution of k taps keeps the
// last k - 1 inputs.
#include "model/kv_cache.h"
#include "base/scalar.h"

#include <algorithm>

namespace scalecalc {
namespace {

LayerCache attention_cache(const AttentionSpec& a, const LayerKind& layer) {
  const MixerKind kind = layer.mixer;
  LayerCache out;
  if (kind == MixerKind::kMla) {
    out.token_elements = to_double(a.mla->kv_lora_rank + a.mla->qk_rope_head_dim);
  } else {
    const AttentionShape shape = a.shape(kind);
    out.token_elements = to_double(shape.kv_heads * (shape.head_dim + shape.v_head_dim));
    out.ways = shape.kv_heads;
  }
  if (slides(kind)) out.limit = a.window;
  if (kind == MixerKind::kChunked) out.limit = a.chunk;
  if (layer.reuse && !a.indexer) return {};
  if (a.indexer && !layer.reuse && !layer.whole && out.limit == 0) out.index_elements = to_double(a.indexer->head_dim);
  return out;
}

/// A window of one tensor that is key and value, and a compressed token of it for every few tokens.
std::vector<LayerCache> compressed_cache(const AttentionSpec& a, MixerKind kind) {
  const CompressedSpec& c = *a.compressed;
  const double width = to_double(a.head_dim);
  std::vector<LayerCache> out{{.token_elements = width, .limit = a.window}};
  if (kind == MixerKind::kHca) out.push_back({.token_elements = width / to_double(c.hca_ratio)});
  if (kind == MixerKind::kCsa) {
    const double ratio = to_double(c.csa_ratio);
    out.push_back({.token_elements = width / ratio, .index_elements = to_double(a.indexer->head_dim) / ratio});
  }
  return out;
}

/// Of cross attention keys and values of all that the tower hands on.
double cross_elements(const ModelSpec& model) {
  const AttentionSpec& a = model.attention;
  const double read = model.towers.empty() ? to_double(model.max_seq)
                                           : model.towers.front().positions / to_double(model.towers.front().merge);
  const double tokens = a.cross_tokens > 0 ? to_double(a.cross_tokens) : read;
  return tokens * to_double(a.kv_heads * (a.head_dim + a.shape(MixerKind::kFull).v_head_dim));
}

void add_mamba2(const Mamba2Spec& m, LayerCache& out) {
  out.state_elements = to_double(m.d_inner() * m.d_state);
  out.conv_elements = to_double((m.d_inner() + 2 * m.groups * m.d_state) * (m.d_conv - 1));
  out.state_ways = m.heads;
}

LayerCache layer_cache(const ModelSpec& model, const LayerKind& layer) {
  LayerCache out;
  switch (layer.mixer) {
    case MixerKind::kCsa:
    case MixerKind::kHca: break;  // compressed_cache
    case MixerKind::kCross:
    case MixerKind::kFullCross:
    case MixerKind::kSlidingCross:
      if (attends_twice(layer.mixer)) out = attention_cache(model.attention, layer);
      out.ways = model.attention.kv_heads;
      out.fixed_elements = cross_elements(model);
      return out;
    case MixerKind::kFull:
    case MixerKind::kSliding:
    case MixerKind::kChunked:
    case MixerKind::kStrided:
    case MixerKind::kMla: return attention_cache(model.attention, layer);
    case MixerKind::kGdn: {
      const GdnSpec& g = *model.gdn;
      const double keys = to_double(g.key_heads * g.key_head_dim), values = to_double(g.value_heads * g.value_head_dim);
      out.state_elements = values * to_double(g.key_head_dim);
      out.conv_elements = (2 * keys + values) * to_double(g.conv_kernel - 1);
      out.state_ways = g.key_heads;
      return out;
    }
    case MixerKind::kLightning: {
      const LightningSpec& l = *model.lightning;
      out.state_elements = to_double(l.heads * l.head_dim * l.head_dim);
      out.state_ways = l.heads;
      return out;
    }
    case MixerKind::kMamba1: {
      const Mamba1Spec& m = *model.mamba1;
      out.state_elements = to_double(m.d_inner * m.d_state);
      out.conv_elements = to_double(m.d_inner * (m.d_conv - 1));
      out.state_ways = m.d_inner;
      return out;
    }
    case MixerKind::kMamba2: {
      add_mamba2(*model.mamba2, out);
      return out;
    }
    case MixerKind::kFullMamba2: {
      out = attention_cache(model.attention, layer);
      add_mamba2(*model.mamba2, out);
      return out;
    }
    case MixerKind::kKda: {
      const KdaSpec& l = *model.kda;
      out.state_elements = to_double(l.width() * l.head_dim);
      out.conv_elements = to_double(3 * l.width() * (l.conv_kernel - 1));
      out.state_ways = l.heads;
      return out;
    }
    case MixerKind::kConv: {
      out.conv_elements = to_double(model.d_model * (model.conv->kernel - 1));
      out.state_ways = model.d_model;
      return out;
    }
    case MixerKind::kRwkv: {  // and the last inputs of time and channel mixing
      const RwkvSpec& w = *model.rwkv;
      out.state_elements = to_double(w.version == 4 ? 3 * w.width : w.width * w.head_dim);
      out.conv_elements = to_double((layer.ffn == FfnKind::kNone ? 1 : 2) * model.d_model);
      out.state_ways = w.heads();
      return out;
    }
    case MixerKind::kRglru: {
      const RglruSpec& g = *model.rglru;
      out.state_elements = to_double(g.width);
      out.conv_elements = to_double(g.width * (g.conv_kernel - 1));
      out.state_ways = g.blocks;
      return out;
    }
    case MixerKind::kNone: break;
  }
  return out;
}

}  // namespace

namespace {

void add(LayerCache cache, std::int64_t layers, std::vector<LayerCache>& to) {
  if (cache == LayerCache{}) return;
  const auto same = std::find_if(to.begin(), to.end(), [&](LayerCache known) {
    known.layers = 0;
    return known == cache;
  });
  cache.layers = layers;
  if (same == to.end()) {
    to.push_back(cache);
  } else {
    same->layers += layers;
  }
}

}  // namespace

KvCache kv_cache(const ModelSpec& model) {
  LayersByKind all{};
  for (const std::uint8_t kind : model.layer_kind) ++all[kind];
  return kv_cache(model, all);
}

KvCache kv_cache(const ModelSpec& model, const LayersByKind& layers) {
  KvCache out;
  if (!model.attention.causal) return out;  // nothing is generated
  for (std::size_t k = 0; k < model.kinds.size(); ++k) {
    if (layers[k] == 0 || model.kinds[k].mixer == MixerKind::kNone) continue;
    // Kinds that differ in their FFN alone keep the same.
    const std::vector<LayerCache> kept = model.attention.compressed
                                             ? compressed_cache(model.attention, model.kinds[k].mixer)
                                             : std::vector<LayerCache>{layer_cache(model, model.kinds[k])};
    for (const LayerCache& cache : kept) add(cache, layers[k], out.kinds);
  }
  return out;
}

namespace {

/// Summed over the layers that keep something, or of these over those that keep all tokens.
template <class PerLayer>
double over_layers(const std::vector<LayerCache>& kinds, bool unlimited, const PerLayer& per_layer) {
  double out = 0;
  for (const LayerCache& c : kinds) {
    if (!unlimited || c.limit == 0) out += to_double(c.layers) * per_layer(c);
  }
  return out;
}

double token_and_index(const LayerCache& c) { return c.token_elements + c.index_elements; }

auto in_bytes(const CacheFormat& format) {
  return [&format](const LayerCache& c) {
    return c.token_elements * format.token_bytes + c.index_elements * format.index_bytes;
  };
}

}  // namespace

double KvCache::elements_per_token() const { return over_layers(kinds, false, token_and_index); }

double KvCache::unlimited_elements_per_token() const { return over_layers(kinds, true, token_and_index); }

double KvCache::bytes_per_token(const CacheFormat& format) const { return over_layers(kinds, false, in_bytes(format)); }

double KvCache::unlimited_bytes_per_token(const CacheFormat& format) const {
  return over_layers(kinds, true, in_bytes(format));
}

double KvCache::sequence_bytes(double tokens, const CacheFormat& format, std::int64_t tp) const {
  double out = 0;
  for (const LayerCache& c : kinds) {
    const double kept = c.limit > 0 ? std::min(tokens, to_double(c.limit)) : tokens;
    const double each = format.token_bytes / to_double(std::min(tp, c.ways));
    const double tokens_bytes = c.token_elements * each;
    const double state_bytes = c.state_elements * format.state_bytes + c.conv_elements * format.conv_bytes;
    out += to_double(c.layers) * (kept * (tokens_bytes + c.index_elements * format.index_bytes) +
                                  c.fixed_elements * each + state_bytes / to_double(std::min(tp, c.state_ways)));
  }
  return out;
}

}  // namespace scalecalc
