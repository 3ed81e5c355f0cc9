// What a model file says: the architecture, exactly enough to count its parameters, and how it was trained.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace scalecalc {

enum class AttentionKind { kFull, kSliding, kMla };
enum class FfnKind { kDense, kMoe };
enum class NormKind { kRms, kLayer };

struct MlaSpec {
  std::int64_t q_lora_rank = 0;  ///< 0: queries are projected directly
  std::int64_t kv_lora_rank = 0;
  std::int64_t qk_nope_head_dim = 0;
  std::int64_t qk_rope_head_dim = 0;
  std::int64_t v_head_dim = 0;
};

struct AttentionSpec {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t window = 0;  ///< tokens a sliding layer looks back; 0 if the model has no sliding layer
  bool qkv_bias = false;
  bool o_bias = false;
  bool qk_norm = false;  ///< one weight per head dimension, for q and for k
  bool sinks = false;    ///< one learned logit per head
  std::optional<MlaSpec> mla;
};

struct MlpSpec {
  std::int64_t d_ff = 0;
  bool gated = true;  ///< three matrices instead of two
  bool bias = false;
};

struct MoeSpec {
  std::int64_t experts = 0;
  std::int64_t top_k = 0;
  std::int64_t d_ff = 0;  ///< width of one expert
  std::int64_t shared_experts = 0;
  std::int64_t shared_d_ff = 0;  ///< width of all shared experts together
  std::int64_t node_limit = 0;   ///< nodes one token's experts may lie on; 0 = no limit
  bool router_bias = false;
  bool router_correction_bias = false;
  bool expert_bias = false;
  bool shared_gate = false;
};

struct LayerKind {
  AttentionKind attention = AttentionKind::kFull;
  FfnKind ffn = FfnKind::kDense;
  friend bool operator==(const LayerKind&, const LayerKind&) = default;
};

struct OfficialParameters {
  std::int64_t exact = 0;  ///< 0 if only a rounded figure is published
  double stated = 0;       ///< the size in the model's name, for rules of thumb; 0 if none
  double active = 0;       ///< as the vendor states it; 0 if none
  std::string active_convention;
};

/// How the model was trained, the defaults of `scalecalc train`. `assumed` says why a field that was never published
/// has the value it has.
struct TrainingFacts {
  double tokens = 0;
  std::int64_t seq = 0;
  double batch_tokens = 0;
  std::string precision = "bf16";
  std::string optimizer = "adam";
  std::string source;
  std::map<std::string, std::string> assumed;
};

struct ModelSpec {
  std::string name;
  std::string title;
  std::string source;
  std::int64_t d_model = 0;
  std::int64_t vocab = 0;
  std::int64_t max_seq = 0;
  std::int64_t learned_positions = 0;
  bool tied_embeddings = false;
  bool embedding_norm = false;
  NormKind norm = NormKind::kRms;
  bool norm_bias = false;
  std::int64_t norms_per_layer = 2;
  AttentionSpec attention;
  MlpSpec mlp;
  std::optional<MoeSpec> moe;
  std::vector<LayerKind> kinds;          ///< distinct kinds
  std::vector<std::uint8_t> layer_kind;  ///< per layer, an index into kinds; size = number of layers
  std::int64_t mtp_layers = 0;
  std::uint8_t mtp_kind = 0;
  OfficialParameters official;
  TrainingFacts training;

  std::int64_t layers() const { return static_cast<std::int64_t>(layer_kind.size()); }
};

}  // namespace scalecalc
