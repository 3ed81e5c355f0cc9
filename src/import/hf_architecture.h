// What a config.json says, family by family brought to one form: the fields of a scalecalc-model/1 document with the
// places they were read from.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "import/hf_keys.h"

namespace scalecalc {

struct HfLayer {
  std::string_view mixer = "full";  ///< words of the document: full, sliding, chunked, mla, gdn, ..., none
  std::string_view ffn = "dense";   ///< dense, moe, none
  std::int64_t d_ff = 0;            ///< 0: the model's
  std::int64_t norms = -1;          ///< -1: the model's
  bool reuse = false;               ///< takes an earlier layer's choice of tokens, or its keys and values
  bool hashed = false;              ///< a table of token ids chooses its experts
  bool whole = false;               ///< without the indexer that others have
  friend bool operator==(const HfLayer&, const HfLayer&) = default;
};

/// Heads of the sliding layers where they are others.
struct HfLocal {
  Size heads, kv_heads, head_dim, v_head_dim;
};

struct HfMla {
  Size q_lora_rank;  ///< 0: queries are projected directly
  Size kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim, v_head_dim;
};

struct HfIndexer {
  Size heads, head_dim, top_k;
  bool weights = true;
};

struct HfMoe {
  Size experts, top_k, d_ff;
  Size shared_experts, shared_d_ff;  ///< 0: none; the width is that of all together
  Size n_group, topk_group, latent;  ///< 0: none
  bool router_bias = false;
  bool router_correction_bias = false;
  bool expert_bias = false;
  bool shared_gate = false;
  Size zero_experts, branch_norms;
  bool latent_norm = false;
  bool router_scale = false;
  bool beside_mlp = false;  ///< in modules beside the MLP, which is the shared expert here
};

struct HfGdn {
  Size key_heads, key_head_dim, value_heads, value_head_dim, conv_kernel;
};

struct HfKda {
  Size heads, head_dim, conv_kernel;
  bool full_rank_gate = false, full_rank_decay = false;
};

struct HfPerLayer {
  Size width, vocab;
};

struct HfLightning {
  Size heads, head_dim;
  bool qk_norm = false;
};

struct HfMamba1 {
  Size d_inner, d_state, d_conv, dt_rank;
  bool norms = true;
};

struct HfMamba2 {
  Size heads, head_dim, groups, d_state, d_conv, chunk;
  bool norm = true;
};

/// Ranks are 0 where the version has none.
struct HfRwkv {
  std::int64_t version = 7;
  Size width, head_dim, mix_rank, decay_rank, rate_rank, value_rank, gate_rank;
};

struct HfRglru {
  Size width, blocks, conv_kernel;
};

struct HfStrided {
  Size local, stride;
};

struct HfDisentangled {
  Size positions;
  bool own_projections = false;
};

struct HfNgrams {
  Size tables, rows, width;
};

struct HfCompressed {
  Size q_lora_rank, o_lora_rank, o_groups, csa_ratio, hca_ratio;
};

struct HfProjection {
  std::int64_t in = 0, out = 0;
  bool bias = false;
  std::int64_t times = 1;  ///< for each position
};

/// Layers in front of the model's own, as a vision transformer has them unless said otherwise.
struct HfTower {
  std::string_view name = "vision";
  bool counted = false;
  Size d_model, heads, d_ff, layers;
  Size vocab;                   ///< of an embedding of its own; 0: none
  Size kv_heads;                ///< 0: heads
  Size head_dim;                ///< 0: d_model / heads
  std::int64_t norms = 2;       ///< of a layer
  std::string_view activation;  ///< of a gated MLP, where it is not silu
  bool gated = false, qkv_bias = true, key_bias = true, o_bias = true, mlp_bias = true;
  bool layernorm = true, final_norm = false;
  Size window;                            ///< 0: none
  std::vector<std::int64_t> full_layers;  ///< of a tower with a window
  std::vector<HfProjection> stem, projector;
  std::int64_t other_weights = 0, learned_positions = 0, position_biases = 0;
  std::int64_t patch = 0, merge = 1, tokens = 0;
};

/// Which heads a bidirectional family's classes have.
/// kBert: the bare class pools the first token; kUnpooled: as BERT, but its bare class has no pooler; kElectra: the
/// same, and one that tells which tokens were replaced.
enum class HfEncoder { kNone, kBert, kUnpooled, kElectra, kModernBert };

/// Of a family's ForRewardModel: a projection, or one behind a layer as wide as the model.
enum class HfReward { kNone, kPlain, kDense };

struct HfDraft {
  Size target_d_model;
  Size target_layers = {3, {}};  ///< EAGLE-3: one early, one middle, one late
};

struct HfArchitecture {
  Size d_model, vocab, max_seq;
  Size learned_positions, embedding_dim;  ///< 0: none, d_model
  bool embedding_bias = false;
  Size input_tokens, position_biases;  ///< 0: none
  HfEncoder encoder = HfEncoder::kNone;
  std::string_view head_dense = "none";
  Size streams, laurel_rank;  ///< 0: none
  std::string_view stream_kind = "hyper";
  std::vector<HfTower> towers;
  bool tied_embeddings = false;
  bool embedding_norm = false;
  bool final_norm = true;
  bool head_bias = false;
  std::optional<Size> head_outputs;  ///< where they are not the vocabulary
  bool headed_model = false;         ///< the bare class has the head too
  HfReward reward = HfReward::kNone;
  bool classifies_dense = false;  ///< a head of labels has a projection in front of it, and a bias
  bool layer_scale = false;
  Size residual_block;
  std::optional<HfPerLayer> per_layer;
  std::optional<HfNgrams> ngrams;
  std::optional<HfDraft> draft;
  bool parallel_block = false;

