// What a model file says: the architecture, exactly enough to count its parameters, and how it was trained.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spec/quantization_spec.h"

namespace scalecalc {

/// What mixes the tokens of a layer. Full, sliding and chunked are the attention of the attention block over the whole
/// sequence, a window or a chunk; gdn is a gated delta network, kda one with a decay of each channel, lightning a
/// linear attention with decay, conv a gated short convolution; full+mamba2 has both side by side, on one input. csa
/// and hca attend to a window and to tokens compressed a little and a lot (DeepSeek-V4), csa to those an indexer picks.
/// cross attends to a tower's output alone, full+cross and sliding+cross to the sequence and then to an encoder's.
/// strided attends to a window and, each head for itself, to every so manieth block before it; rwkv and rglru are
/// recurrences of RWKV and of Griffin.
enum class MixerKind : std::uint8_t {
  kFull,
  kSliding,
  kChunked,
  kMla,
  kGdn,
  kKda,
  kLightning,
  kConv,
  kMamba1,
  kMamba2,
  kRwkv,
  kRglru,
  kFullMamba2,
  kCsa,
  kHca,
  kCross,
  kFullCross,
  kSlidingCross,
  kStrided,
  kNone
};
inline constexpr std::array<std::string_view, 20> kMixerNames{
    "full", "sliding", "chunked",     "mla", "gdn", "kda",   "lightning",  "conv",          "mamba1",  "mamba2",
    "rwkv", "rglru",   "full+mamba2", "csa", "hca", "cross", "full+cross", "sliding+cross", "strided", "none"};
constexpr std::string_view name_of(MixerKind kind) { return kMixerNames[static_cast<std::size_t>(kind)]; }
/// Full, sliding and chunked: the kinds the attention block's heads describe, alone or beside a state space.
constexpr bool attends_by_heads(MixerKind kind) {
  return kind <= MixerKind::kChunked || (kind >= MixerKind::kFullMamba2 && kind <= MixerKind::kStrided);
}
/// Attends to the sequence, and behind that to an encoder's output.
constexpr bool attends_twice(MixerKind kind) {
  return kind == MixerKind::kFullCross || kind == MixerKind::kSlidingCross;
}
constexpr bool attends_across(MixerKind kind) { return kind == MixerKind::kCross || attends_twice(kind); }
/// Attends to the sequence in a window.
constexpr bool slides(MixerKind kind) { return kind == MixerKind::kSliding || kind == MixerKind::kSlidingCross; }
constexpr bool attends(MixerKind kind) { return attends_by_heads(kind) || kind == MixerKind::kMla; }
/// Hands a state on from token to token.
constexpr bool recurs(MixerKind kind) {
  return kind >= MixerKind::kGdn && kind <= MixerKind::kFullMamba2 && kind != MixerKind::kConv;
}

enum class FfnKind : std::uint8_t { kDense, kMoe, kNone };
inline constexpr std::array<std::string_view, 3> kFfnNames{"dense", "moe", "none"};
constexpr std::string_view name_of(FfnKind kind) { return kFfnNames[static_cast<std::size_t>(kind)]; }

enum class NormKind { kRms, kLayer };

/// Weights of the norms of queries and keys: one per head dimension, one per element of the whole projection, or as the
/// first with such weights also for keys that a layer reuses.
enum class QkNorm { kNone, kHeadDim, kFull, kHeadDimReused };

struct MlaSpec {
  std::int64_t q_lora_rank = 0;  ///< 0: queries are projected directly
  std::int64_t kv_lora_rank = 0;
  std::int64_t qk_nope_head_dim = 0;
  std::int64_t qk_rope_head_dim = 0;
  std::int64_t v_head_dim = 0;
};

/// Heads of one kind of attention layer.
struct AttentionShape {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;    ///< of queries and keys
  std::int64_t v_head_dim = 0;  ///< of values and outputs
  friend bool operator==(const AttentionShape&, const AttentionShape&) = default;
};

/// Picks the top_k tokens each query attends to by scores of its own (DeepSeek-V3.2).
struct IndexerSpec {
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t top_k = 0;
  bool weights = true;  ///< a weight of each index head, projected from the token
};

/// Queries through a latent, one tensor that is key and value, the output in groups through another latent; csa and hca
/// layers have one compressed token for each so many (DeepSeek-V4).
struct CompressedSpec {
  std::int64_t q_lora_rank = 0;
  std::int64_t o_lora_rank = 0;
  std::int64_t o_groups = 0;
  std::int64_t csa_ratio = 0;
  std::int64_t hca_ratio = 0;
};

/// Scores of contents against positions and of positions against contents, beside those of contents (DeBERTa,
/// arXiv:2006.03654 section 3.1).
struct DisentangledSpec {
  std::int64_t positions = 0;    ///< relative ones, before and behind a token
  bool own_projections = false;  ///< keys and queries of positions by matrices of their own, not those of contents
};

/// Of strided layers: a query attends to `local` tokens before it, and of the blocks further back to one in `stride`.
struct StridedSpec {
  std::int64_t local = 0;
  std::int64_t stride = 1;
};

struct AttentionSpec {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t v_head_dim = 0;    ///< 0: head_dim
  std::int64_t window = 0;        ///< tokens a sliding layer looks back; 0 if the model has no sliding layer
  std::int64_t chunk = 0;         ///< tokens a chunked layer's pieces hold; 0 if the model has no chunked layer
  bool causal = true;             ///< otherwise tokens attend to those behind them too; a window then lies around each
  std::int64_t cross_tokens = 0;  ///< that cross layers attend to; 0: as many as the sequence has
  bool cross_gates = false;       ///< cross layers norm queries and keys, and two weights scale what they add
  bool qkv_bias = false;
  bool key_bias = true;  ///< false: of qkv_bias the keys have none
  bool o_bias = false;
  bool reuse_stored = false;  ///< layers that reuse keys and values store projections of their own all the same
  QkNorm qk_norm = QkNorm::kNone;
  bool sinks = false;        ///< one learned logit per head
  bool local_sinks = false;  ///< the same on sliding layers
  bool output_gate = false;  ///< a gate of the output's width is projected beside the queries
  bool head_gate = false;    ///< the same with one gate a head
  bool shared_kv = false;    ///< full layers project no values: their keys before rotation serve
  std::optional<MlaSpec> mla;
  std::optional<AttentionShape> local;  ///< shape of the sliding layers where it is another
  std::optional<CompressedSpec> compressed;
  std::optional<StridedSpec> strided;
  std::optional<DisentangledSpec> disentangled;
  std::optional<IndexerSpec>
      indexer;  ///< on the csa layers; else on the full and MLA layers but those that reuse another's choice

