// Lists the operations of layers, embedding and head, from which all parameters, FLOPs and times are computed. Shapes
// follow the scaling book, chapter 4 (dense, MoE). What the backward pass keeps follows Korthikanti et al. 2022,
// arXiv:2205.05198 section 4. Latent experts: Nemotron 3; parallel mixer and FFN: PaLM, arXiv:2204.02311 section 2;
// factorised embedding: ALBERT, arXiv:1909.11942 section 3.1.
#include "model/ops.h"

#include "model/op_list.h"

namespace scalecalc {
namespace {

template <class R>
class LayerBuilder {
 public:
  LayerBuilder(const ModelSpec& model, const LayerKind& kind, const ModelDims<R>& dims)
      : model_(model), kind_(kind), dims_(dims), list_(model, dims) {
    d_ff_ = kind.d_ff ? fixed<R>(*kind.d_ff) : dims.d_ff;
  }

  /// Norms stand, as far as the layer has them: before the mixer, before the FFN, after the mixer, after the FFN.
  /// Post-norm layers have the same norms elsewhere, which costs the same.
  std::vector<Op<R>> build() {
    const bool mixes = kind_.mixer != MixerKind::kNone;
    const bool feeds = kind_.ffn != FfnKind::kNone;
    const std::int64_t norms = model_.norms_of(kind_);
    const std::int64_t parts = (mixes ? 1 : 0) + (feeds ? 1 : 0);
    if (model_.draft) target_states(*model_.draft);
    if (model_.streams.count > 1) kept_streams();
    mix_streams();
    if (norms == 0) layer_input();
    if (norms >= 1) list_.norm(mixes ? mixer_norm() : "mlp norm", dims_.d_model, Keep::kAlways, true);
    if (mixes && feeds && model_.parallel_block) {
      // Both parts read the layer's input, which is kept once.
      if (norms >= 2) list_.norm("mlp norm", dims_.d_model, Keep::kNever);
      mix(norms > parts);
      ffn(norms > parts + 1);
      residual("residual", R(3.0));
      return list_.take();
    }
    if (mixes) {
      mix(norms > parts);
      residual(attends() ? "attention residual" : "mixer residual", R(2.0));
      if (model_.residual_block > 0) earlier_blocks();
      if (attends_twice(kind_.mixer)) cross(norms > parts);
      if (feeds) mix_streams();
      if (feeds && norms >= 2) list_.norm("mlp norm", dims_.d_model, Keep::kSelective, true);
    }
    if (feeds) {
      ffn(norms > (mixes ? parts + 1 : parts));
      residual("mlp residual", R(2.0));
      if (model_.residual_block > 0) earlier_blocks();
    }
    if (model_.per_layer_embedding) per_layer_embedding(*model_.per_layer_embedding);
    if (model_.layer_scale) list_.last().extra_parameters = list_.last().extra_parameters + R(1.0);
    return list_.take();
  }

 private:
  bool attends() const { return scalecalc::attends(kind_.mixer); }
  std::string_view mixer_norm() const { return attends() ? "attention norm" : "mixer norm"; }

  void mix(bool post_norm) {
    if (attends()) add_attention(list_, kind_);
    if (!attends() || kind_.mixer == MixerKind::kFullMamba2) add_recurrence(list_, kind_);
    if (post_norm) list_.norm(attends() ? "post-attention norm" : "post-mixer norm", dims_.d_model, Keep::kSelective);
    if (model_.laurel_rank > 0) laurel();
  }

  void cross(bool post_norm) {
    list_.norm("cross-attention norm", dims_.d_model, Keep::kSelective, true);
    add_cross_attention(list_, kind_);
    if (post_norm) list_.norm("post-cross-attention norm", dims_.d_model, Keep::kSelective);
    residual("cross-attention residual", R(2.0));
  }

  R streams() const { return fixed<R>(model_.streams.count); }

  /// A layer's input are all of its streams; the norm keeps one.
  void kept_streams() {
    list_.add({.name = "residual streams",
               .kind = OpKind::kVector,
               .part = Part::kNorm,
               .tp = TpRule::kSequence,
               .saved = dims_.d_model * (streams() - R(1.0)),
               .keep = Keep::kAlways});
  }

