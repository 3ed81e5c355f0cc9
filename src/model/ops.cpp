// Transformer layers as operation lists. Shapes follow the scaling book, chapter 4 (dense, GQA, MoE) and the
// DeepSeek-V2 paper, arXiv:2405.04434 section 2.1 (MLA). What the backward pass keeps follows Korthikanti et al. 2022,
// arXiv:2205.05198 section 4, with flash attention (no score matrix is kept).
#include "model/ops.h"

namespace scalecalc {
namespace {

template <class R>
class LayerBuilder {
 public:
  LayerBuilder(const ModelSpec& model, const ModelDims<R>& dims) : model_(model), dims_(dims) {}

  std::vector<Op<R>> build(const LayerKind& kind) {
    norm("attention norm", dims_.d_model, Keep::kAlways);
    if (kind.attention == AttentionKind::kMla) {
      mla_projections();
    } else {
      qkv_projections();
    }
    attention(kind.attention);
    output_projection();
    if (model_.norms_per_layer >= 4) norm("post-attention norm", dims_.d_model, Keep::kSelective);
    residual("attention residual");
    if (model_.norms_per_layer >= 2) norm("mlp norm", dims_.d_model, Keep::kSelective);
    if (kind.ffn == FfnKind::kMoe) {
      moe();
    } else {
      dense_mlp(dims_.d_ff, Part::kMlp);
    }
    if (model_.norms_per_layer >= 4) norm("post-mlp norm", dims_.d_model, Keep::kSelective);
    residual("mlp residual");
    return std::move(ops_);
  }

 private:
  R norm_parameters(const R& width) const { return width * R(model_.norm_bias ? 2.0 : 1.0); }

  /// A norm keeps its input (`keep_input`; what remat does to it) and its output, which the next matmul's weight
  /// gradient needs and which is cheap to compute again.
  void norm(std::string_view name, const R& width, Keep keep_input) {
    ops_.push_back({.name = name,
                    .kind = OpKind::kVector,
                    .part = Part::kNorm,
                    .tp = TpRule::kSequence,
                    .extra_parameters = norm_parameters(width),
                    .reads = width,
                    .writes = width,
                    .flops = width * R(4.0),
                    .saved = width,
                    .keep = keep_input});
    ops_.push_back({.name = "norm output",
                    .kind = OpKind::kVector,
                    .part = Part::kNorm,
                    .tp = TpRule::kSequence,
                    .saved = width,
                    .keep = Keep::kWithoutRemat});
  }

  void residual(std::string_view name) {
    ops_.push_back({.name = name,
                    .kind = OpKind::kVector,
                    .part = Part::kNorm,
                    .tp = TpRule::kSequence,
                    .reads = dims_.d_model * R(2.0),
                    .writes = dims_.d_model,
                    .flops = dims_.d_model});
  }

  void matmul(std::string_view name, Part part, TpRule tp, const R& k, const R& n, bool bias, TpRule saved_tp) {
    ops_.push_back({.name = name,
                    .kind = OpKind::kMatmul,
                    .part = part,
                    .tp = tp,
                    .k = k,
                    .n = n,
                    .extra_parameters = bias ? n : R(0.0),
                    .saved = n,
                    .keep = Keep::kSelective,
                    .saved_tp = saved_tp});
  }

  void qkv_projections() {
    const AttentionSpec& a = model_.attention;
    const R q_width = dims_.heads * dims_.head_dim;
    const R kv_width = R(2.0) * dims_.kv_heads * dims_.head_dim;
    matmul("query projection", Part::kAttention, TpRule::kColumn, dims_.d_model, q_width, a.qkv_bias, TpRule::kColumn);
    matmul("key/value projection", Part::kAttention, TpRule::kKvColumn, dims_.d_model, kv_width, a.qkv_bias,
           TpRule::kKvColumn);
    const R rotated = q_width + dims_.kv_heads * dims_.head_dim;
    ops_.push_back({.name = "rotary embedding",
                    .kind = OpKind::kVector,
                    .part = Part::kAttention,
                    .tp = TpRule::kColumn,
                    .extra_parameters = R(a.qk_norm ? 2.0 : 0.0) * dims_.head_dim,
                    .reads = rotated,
                    .writes = rotated,
                    .flops = rotated * R(3.0)});
  }