  /// Heads of a full, sliding or chunked layer.
  AttentionShape shape(MixerKind kind) const {
    if (slides(kind) && local) return *local;
    return {heads, kv_heads, head_dim, v_head_dim > 0 ? v_head_dim : head_dim};
  }
};

/// Gated delta network: key heads shared by groups of value heads, a short convolution before the recurrence.
struct GdnSpec {
  std::int64_t key_heads = 0;
  std::int64_t key_head_dim = 0;
  std::int64_t value_heads = 0;
  std::int64_t value_head_dim = 0;
  std::int64_t conv_kernel = 0;
};

/// Delta network whose keys decay channel by channel, through projections of low rank (Kimi Linear) or whole ones (Ling
/// 3).
struct KdaSpec {
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t conv_kernel = 0;
  bool full_rank_gate = false;   ///< of the output; else through head_dim
  bool full_rank_decay = false;  ///< of the keys; else through head_dim
  std::int64_t width() const { return heads * head_dim; }
};

/// A short convolution between two gates, as wide as the model (LFM2).
struct ConvSpec {
  std::int64_t kernel = 0;
};

/// Linear attention with a decay per head and an output gate.
struct LightningSpec {
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  bool qk_norm = false;  ///< norms of queries and keys, a weight for each head dimension
};

/// Selective state space; Jamba has norms of the step size and of both state projections.
struct Mamba1Spec {
  bool norms = true;
  std::int64_t d_inner = 0;
  std::int64_t d_state = 0;
  std::int64_t d_conv = 0;
  std::int64_t dt_rank = 0;
};

struct Mamba2Spec {
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t groups = 0;  ///< of heads that share their state projections
  std::int64_t d_state = 0;
  std::int64_t d_conv = 0;
  std::int64_t chunk = 256;  ///< tokens that the scan multiplies as one block; mamba_ssm's default
  bool norm = true;          ///< the gated output is normed
  std::int64_t d_inner() const { return heads * head_dim; }
};

/// Time mixing of RWKV: a state of each channel (4), of heads with a fixed decay (5), with one that the token decides
/// (6), with a delta rule (7), each projection reading a token mixed with the one before it.
struct RwkvSpec {
  std::int64_t version = 7;
  std::int64_t width = 0;
  std::int64_t head_dim = 0;    ///< from 5 on
  std::int64_t mix_rank = 0;    ///< 6: of what decides the mixing with the token before
  std::int64_t decay_rank = 0;  ///< 6 and 7: of what decides the decay
  std::int64_t rate_rank = 0;   ///< 7: of the rate at which the state learns
  std::int64_t value_rank = 0;  ///< 7: of the share of the first layer's values; that layer has none
  std::int64_t gate_rank = 0;   ///< 7: of the output's gate
  std::int64_t heads() const { return head_dim > 0 ? width / head_dim : width; }
};

/// A real-gated linear recurrence of each channel, behind a short convolution and beside a gate (Griffin).
struct RglruSpec {
  std::int64_t width = 0;
  std::int64_t blocks = 0;  ///< of channels, whose gates are projected from their own block
  std::int64_t conv_kernel = 0;
};

struct MlpSpec {
  std::int64_t d_ff = 0;  ///< 0 if the model has no dense layer, or each group of layers has a width of its own
  bool gated = true;      ///< three matrices instead of two; routed and shared experts too
  bool bias = false;
  std::int64_t activation_weights = 0;  ///< of the activation function of a dense MLP, as xIELU has them
  std::int64_t token_shift = 0;         ///< mixings of a token with the one before it, d_model weights each (RWKV)
  bool receptance = false;              ///< a gate of the output, projected from the token (RWKV)
};

struct MoeSpec {
  std::int64_t experts = 0;
  std::int64_t top_k = 0;
  std::int64_t d_ff = 0;  ///< width of one expert
  std::int64_t shared_experts = 0;
  std::int64_t shared_d_ff = 0;   ///< width of all shared experts together
  std::int64_t n_group = 0;       ///< equal groups of neighbouring experts that the router chooses from first; 0 = none
  std::int64_t topk_group = 0;    ///< of them, those that a token's experts may lie in
  std::int64_t latent = 0;        ///< width the routed experts work in, projected from and to d_model; 0 = d_model
  std::int64_t zero_experts = 0;  ///< choices of the router that are no experts and cost nothing; top_k is without them
  std::int64_t branch_norms = 0;  ///< norms of d_model around the routed and the shared branch, beside the layer's own
  bool latent_norm = false;       ///< what the experts read in the latent width is normed
  bool router_scale = false;      ///< weights of the router's input and of each expert's output
  bool router_bias = false;
  bool router_correction_bias = false;
  bool expert_bias = false;
  bool shared_gate = false;
};

struct LayerKind {
  MixerKind mixer = MixerKind::kFull;
  FfnKind ffn = FfnKind::kDense;
  /// Takes what a layer before it has: with an indexer the tokens it picked, else the keys and values of the last of
  /// the same kind. Has none itself. Of rwkv: mixes its values with those of the first layer.
  bool reuse = false;
  std::optional<std::int64_t> d_ff;   ///< width of the dense MLP where it is not the model's
  std::optional<std::int64_t> norms;  ///< norms of the layer where they are not the model's
  bool hashed = false;                ///< a table of token ids chooses the experts, without a correction bias
  bool whole = false;                 ///< attends to all tokens, in a model whose other layers have an indexer
  friend bool operator==(const LayerKind&, const LayerKind&) = default;
};

/// "mla/moe", "mla/moe/reuse": as model files spell it.
std::string name_of(const LayerKind& kind);

/// Different layers one model may have; costs are computed once for each.
inline constexpr std::size_t kMaxLayerKinds = 16;

struct OfficialParameters {
  std::int64_t exact = 0;  ///< 0 if only a rounded figure is published
  double stated = 0;       ///< the size in the model's name, for rules of thumb; 0 if none
  double active = 0;       ///< as the vendor states it; 0 if none
  std::string active_convention;
};

/// How the model was trained, the defaults of `scalecalc train`; what was not published is absent. `assumed` says why a
/// field that was never published has the value it has.
struct TrainingFacts {
  std::optional<double> tokens;
  std::optional<std::int64_t> seq;
  std::optional<double> batch_tokens;
  std::optional<std::string> precision;
  std::optional<std::string> optimizer;
  std::string source;
  std::map<std::string, std::string> assumed;
};

/// A model that only drafts tokens for a larger one, from states of some of its layers (EAGLE-3, arXiv:2503.01840). Its
/// embedding is the target's; its one layer reads the embedding and the projected states side by side.
struct DraftSpec {
  std::int64_t target_d_model = 0;
  std::int64_t target_layers = 0;  ///< whose states are projected together to d_model
};

/// A table that gives every layer a vector of its own for each token (Gemma 3n), and the
/// part of each layer that mixes it in.
struct PerLayerEmbedding {
  std::int64_t width = 0;
  std::int64_t vocab = 0;
};

/// Several residual streams beside each other, mixed before and behind each part of a layer: by hyper-connections
/// (DeepSeek-V4), or predicted and corrected from the one a layer works on (AltUp, Gemma 3n).
enum class StreamKind : std::uint8_t { kHyper, kAltup };
struct StreamsSpec {
  std::int64_t count = 1;
  StreamKind kind = StreamKind::kHyper;
};

/// A table for each of several hashes of a token and those before it; the rows found are projected to d_model and added
/// to the token's own (LongCat-Flash-Lite, arXiv:2601.21204).
struct NgramEmbedding {
  std::int64_t tables = 0;
  std::int64_t rows = 0;   ///< of all tables together
  std::int64_t width = 0;  ///< of a row
};

/// What stands between the last layer and the head: nothing; a projection of the first token's state; a projection of
/// each state to the embedding's width, its activation and a norm; the same as wide as the model and without a norm.
enum class HeadDense : std::uint8_t { kNone, kPooler, kTransform, kDense };

struct TowerSpec;

struct ModelSpec {
  std::string name;
  std::string title;
  std::string vendor;    ///< empty if the file does not say
  std::string released;  ///< "2024-12"
  std::string source;
  std::int64_t d_model = 0;
  std::int64_t vocab = 0;
  std::int64_t max_seq = 0;
  std::int64_t learned_positions = 0;
  std::int64_t input_tokens = 0;   ///< rows of the embedding beside the vocabulary, which no head tells
  std::int64_t embedding_dim = 0;  ///< width of the embedding table where it is projected to d_model; 0 = d_model
  bool embedding_bias = false;     ///< of that projection
  bool tied_embeddings = false;
  bool embedding_norm = false;
  bool head_bias = false;
  std::optional<std::int64_t> head_outputs;  ///< of a head of its own, such as classes; 0 = no head; absent: vocab
  bool final_norm = true;
  bool relative_positions = false;  ///< Transformer-XL: keys of the relative positions, d_model x d_model per layer
  bool parallel_block = false;      ///< mixer and FFN of a layer read the same input
  bool layer_scale = false;         ///< one weight scales what a layer hands on
  std::int64_t residual_block = 0;  ///< layers of a block whose output every later sub-layer may attend to; 0 = none
  std::optional<PerLayerEmbedding> per_layer_embedding;
  std::optional<NgramEmbedding> ngram_embedding;
  StreamsSpec streams;
  std::int64_t laurel_rank = 0;      ///< of a low-rank residual beside attention (Gemma 3n); 0 = none
  std::int64_t position_biases = 0;  ///< weights by which scores depend on distance, one table for all layers
  HeadDense head_dense = HeadDense::kNone;
  std::vector<TowerSpec> towers;  ///< of images and sound, or the encoder; none of their layers is in `layer_kind`
  NormKind norm = NormKind::kRms;
  bool norm_bias = false;
  bool norm_weights = true;  ///< false: all norms only scale to unit variance (OLMo, arXiv:2402.00838 section 2.1)
  std::int64_t norms_per_layer = 2;
  AttentionSpec attention;
  MlpSpec mlp;
  std::optional<MoeSpec> moe;
  std::optional<GdnSpec> gdn;
  std::optional<KdaSpec> kda;
  std::optional<LightningSpec> lightning;
  std::optional<ConvSpec> conv;
  std::optional<Mamba1Spec> mamba1;
  std::optional<Mamba2Spec> mamba2;
  std::optional<RwkvSpec> rwkv;
  std::optional<RglruSpec> rglru;
  std::vector<LayerKind> kinds;          ///< distinct kinds, at most kMaxLayerKinds
  std::vector<std::uint8_t> layer_kind;  ///< per layer, an index into kinds; size = number of layers
  std::optional<DraftSpec> draft;        ///< absent: a model of its own
  std::int64_t mtp_layers = 0;
  std::uint8_t mtp_kind = 0;
  std::optional<QuantizationSpec> quantization;  ///< how the checkpoint is stored; absent: not said, 16 bits
  OfficialParameters official;
  TrainingFacts training;