  /// What a part of the layer reads, and how its output goes back, from all streams: hyper-connections with a
  /// projection of all of them to (2 + m) m weights and biases, and three scales (DeepSeek-V4); AltUp once a layer.
  void mix_streams() {
    if (model_.streams.count == 1) return;
    const R m = streams(), d = dims_.d_model;
    if (model_.streams.kind == StreamKind::kAltup) {
      if (altup_done_) return;
      altup_done_ = true;
      list_.matmul("stream router", Part::kNorm, TpRule::kSequence, d, m, false, TpRule::kSequence);
      list_.last().rows = R(2.0);  // before and behind the layer
      list_.last().extra_parameters = R(2.0) * d + m * m + m * m * m;
      return stream_sums(R(4.0));
    }
    const R weights = (R(2.0) + m) * m;
    list_.matmul("stream mixer", Part::kNorm, TpRule::kSequence, m * d, weights, false, TpRule::kSequence);
    list_.last().extra_parameters = weights + R(3.0);
    stream_sums(R(2.0));
  }

  void stream_sums(const R& passes) {
    const R width = streams() * dims_.d_model;
    list_.add({.name = "stream mixing",
               .kind = OpKind::kVector,
               .part = Part::kNorm,
               .tp = TpRule::kSequence,
               .reads = width * passes,
               .writes = width * passes / R(2.0),
               .flops = width * streams() * passes});
  }

  /// A low-rank path beside attention, normed (LAuReL).
  void laurel() {
    const R rank = fixed<R>(model_.laurel_rank);
    list_.matmul("laurel down-projection", Part::kMlp, TpRule::kSequence, dims_.d_model, rank, false,
                 TpRule::kSequence);
    list_.matmul("laurel up-projection", Part::kMlp, TpRule::kSequence, rank, dims_.d_model, false, TpRule::kSequence);
    list_.last().keep = Keep::kNever;
    list_.norm("laurel norm", dims_.d_model, Keep::kSelective);
  }

  void ffn(bool post_norm) {
    if (kind_.ffn == FfnKind::kMoe) {
      moe();
    } else {
      dense_mlp(d_ff_);
    }
    if (post_norm) list_.norm("post-mlp norm", dims_.d_model, Keep::kSelective);
  }

  /// Each sub-layer's input is a weighted sum of the outputs of the blocks before it, by scores of their norms
  /// (attention residuals, Kimi K3): on average half of all blocks stand before a layer.
  void earlier_blocks() {
    const R blocks = fixed<R>(model_.layers()) / fixed<R>(model_.residual_block) / R(2.0) + R(1.0);
    list_.add({.name = "residual over earlier blocks",
               .kind = OpKind::kVector,
               .part = Part::kNorm,
               .tp = TpRule::kSequence,
               .extra_parameters = R(2.0) * dims_.d_model,
               .reads = dims_.d_model * blocks,
               .writes = dims_.d_model,
               .flops = dims_.d_model * blocks * R(8.0)});
  }

  /// The layer's own vector of the token, gated by the stream and projected into it.
  void per_layer_embedding(const PerLayerEmbedding& table) {
    const R width = fixed<R>(table.width);
    list_.matmul("per-layer gate projection", Part::kMlp, TpRule::kSequence, dims_.d_model, width, false,
                 TpRule::kSequence);
    list_.add({.name = "per-layer gate",
               .kind = OpKind::kVector,
               .part = Part::kMlp,
               .tp = TpRule::kSequence,
               .reads = R(2.0) * width,
               .writes = width,
               .flops = R(8.0) * width,
               .saved = width,
               .keep = Keep::kWithoutRemat});
    list_.matmul("per-layer output projection", Part::kMlp, TpRule::kSequence, width, dims_.d_model, false,
                 TpRule::kSequence);
    list_.norm("per-layer norm", dims_.d_model, Keep::kNever);
    residual("per-layer residual", R(2.0));
  }

