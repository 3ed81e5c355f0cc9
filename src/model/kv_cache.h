// What a model keeps of the tokens before: keys and values that grow with the context, up to a window or chunk in some
// layers, and states of constant size in recurrent ones. In elements; whoever asks knows the formats.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "spec/model_spec.h"

namespace scalecalc {

/// Layers of each of a model's kinds, in their order.
using LayersByKind = std::array<std::int64_t, kMaxLayerKinds>;

/// One kind of layer that keeps something, and how many of the model's layers are of it.
struct LayerCache {
  std::int64_t layers = 0;
  double token_elements = 0;  ///< of keys and values (or of the latent both come from), one token and layer
  double index_elements = 0;  ///< of an indexer's keys, one token and layer
  double fixed_elements = 0;  ///< of keys and values of a tower's output, one sequence and layer
  std::int64_t limit = 0;     ///< tokens kept at most: the window or chunk; 0 = all
  /// Ways the token elements divide over tensor ranks at most: the KV heads. 1: the latent, kept whole on every rank;
  /// index keys always are.
  std::int64_t ways = 1;
  double state_elements = 0;    ///< of the recurrence's state, one sequence and layer; kept in fp32 by convention
  double conv_elements = 0;     ///< of the short convolution's last inputs; kept in the activations' format
  std::int64_t state_ways = 1;  ///< ways state and convolution divide over tensor ranks
  friend bool operator==(const LayerCache&, const LayerCache&) = default;
};

/// Bytes of one cached element by what it is.
struct CacheFormat {
  double token_bytes = 2;
  double index_bytes = 132.0 / 128;  ///< fp8 with an fp32 scale for each key of 128: DeepSeek-V3.2's inference code
  double state_bytes = 4;            ///< fp32, as the published kernels keep it
  double conv_bytes = 2;
};

struct KvCache {
  std::vector<LayerCache> kinds;  ///< kinds of layers that keep something, in the order of the model's kinds

  /// Elements one more token adds while no window or chunk is full, index keys included.
  double elements_per_token() const;
  /// Of these, in layers that keep all tokens; the rest stops growing at the layers' limits.
  double unlimited_elements_per_token() const;
  /// The same two in bytes; recurrent states, which no token adds to, are not in them.
  double bytes_per_token(const CacheFormat& format) const;
  double unlimited_bytes_per_token(const CacheFormat& format) const;
  /// Bytes of one sequence of `tokens` tokens on one of `tp` tensor ranks; tp 1 = all of it.
  double sequence_bytes(double tokens, const CacheFormat& format, std::int64_t tp = 1) const;
};

/// Of the model's own layers; MTP modules, which an engine may leave out, are not in it.
KvCache kv_cache(const ModelSpec& model);
/// Of so many of these layers.
KvCache kv_cache(const ModelSpec& model, const LayersByKind& layers);

}  // namespace scalecalc