  /// Columns of the output head.
  std::int64_t head_width() const { return head_outputs.value_or(vocab); }
  std::int64_t layers() const { return static_cast<std::int64_t>(layer_kind.size()); }
  /// Width of the dense MLP of a layer, and how many norms it has.
  std::int64_t d_ff_of(const LayerKind& kind) const { return kind.d_ff.value_or(mlp.d_ff); }
  std::int64_t norms_of(const LayerKind& kind) const { return kind.norms.value_or(norms_per_layer); }
  /// Weights of a norm for each element of its width.
  double norm_parameters() const { return norm_weights ? (norm_bias ? 2.0 : 1.0) : 0.0; }
  /// Whether a layer hands a state on from token to token.
  bool has_recurrence() const {
    for (const LayerKind& kind : kinds) {
      if (recurs(kind.mixer)) return true;
    }
    return false;
  }
};

struct ProjectorLayer {
  std::int64_t in = 0;
  std::int64_t out = 0;
  bool bias = false;
  std::int64_t times = 1;  ///< for each position, as a convolution before strides has it
};

/// A stack of layers in front of the model's own: what it reads is no text, or a text of its own (an encoder).
struct TowerSpec {
  std::string name;  ///< "vision", "audio", "encoder"
  /// Its layers, width, attention, MLP and norms; no head, and a vocabulary only with an embedding of its own.
  ModelSpec network;
  std::vector<ProjectorLayer> stem;       ///< of each patch or frame, in front of the layers; none: embedded tokens
  std::int64_t other_weights = 0;         ///< class tokens, norms outside the layers and the like
  std::int64_t patch = 0;                 ///< pixels along a side of a patch; 0: no images
  std::int64_t merge = 1;                 ///< positions that go on as one token
  std::vector<ProjectorLayer> projector;  ///< of each token that goes on
  std::int64_t tokens = 0;                ///< positions that pass its layers at a time; 0: as many as the sequence has
  bool counted = false;                   ///< in the model's own parameters, as an encoder is
  double per_token = 0;                   ///< positions for each token of the sequence, as the question has it
  double positions = 0;                   ///< of a sequence
};

/// Towers that run whatever the question shows them: an encoder's positions for a sequence of so many tokens.
void at_length(ModelSpec& model, double seq);

}  // namespace scalecalc