  /// Without a norm the layer's input is what its first matmul keeps.
  void layer_input() {
    list_.add({.name = "layer input",
               .kind = OpKind::kVector,
               .part = Part::kNorm,
               .tp = TpRule::kSequence,
               .saved = dims_.d_model,
               .keep = Keep::kAlways});
  }

  /// The target's states come projected and normed beside the embedding, so that attention reads two widths.
  void target_states(const DraftSpec& draft) {
    const R states = fixed<R>(draft.target_layers * draft.target_d_model);
    list_.matmul("target state projection", Part::kAttention, TpRule::kSequence, states, dims_.d_model, false,
                 TpRule::kSequence);
    list_.norm("target state norm", dims_.d_model, Keep::kSelective);
  }

  /// The sum of `terms` streams.
  void residual(std::string_view name, const R& terms) {
    list_.add({.name = name,
               .kind = OpKind::kVector,
               .part = Part::kNorm,
               .tp = TpRule::kSequence,
               .reads = dims_.d_model * terms,
               .writes = dims_.d_model,
               .flops = dims_.d_model});
  }

  void activation(const R& width, const R& rows, Part part, TpRule tp) {
    const R inputs(model_.mlp.gated ? 2.0 : 1.0);
    list_.add({.name = "mlp activation",
               .kind = OpKind::kVector,
               .part = part,
               .tp = tp,
               .reads = rows * width * inputs,
               .writes = rows * width,
               .flops = rows * width * R(8.0),
               .saved = rows * width,
               .keep = Keep::kWithoutRemat,
               .saved_tp = tp,
               .input = model_.mlp.gated ? KeptInput::kGated : KeptInput::kOther});
  }

  void dense_mlp(const R& width) {
    const bool bias = model_.mlp.bias;
    if (model_.mlp.gated) {
      list_.matmul("mlp gate projection", Part::kMlp, TpRule::kColumn, dims_.d_model, width, bias, TpRule::kColumn);
    }
    list_.matmul("mlp up projection", Part::kMlp, TpRule::kColumn, dims_.d_model, width, bias, TpRule::kColumn);
    activation(width, R(1.0), Part::kMlp, TpRule::kColumn);
    list_.last().extra_parameters =
        fixed<R>(model_.mlp.activation_weights) + fixed<R>(model_.mlp.token_shift) * dims_.d_model;
    list_.output("mlp down projection", Part::kMlp, width, bias);
    if (model_.mlp.receptance) receptance();
  }

  /// What the MLP hands on, gated by a projection of its input.
  void receptance() {
    const R& d = dims_.d_model;
    list_.matmul("receptance projection", Part::kMlp, TpRule::kSequence, d, d, false, TpRule::kSequence);
    list_.add({.name = "receptance gate",
               .kind = OpKind::kVector,
               .part = Part::kMlp,
               .tp = TpRule::kSequence,
               .reads = R(2.0) * d,
               .writes = d,
               .flops = R(5.0) * d,
               .saved = d,
               .keep = Keep::kWithoutRemat});
  }

  void expert_matmul(std::string_view name, TpRule tp, const R& k, const R& n) {
    const MoeSpec& moe = *model_.moe;
    list_.add({.name = name,
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
               .saved_tp = tp});
  }

  void router() {
    const MoeSpec& moe = *model_.moe;
    const R choices = moe.zero_experts > 0 ? dims_.experts + fixed<R>(moe.zero_experts) : dims_.experts;
    const bool correction = moe.router_correction_bias && !kind_.hashed;
    const R biases = choices * R((moe.router_bias ? 1.0 : 0.0) + (correction ? 1.0 : 0.0));
    list_.add({.name = "router",
               .kind = OpKind::kMatmul,
               .part = Part::kRouter,
               .tp = TpRule::kSequence,
               .k = dims_.d_model,
               .n = choices,
               .extra_parameters = moe.router_scale ? biases + dims_.d_model + dims_.experts : biases});
  }

  /// A projection between d_model and the latent width the routed experts work in; every token passes it once.
  void latent_projection(std::string_view name, const R& k, const R& n, Keep keep) {
    list_.matmul(name, Part::kMlp, TpRule::kSequence, k, n, false, TpRule::kSequence);
    list_.last().keep = keep;
  }