  void mla_projections() {
    const MlaSpec& m = *model_.attention.mla;
    const R qk_dim(static_cast<double>(m.qk_nope_head_dim + m.qk_rope_head_dim));
    const R kv_rank(static_cast<double>(m.kv_lora_rank));
    const R rope(static_cast<double>(m.qk_rope_head_dim));
    const R expanded(static_cast<double>(m.qk_nope_head_dim + m.v_head_dim));
    if (m.q_lora_rank > 0) {
      const R q_rank(static_cast<double>(m.q_lora_rank));
      matmul("query down-projection", Part::kAttention, TpRule::kSequence, dims_.d_model, q_rank, false,
             TpRule::kSequence);
      norm("query latent norm", q_rank, Keep::kNever);
      matmul("query up-projection", Part::kAttention, TpRule::kColumn, q_rank, dims_.heads * qk_dim, false,
             TpRule::kColumn);
    } else {
      matmul("query projection", Part::kAttention, TpRule::kColumn, dims_.d_model, dims_.heads * qk_dim, false,
             TpRule::kColumn);
    }
    matmul("key/value down-projection", Part::kAttention, TpRule::kSequence, dims_.d_model, kv_rank + rope, false,
           TpRule::kSequence);
    norm("key/value latent norm", kv_rank, Keep::kNever);
    matmul("key/value up-projection", Part::kAttention, TpRule::kColumn, kv_rank, dims_.heads * expanded, false,
           TpRule::kColumn);
  }

  void attention(AttentionKind kind) {
    const AttentionSpec& a = model_.attention;
    const R v_dim = a.mla ? R(static_cast<double>(a.mla->v_head_dim)) : dims_.head_dim;
    ops_.push_back({.name = "attention",
                    .kind = OpKind::kAttention,
                    .part = Part::kAttention,
                    .tp = TpRule::kHeads,
                    .extra_parameters = a.sinks ? dims_.heads : R(0.0),
                    .qk_width = dims_.heads * dims_.head_dim,
                    .v_width = dims_.heads * v_dim,
                    .window = kind == AttentionKind::kSliding ? dims_.window : R(0.0),
                    .saved = dims_.heads * (v_dim + R(2.0)),  // output, and one fp32 log-sum per head
                    .keep = Keep::kSelective,
                    .saved_tp = TpRule::kHeads});
  }

  void output_projection() {
    const AttentionSpec& a = model_.attention;
    const R v_dim = a.mla ? R(static_cast<double>(a.mla->v_head_dim)) : dims_.head_dim;
    ops_.push_back({.name = "attention output projection",
                    .kind = OpKind::kMatmul,
                    .part = Part::kAttention,
                    .tp = TpRule::kRow,
                    .k = dims_.heads * v_dim,
                    .n = dims_.d_model,
                    .extra_parameters = a.o_bias ? dims_.d_model : R(0.0)});
  }

  void activation(const R& width, const R& rows, Part part, TpRule tp) {
    const R inputs(model_.mlp.gated ? 2.0 : 1.0);
    ops_.push_back({.name = "mlp activation",
                    .kind = OpKind::kVector,
                    .part = part,
                    .tp = tp,
                    .reads = rows * width * inputs,
                    .writes = rows * width,
                    .flops = rows * width * R(8.0),
                    .saved = rows * width,
                    .keep = Keep::kWithoutRemat,
                    .saved_tp = tp});
  }

  void dense_mlp(const R& width, Part part) {
    const bool bias = model_.mlp.bias;
    if (model_.mlp.gated) {
      matmul("mlp gate projection", part, TpRule::kColumn, dims_.d_model, width, bias, TpRule::kColumn);
    }
    matmul("mlp up projection", part, TpRule::kColumn, dims_.d_model, width, bias, TpRule::kColumn);
    activation(width, R(1.0), part, TpRule::kColumn);
    ops_.push_back({.name = "mlp down projection",
                    .kind = OpKind::kMatmul,
                    .part = part,
                    .tp = TpRule::kRow,
                    .k = width,
                    .n = dims_.d_model,
                    .extra_parameters = bias ? dims_.d_model : R(0.0)});
  }