  bool layernorm = false;  ///< otherwise rmsnorm
  bool norm_bias = false;
  bool norm_weights = true;
  std::int64_t norms_per_layer = 2;

  Size heads, kv_heads, head_dim;  ///< kv_heads and head_dim unused under MLA
  Size v_head_dim;                 ///< 0: head_dim
  std::optional<HfLocal> local;
  Size window, chunk;  ///< 0: none
  bool causal = true;
  Size cross_tokens;
  bool cross_gates = false, key_bias = true, reuse_stored = false;
  std::optional<HfCompressed> compressed;
  std::optional<HfStrided> strided;
  std::optional<HfDisentangled> disentangled;
  bool qkv_bias = false;
  bool o_bias = false;
  bool sinks = false;
  std::optional<bool> local_sinks;  ///< of sliding layers, where they are not as the others
  bool output_gate = false;
  bool head_gate = false;
  bool shared_kv = false;
  std::string_view qk_norm = "none";  ///< none, head_dim, full
  std::optional<HfMla> mla;
  std::optional<HfIndexer> indexer;

  Size d_ff;  ///< 0: no dense layer
  bool gated = true;
  std::string_view activation;  ///< of a gated MLP, where it is not silu
  bool mlp_bias = false;
  bool receptance = false;
  std::int64_t activation_weights = 0, token_shift = 0;
  std::optional<HfMoe> moe;

  std::optional<HfGdn> gdn;
  std::optional<HfKda> kda;
  std::optional<HfLightning> lightning;
  Size conv_kernel;  ///< of layers that are a gated convolution
  std::optional<HfMamba1> mamba1;
  std::optional<HfMamba2> mamba2;
  std::optional<HfRwkv> rwkv;
  std::optional<HfRglru> rglru;

  std::vector<HfLayer> layers;
  Size mtp_layers;  ///< 0: none
  HfLayer mtp_kind;

  std::int64_t layer_count() const { return static_cast<std::int64_t>(layers.size()); }
  bool has_mixer(std::string_view mixer) const {
    for (const HfLayer& layer : layers) {
      if (layer.mixer == mixer) return true;
    }
    return false;
  }
  bool has_ffn(std::string_view ffn) const {
    for (const HfLayer& layer : layers) {
      if (layer.ffn == ffn) return true;
    }
    return false;
  }
};

}  // namespace scalecalc