  void moe() {
    const MoeSpec& moe = *model_.moe;
    const R& width = dims_.expert_width;
    for (std::int64_t i = 0; i < moe.branch_norms; ++i) list_.norm("branch norm", dims_.d_model, Keep::kSelective);
    router();
    if (moe.latent > 0) latent_projection("latent down-projection", dims_.d_model, width, Keep::kSelective);
    if (moe.latent_norm) list_.norm("latent norm", width, Keep::kNever);
    const R routed = dims_.top_k * width;
    // The dispatched copies are inputs of the experts' weight gradients; fetching them again would cost an all-to-all.
    list_.add({.name = "expert dispatch and combine",
               .kind = OpKind::kVector,
               .part = Part::kRouter,
               .tp = TpRule::kExpert,
               .reads = routed * R(2.0),
               .writes = routed + width,
               .flops = routed * R(2.0),
               .saved = moe.latent > 0 ? routed + width : routed,  // what the up-projection reads is kept too
               .keep = Keep::kSelective,
               .saved_tp = TpRule::kExpertRow,
               .input = KeptInput::kOther});
    if (model_.mlp.gated) expert_matmul("expert gate projection", TpRule::kExpert, width, dims_.d_ff_expert);
    expert_matmul("expert up projection", TpRule::kExpert, width, dims_.d_ff_expert);
    activation(dims_.d_ff_expert, dims_.top_k, Part::kExperts, TpRule::kExpert);
    expert_matmul("expert down projection", TpRule::kExpertRow, dims_.d_ff_expert, width);
    if (moe.latent > 0) latent_projection("latent up-projection", width, dims_.d_model, Keep::kNever);
    if (moe.shared_d_ff > 0) {
      dense_mlp(dims_.d_ff_shared);
      if (moe.shared_gate) list_.last().extra_parameters = list_.last().extra_parameters + dims_.d_model;
    }
  }