  void expert_matmul(std::string_view name, TpRule tp, const R& k, const R& n) {
    const MoeSpec& moe = *model_.moe;
    ops_.push_back({.name = name,
                    .kind = OpKind::kGroupedMatmul,
                    .part = Part::kExperts,
                    .tp = tp,
                    .rows = dims_.top_k,
                    .k = k,
                    .n = n,
                    .matrices = dims_.experts,
                    .extra_parameters = moe.expert_bias ? dims_.experts * n : R(0.0),
                    .saved = dims_.top_k * n,
                    .keep = Keep::kSelective,
                    .saved_tp = TpRule::kExpert});
  }

  void moe() {
    const MoeSpec& moe = *model_.moe;
    ops_.push_back({.name = "router",
                    .kind = OpKind::kMatmul,
                    .part = Part::kRouter,
                    .tp = TpRule::kSequence,
                    .k = dims_.d_model,
                    .n = dims_.experts,
                    .extra_parameters =
                        dims_.experts * R((moe.router_bias ? 1.0 : 0.0) + (moe.router_correction_bias ? 1.0 : 0.0))});
    const R routed = dims_.top_k * dims_.d_model;
    // The dispatched copies are inputs of the experts' weight gradients; fetching them again would cost an all-to-all.
    ops_.push_back({.name = "expert dispatch and combine",
                    .kind = OpKind::kVector,
                    .part = Part::kRouter,
                    .tp = TpRule::kExpert,
                    .reads = routed * R(2.0),
                    .writes = routed + dims_.d_model,
                    .flops = routed * R(2.0),
                    .saved = routed,
                    .keep = Keep::kSelective,
                    .saved_tp = TpRule::kExpert});
    if (model_.mlp.gated) {
      expert_matmul("expert gate projection", TpRule::kExpert, dims_.d_model, dims_.d_ff_expert);
    }
    expert_matmul("expert up projection", TpRule::kExpert, dims_.d_model, dims_.d_ff_expert);
    activation(dims_.d_ff_expert, dims_.top_k, Part::kExperts, TpRule::kExpert);
    expert_matmul("expert down projection", TpRule::kExpertRow, dims_.d_ff_expert, dims_.d_model);
    if (moe.shared_experts > 0) {
      dense_mlp(dims_.d_ff_shared, Part::kMlp);
      if (moe.shared_gate) ops_.back().extra_parameters = ops_.back().extra_parameters + dims_.d_model;
    }
  }