  const ModelSpec& model_;
  const LayerKind& kind_;
  const ModelDims<R>& dims_;
  OpList<R> list_;
  R d_ff_;
  bool altup_done_ = false;
};

}  // namespace

template <class R>
ModelDims<R> read_dims(const Reader<R>& reader, const ModelSpec& model) {
  const auto in = [&](std::int64_t value, const char* name) {
    return reader.input(static_cast<double>(value), name, model.source);
  };
  const AttentionSpec& a = model.attention;
  const MoeSpec moe = model.moe.value_or(MoeSpec{});
  ModelDims<R> out{.d_model = in(model.d_model, "d_model"),
                   .d_ff = in(model.mlp.d_ff, "d_ff"),
                   .attention = {.heads = in(a.heads, "heads"),
                                 .kv_heads = in(a.kv_heads, "kv_heads"),
                                 .head_dim = in(a.head_dim, "head_dim")},
                   .vocab = in(model.vocab, "vocab"),
                   .window = in(a.window, "window"),
                   .experts = in(moe.experts, "experts"),
                   .top_k = in(moe.top_k, "top_k"),
                   .d_ff_expert = in(moe.d_ff, "expert d_ff"),
                   .d_ff_shared = in(moe.shared_d_ff, "shared d_ff")};
  const std::int64_t v_head_dim = a.shape(MixerKind::kFull).v_head_dim;
  out.attention.v_head_dim = v_head_dim == a.head_dim ? out.attention.head_dim : in(v_head_dim, "v_head_dim");
  out.local = out.attention;
  if (a.local) {
    out.local = {.heads = in(a.local->heads, "local heads"),
                 .kv_heads = in(a.local->kv_heads, "local kv_heads"),
                 .head_dim = in(a.local->head_dim, "local head_dim"),
                 .v_head_dim = in(a.local->v_head_dim, "local v_head_dim")};
    if (a.local->v_head_dim == a.local->head_dim) out.local.v_head_dim = out.local.head_dim;
  }
  out.outputs = model.head_outputs ? in(*model.head_outputs, "head_outputs") : out.vocab;
  out.expert_width = moe.latent > 0 ? in(moe.latent, "latent") : out.d_model;
  return out;
}

template <class R>
std::vector<Op<R>> layer_ops(const ModelSpec& model, const LayerKind& kind, const ModelDims<R>& dims) {
  return LayerBuilder<R>(model, kind, dims).build();
}

template <class R>
std::vector<Op<R>> lookup_ops(const ModelSpec& model, const ModelDims<R>& dims) {
  const R positions = fixed<R>(model.learned_positions);
  const R width = model.embedding_dim > 0 ? fixed<R>(model.embedding_dim) : dims.d_model;
  const R norm = width * R(model.embedding_norm ? model.norm_parameters() : 0.0);
  // A lookup reads one row per token; its weights are a table, not a matmul.
  OpList<R> list(model, dims);
  list.add({.name = "embedding lookup",
            .kind = OpKind::kVector,
            .part = Part::kEmbedding,
            .tp = TpRule::kSequence,
            .extra_parameters = (model.draft ? R(0.0) : dims.vocab * width) + positions * dims.d_model + norm +
                                fixed<R>(model.input_tokens) * width + fixed<R>(model.position_biases),
            .reads = width,
            .writes = width});
  if (model.embedding_dim > 0) {
    list.matmul("embedding projection", Part::kEmbedding, TpRule::kSequence, width, dims.d_model, model.embedding_bias,
                TpRule::kSequence);
    list.last().saved = width;  // its input; its output is the first layer's
  }
  if (model.ngram_embedding) {
    const R found = fixed<R>(model.ngram_embedding->tables * model.ngram_embedding->width);
    list.add({.name = kNgramTables,
              .kind = OpKind::kVector,
              .part = Part::kEmbedding,
              .tp = TpRule::kSequence,
              .extra_parameters = fixed<R>(model.ngram_embedding->rows) * fixed<R>(model.ngram_embedding->width),
              .reads = found,
              .writes = found});
    list.matmul("n-gram projection", Part::kEmbedding, TpRule::kSequence, found, dims.d_model, false,
                TpRule::kSequence);
    list.last().saved = found;  // its input; its output is the first layer's
  }
  if (model.per_layer_embedding) {
    const R each = fixed<R>(model.per_layer_embedding->width);
    const R all = each * fixed<R>(model.layers());
    list.add({.name = kPerLayerTable,
              .kind = OpKind::kVector,
              .part = Part::kEmbedding,
              .tp = TpRule::kSequence,
              .extra_parameters = fixed<R>(model.per_layer_embedding->vocab) * all,
              .reads = all,
              .writes = all});
    list.matmul("per-layer projection", Part::kMlp, TpRule::kSequence, dims.d_model, all, false, TpRule::kSequence);
    list.last().extra_parameters = each;  // of the norm behind it
  }
  if (model.streams.count > 1 && model.streams.kind == StreamKind::kAltup) {
    list.matmul("stream projections", Part::kMlp, TpRule::kSequence, dims.d_model,
                dims.d_model * fixed<R>(model.streams.count - 1), false, TpRule::kSequence);
  }
  return list.take();
}

template <class R>
std::vector<Op<R>> embedding_ops(const ModelSpec& model, const ModelDims<R>& dims) {
  std::vector<Op<R>> out = lookup_ops(model, dims);
  for (Op<R>& op : tower_ops<R>(model)) out.push_back(std::move(op));
  return out;
}

namespace {

/// The streams become one again.
template <class R>
void stream_head(const ModelSpec& model, const ModelDims<R>& dims, OpList<R>& list) {
  const R m = fixed<R>(model.streams.count);
  if (model.streams.kind == StreamKind::kAltup) {
    list.matmul("stream unprojections", Part::kMlp, TpRule::kSequence, dims.d_model, dims.d_model * (m - R(1.0)), false,
                TpRule::kSequence);
    return;
  }
  list.matmul("stream mixer", Part::kNorm, TpRule::kSequence, m * dims.d_model, m, false, TpRule::kSequence);
  list.last().extra_parameters = m + R(1.0);
}

}  // namespace

template <class R>
std::vector<Op<R>> head_ops(const ModelSpec& model, const ModelDims<R>& dims) {
  OpList<R> list(model, dims);
  const R sums = model.residual_block > 0 ? R(2.0) * dims.d_model : R(0.0);  // the last one over all blocks
  const R norm_weights = dims.d_model * R(model.norm_parameters()) + sums;
  const bool norm = model.final_norm;
  list.add({.name = norm ? "final norm" : "head input",
            .kind = OpKind::kVector,
            .part = Part::kNorm,
            .tp = TpRule::kSequence,
            .extra_parameters = norm ? norm_weights : R(0.0),
            .reads = norm ? dims.d_model : R(0.0),
            .writes = norm ? dims.d_model : R(0.0),
            .flops = norm ? dims.d_model * R(4.0) : R(0.0),
            .saved = norm ? dims.d_model * R(2.0) : dims.d_model,
            .keep = Keep::kAlways});
  if (model.streams.count > 1) stream_head(model, dims, list);
  if (model.head_dense != HeadDense::kNone) {
    const bool pooler = model.head_dense == HeadDense::kPooler, transform = model.head_dense == HeadDense::kTransform;
    const R out = transform && model.embedding_dim > 0 ? fixed<R>(model.embedding_dim) : dims.d_model;
    list.matmul(pooler ? "pooler" : "head transform", Part::kHead, TpRule::kSequence, dims.d_model, out,
                !transform || model.mlp.bias, TpRule::kSequence);
    // One token of the sequence is pooled, which no token's share shows.
    if (pooler) list.last().rows = list.last().saved = R(0.0);
    if (transform) list.norm("head norm", out, Keep::kAlways);
  }
  if (model.head_width() == 0) return list.take();
  R width = dims.d_model;
  if (model.embedding_dim > 0 && !model.head_outputs) {
    width = fixed<R>(model.embedding_dim);
    if (model.head_dense != HeadDense::kTransform) {
      list.matmul("projection to the embedding", Part::kHead, TpRule::kSequence, dims.d_model, width, false,
                  TpRule::kSequence);
    }
  }
  list.add({.name = model.head_outputs ? "output projection" : "vocabulary projection",
            .kind = OpKind::kMatmul,
            .part = Part::kHead,
            .tp = TpRule::kColumn,
            .tied = model.tied_embeddings && !model.head_outputs,
            .k = width,
            .n = dims.outputs,
            .extra_parameters = model.head_bias ? dims.outputs : R(0.0)});
  // Softmax and cross-entropy in fp32: read the logits twice, write their gradient.
  list.add({.name = "softmax and loss",
            .kind = OpKind::kVector,
            .part = Part::kHead,
            .tp = TpRule::kColumn,
            .reads = dims.outputs * R(2.0),
            .writes = dims.outputs,
            .flops = dims.outputs * R(6.0)});
  return list.take();
}

template <class R>
std::vector<Op<R>> mtp_ops(const ModelSpec& model, const ModelDims<R>& dims) {
  // DeepSeek-V3 report, arXiv:2412.19437 section 2.2: the previous depth's state and the next token's embedding are
  // normed, concatenated and projected back to d_model; the module has its own final norm.
  const R norms = dims.d_model * R(3.0 * model.norm_parameters());
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

#define SCALECALC_INSTANTIATE(R)                                                                  \
  template ModelDims<R> read_dims(const Reader<R>&, const ModelSpec&);                            \
  template std::vector<Op<R>> layer_ops(const ModelSpec&, const LayerKind&, const ModelDims<R>&); \
  template std::vector<Op<R>> lookup_ops(const ModelSpec&, const ModelDims<R>&);                  \
  template std::vector<Op<R>> embedding_ops(const ModelSpec&, const ModelDims<R>&);               \
  template std::vector<Op<R>> head_ops(const ModelSpec&, const ModelDims<R>&);                    \
  template std::vector<Op<R>> mtp_ops(const ModelSpec&, const ModelDims<R>&);
SCALECALC_INSTANTIATE(double)
SCALECALC_INSTANTIATE(Dual)
SCALECALC_INSTANTIATE(Traced)
#undef SCALECALC_INSTANTIATE

}  // namespace scalecalc