  const ModelSpec& model_;
  const ModelDims<R>& dims_;
  std::vector<Op<R>> ops_;
};

}  // namespace

template <class R>
ModelDims<R> read_dims(const Reader<R>& reader, const ModelSpec& model) {
  const auto in = [&](std::int64_t value, const char* name) {
    return reader.input(static_cast<double>(value), name, model.source);
  };
  const MoeSpec moe = model.moe.value_or(MoeSpec{});
  return {.d_model = in(model.d_model, "d_model"),
          .d_ff = in(model.mlp.d_ff, "d_ff"),
          .heads = in(model.attention.heads, "heads"),
          .kv_heads = in(model.attention.kv_heads, "kv_heads"),
          .head_dim = in(model.attention.head_dim, "head_dim"),
          .vocab = in(model.vocab, "vocab"),
          .window = in(model.attention.window, "window"),
          .experts = in(moe.experts, "experts"),
          .top_k = in(moe.top_k, "top_k"),
          .d_ff_expert = in(moe.d_ff, "expert d_ff"),
          .d_ff_shared = in(moe.shared_d_ff, "shared d_ff")};
}

template <class R>
std::vector<Op<R>> layer_ops(const ModelSpec& model, const LayerKind& kind, const ModelDims<R>& dims) {
  return LayerBuilder<R>(model, dims).build(kind);
}

template <class R>
std::vector<Op<R>> embedding_ops(const ModelSpec& model, const ModelDims<R>& dims) {
  const R positions(static_cast<double>(model.learned_positions));
  const R norm = dims.d_model * R(model.embedding_norm ? (model.norm_bias ? 2.0 : 1.0) : 0.0);
  // A lookup reads one row per token; its weights are a table, not a matmul.
  return {{.name = "embedding lookup",
           .kind = OpKind::kVector,
           .part = Part::kEmbedding,
           .tp = TpRule::kSequence,
           .extra_parameters = dims.vocab * dims.d_model + positions * dims.d_model + norm,
           .reads = dims.d_model,
           .writes = dims.d_model}};
}

template <class R>
std::vector<Op<R>> head_ops(const ModelSpec& model, const ModelDims<R>& dims) {
  return {{.name = "final norm",
           .kind = OpKind::kVector,
           .part = Part::kNorm,
           .tp = TpRule::kSequence,
           .extra_parameters = dims.d_model * R(model.norm_bias ? 2.0 : 1.0),
           .reads = dims.d_model,
           .writes = dims.d_model,
           .flops = dims.d_model * R(4.0),
           .saved = dims.d_model * R(2.0),
           .keep = Keep::kAlways},
          {.name = "vocabulary projection",
           .kind = OpKind::kMatmul,
           .part = Part::kHead,
           .tp = TpRule::kColumn,
           .k = dims.d_model,
           .n = dims.vocab},
          // Softmax and cross-entropy in fp32: read the logits twice, write their gradient.
          {.name = "softmax and loss",
           .kind = OpKind::kVector,
           .part = Part::kHead,
           .tp = TpRule::kColumn,
           .reads = dims.vocab * R(2.0),
           .writes = dims.vocab,
           .flops = dims.vocab * R(6.0)}};
}

template <class R>
std::vector<Op<R>> mtp_ops(const ModelSpec& model, const ModelDims<R>& dims) {
  // DeepSeek-V3 report, arXiv:2412.19437 section 2.2: the previous depth's state and the next token's embedding are
  // normed, concatenated and projected back to d_model; the module has its own final norm.
  const R norms = dims.d_model * R(model.norm_bias ? 6.0 : 3.0);
  return {{.name = "mtp norms",
           .kind = OpKind::kVector,
           .part = Part::kMtp,
           .tp = TpRule::kSequence,
           .extra_parameters = norms,
           .reads = dims.d_model * R(3.0),
           .writes = dims.d_model * R(3.0),
           .flops = dims.d_model * R(12.0),
           .saved = dims.d_model * R(3.0),
           .keep = Keep::kSelective},
          {.name = "mtp projection",
           .kind = OpKind::kMatmul,
           .part = Part::kMtp,
           .tp = TpRule::kSequence,
           .k = dims.d_model * R(2.0),
           .n = dims.d_model,
           .saved = dims.d_model,
           .keep = Keep::kSelective}};
}

double mean_context(double seq, double window, bool causal) {
  const bool windowed = window > 0 && window < seq;
  if (!causal) return windowed ? window : seq;
  return windowed ? window - window * window / (2 * seq) : seq / 2;
}

#define SCALECALC_INSTANTIATE(R)                                                                  \
  template ModelDims<R> read_dims(const Reader<R>&, const ModelSpec&);                            \
  template std::vector<Op<R>> layer_ops(const ModelSpec&, const LayerKind&, const ModelDims<R>&); \
  template std::vector<Op<R>> embedding_ops(const ModelSpec&, const ModelDims<R>&);               \
  template std::vector<Op<R>> head_ops(const ModelSpec&, const ModelDims<R>&);                    \
  template std::vector<Op<R>> mtp_ops(const ModelSpec&, const ModelDims<R>&);
SCALECALC_INSTANTIATE(double)
SCALECALC_INSTANTIATE(Dual)
SCALECALC_INSTANTIATE(Traced)
SCALECALC_INSTANTIATE(Interval)
#undef SCALECALC_INSTANTIATE

}  // namespace scalecalc
