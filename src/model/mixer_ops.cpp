// Attention as operation lists. Shapes: scaling book, chapter 4 (multi-head, grouped-query); DeepSeek-V2,
// arXiv:2405.04434 section 2.1 (MLA); DeepSeek-V3.2, arXiv:2512.02556 section 2 (indexer and chosen tokens);
// Transformer-XL, arXiv:1901.02860 section 3.3 (relative positions); gated output: Qwen3-Next. What the backward pass
// keeps follows Korthikanti et al. 2022, arXiv:2205.05198 section 4, with flash attention (no score matrix is kept).
#include "base/check.h"
#include "model/op_list.h"

namespace scalecalc {
namespace {

template <class R>
class AttentionBuilder {
 public:
  AttentionBuilder(OpList<R>& list, const LayerKind& kind)
      : list_(list), kind_(kind.mixer), layer_(kind), a_(list.model().attention), dims_(list.dims()) {
    heads_ = kind_ == MixerKind::kSliding ? dims_.local : dims_.attention;
  }

  void build() {
    if (kind_ == MixerKind::kMla) {
      mla_projections();
    } else {
      qkv_projections();
    }
    if (list_.model().relative_positions) relative_positions();
    if (chooses() && !layer_.reuse) indexer();
    attention();
    if (a_.output_gate) output_gate("output gate projection", heads_.heads * heads_.v_head_dim);
    if (a_.head_gate) output_gate("head gate projection", heads_.heads);
    list_.output("attention output projection", Part::kAttention, heads_.heads * heads_.v_head_dim, a_.o_bias);
  }

 private:
  /// Layers that look at the whole sequence attend to what an indexer picks, their own or an earlier layer's.
  bool chooses() const {
    return a_.indexer && !layer_.whole && (kind_ == MixerKind::kFull || kind_ == MixerKind::kMla);
  }
  /// Keys and values are those of a layer before it.
  bool borrows() const { return layer_.reuse && !a_.indexer; }

  void qkv_projections() {
    const R input = list_.model().draft ? R(2.0) * dims_.d_model : dims_.d_model;
    const R q_width = heads_.heads * heads_.head_dim;
    const bool same = value_of(heads_.head_dim) == value_of(heads_.v_head_dim);
    const bool one = a_.shared_kv && kind_ == MixerKind::kFull;
    const R kv_width = one    ? heads_.kv_heads * heads_.head_dim
                       : same ? R(2.0) * heads_.kv_heads * heads_.head_dim
                              : heads_.kv_heads * (heads_.head_dim + heads_.v_head_dim);
    list_.matmul("query projection", Part::kAttention, TpRule::kColumn, input, q_width, a_.qkv_bias, TpRule::kColumn);
    if (!borrows()) {
      list_.matmul(one ? "key projection" : "key/value projection", Part::kAttention, TpRule::kKvColumn, input,
                   kv_width, a_.qkv_bias, TpRule::kKvColumn);
      list_.last().groups = heads_.kv_heads;
      if (!one) list_.last().values = heads_.kv_heads * heads_.v_head_dim;
    }
    const R rotated = borrows() ? q_width : q_width + heads_.kv_heads * heads_.head_dim;
    list_.add({.name = "rotary embedding",
               .kind = OpKind::kVector,
               .part = Part::kAttention,
               .tp = TpRule::kColumn,
               .extra_parameters = qk_norm_parameters(rotated),
               .reads = rotated,
               .writes = rotated,
               .flops = rotated * R(3.0)});
  }

  R qk_norm_parameters(const R& rotated) const {
    switch (a_.qk_norm) {
      case QkNorm::kNone: break;
      case QkNorm::kHeadDim: return R(borrows() ? 1.0 : 2.0) * heads_.head_dim;
      case QkNorm::kFull: return rotated;
    }
    return R(0.0);
  }

  /// What comes up from the latents is many times as large as they are and costs few FLOPs: selective remat keeps the
  /// latents (DeepSeek-V3, arXiv:2412.19437 section 3.2.3).
  void mla_projections() {
    const MlaSpec& m = *a_.mla;
    const R qk_dim = fixed<R>(m.qk_nope_head_dim + m.qk_rope_head_dim);
    const R kv_rank = fixed<R>(m.kv_lora_rank);
    const R rope = fixed<R>(m.qk_rope_head_dim);
    const R expanded = fixed<R>(m.qk_nope_head_dim + m.v_head_dim);
    if (m.q_lora_rank > 0) {
      const R q_rank = fixed<R>(m.q_lora_rank);
      list_.matmul("query down-projection", Part::kAttention, TpRule::kSequence, dims_.d_model, q_rank, false,
                   TpRule::kSequence);
      list_.norm("query latent norm", q_rank, Keep::kNever);
      list_.matmul("query up-projection", Part::kAttention, TpRule::kColumn, q_rank, heads_.heads * qk_dim, false,
                   TpRule::kColumn);
      list_.last().keep = Keep::kWithoutRemat;
    } else {
      list_.matmul("query projection", Part::kAttention, TpRule::kColumn, dims_.d_model, heads_.heads * qk_dim, false,
                   TpRule::kColumn);
    }
    list_.matmul("key/value down-projection", Part::kAttention, TpRule::kSequence, dims_.d_model, kv_rank + rope, false,
                 TpRule::kSequence);
    list_.norm("key/value latent norm", kv_rank, Keep::kNever);
    list_.matmul("key/value up-projection", Part::kAttention, TpRule::kColumn, kv_rank, heads_.heads * expanded, false,
                 TpRule::kColumn);
    list_.last().keep = Keep::kWithoutRemat;
  }

  /// Keys of the relative positions; the queries' scores against them come with the attention.
  void relative_positions() {
    list_.matmul("relative position projection", Part::kAttention, TpRule::kColumn, dims_.d_model,
                 heads_.heads * heads_.head_dim, false, TpRule::kColumn);
  }

  /// Every tensor rank scores all index heads, as the published implementations do: the choice must be one. Its key
  /// norm has weight and bias.
  void indexer() {
    const R heads = fixed<R>(a_.indexer->heads);
    const R head_dim = fixed<R>(a_.indexer->head_dim);
    const bool latent = a_.mla && a_.mla->q_lora_rank > 0;
    const R source = latent ? fixed<R>(a_.mla->q_lora_rank) : dims_.d_model;
    list_.matmul("index query projection", Part::kAttention, TpRule::kWhole, source, heads * head_dim, false,
                 TpRule::kWhole);
    list_.matmul("index key projection", Part::kAttention, TpRule::kWhole, dims_.d_model, head_dim, false,
                 TpRule::kWhole);
    list_.last().extra_parameters = R(2.0) * head_dim;
    if (a_.indexer->weights) {
      list_.matmul("index weights projection", Part::kAttention, TpRule::kWhole, dims_.d_model, heads, false,
                   TpRule::kWhole);
    }
    list_.add({.name = "index scores",
               .kind = OpKind::kAttention,
               .part = Part::kAttention,
               .tp = TpRule::kWhole,
               .qk_width = heads * head_dim,
               .shared = head_dim,
               .saved = R(2.0) * fixed<R>(a_.indexer->top_k),  // 4-byte positions of the chosen tokens
               .keep = Keep::kSelective,
               .saved_tp = TpRule::kWhole});
  }

  void attention() {
    const R& v_dim = heads_.v_head_dim;
    Op<R> op{.name = "attention",
             .kind = OpKind::kAttention,
             .part = Part::kAttention,
             .tp = TpRule::kHeads,
             .extra_parameters = (kind_ == MixerKind::kSliding ? a_.local_sinks : a_.sinks) ? heads_.heads : R(0.0),
             .qk_width = heads_.heads * heads_.head_dim,
             .v_width = heads_.heads * v_dim,
             .heads = heads_.heads,
             .saved = heads_.heads * (v_dim + R(2.0)),  // output, and one fp32 log-sum per head
             .keep = Keep::kSelective,
             .saved_tp = TpRule::kHeads};
    reach(op);
    if (kind_ == MixerKind::kMla) {  // context parallelism sends the expanded keys and values
      op.groups = heads_.heads;
      op.shared = op.qk_width + op.v_width;
    } else {
      op.groups = heads_.kv_heads;
      op.shared = heads_.kv_heads * (heads_.head_dim + v_dim);
    }
    // A second set of scores, against the relative positions.
    if (list_.model().relative_positions) op.qk_width = op.qk_width * R(2.0);
    list_.add(std::move(op));
  }

  void reach(Op<R>& op) const {
    if (kind_ == MixerKind::kSliding) {
      op.reach = Reach::kWindow;
      op.span = dims_.window;
    } else if (kind_ == MixerKind::kChunked) {
      op.reach = Reach::kChunk;
      op.span = fixed<R>(a_.chunk);
    } else if (chooses()) {
      op.reach = Reach::kChosen;
      op.span = fixed<R>(a_.indexer->top_k);
    }
  }

  /// `gates` of them for the output, which each scales a part of.
  void output_gate(std::string_view name, const R& gates) {
    const R width = heads_.heads * heads_.v_head_dim;
    list_.matmul(name, Part::kAttention, TpRule::kColumn, dims_.d_model, gates, a_.qkv_bias, TpRule::kColumn);
    list_.add({.name = "output gate",
               .kind = OpKind::kVector,
               .part = Part::kAttention,
               .tp = TpRule::kHeads,
               .reads = width + gates,
               .writes = width,
               .flops = width + gates * R(4.0),
               .saved = width,
               .keep = Keep::kWithoutRemat,
               .saved_tp = TpRule::kHeads});
  }

  OpList<R>& list_;
  MixerKind kind_;
  const LayerKind& layer_;
  const AttentionSpec& a_;
  const ModelDims<R>& dims_;
  AttentionDims<R> heads_;
};

}  // namespace

template <class R>
void add_attention(OpList<R>& list, const LayerKind& kind) {
  AttentionBuilder<R>(list, kind).build();
}

template void add_attention(OpList<double>&, const LayerKind&);
template void add_attention(OpList<Dual>&, const LayerKind&);
template void add_attention(OpList<Traced>&, const LayerKind&);
template void add_attention(OpList<Interval>&, const LayerKind&);

// Recurrences with a state as operation lists. Gated delta net: arXiv:2412.06464 section 3, with the projections and
// the short convolution of Qwen3-Next. Lightning attention: MiniMax-01, arXiv:2501.08313 section 2. Mamba-1:
// arXiv:2312.00752 section 3, with the norms of Jamba, arXiv:2403.19887 section 3. Mamba-2: arXiv:2405.21060 section 7.
//
// `recurrence` is what FLOPs conventions count per element of the state: 8 for the gated delta rule and 7 for Mamba-2
// as Megatron-LM (num_floating_point_operations), 9 for Mamba-1 (state-spaces/mamba issue 110), 4 for lightning
// attention (outer product and read). `flops` is what kernels do: the same products of the state and those inside
// chunks of tokens, for the chunk lengths of the published kernels.

namespace {

constexpr double kGdnChunk = 64;         // flash-linear-attention
constexpr double kLightningChunk = 256;  // MiniMax's Triton kernel
constexpr double kMamba2Chunk = 256;     // mamba_ssm's default
constexpr double kSiluFlops = 4;

template <class R>
class RecurrenceBuilder {
 public:
  explicit RecurrenceBuilder(OpList<R>& list) : list_(list), d_model_(list.dims().d_model) {}

  void gdn(const GdnSpec& g) {
    const R key_heads = fixed<R>(g.key_heads), heads = fixed<R>(g.value_heads);
    const R dk = fixed<R>(g.key_head_dim), dv = fixed<R>(g.value_head_dim);
    const R keys = key_heads * dk, values = heads * dv;
    column("query, key, value and gate projection", d_model_, R(2.0) * keys + R(2.0) * values);
    column("decay and write strength projection", d_model_, R(2.0) * heads);
    convolution(R(2.0) * keys + values, fixed<R>(g.conv_kernel), false);
    const R chunk(kGdnChunk);
    const R state = heads * dk * dv;
    list_.add({.name = "gated delta rule",
               .kind = OpKind::kScan,
               .part = Part::kAttention,
               .tp = TpRule::kHeads,
               .extra_parameters = R(2.0) * heads,  // decay rate and step bias of each head
               .reads = R(2.0) * keys + values + R(2.0) * heads,
               .writes = values,
               .flops = heads * R(2.0) * chunk * (R(3.0) * dk + R(2.0) * dv) + R(6.0) * state,
               .recurrence = R(8.0) * state,
               .state = state,
               .saved = values + heads * chunk,  // output, and the inverse of each chunk's triangle
               .keep = Keep::kSelective,
               .saved_tp = TpRule::kHeads});
    gated_norm("gated norm", values, dv);
    list_.output("output projection", Part::kAttention, values, false);
  }

  /// Each channel of a key decays by itself; decay and output gate come through head_dim (Kimi Linear,
  /// arXiv:2510.26692 section 4). The chunks' products are those of the gated delta rule.
  void kda(const KdaSpec& k) {
    const R heads = fixed<R>(k.heads), dim = fixed<R>(k.head_dim);
    const R width = heads * dim;
    column("query, key and value projection", d_model_, R(3.0) * width);
    convolution(R(3.0) * width, fixed<R>(k.conv_kernel), false);
    low_rank("decay", dim, width);
    column("write strength projection", d_model_, heads);
    const R chunk(kGdnChunk);
    const R state = width * dim;
    list_.add({.name = "kimi delta rule",
               .kind = OpKind::kScan,
               .part = Part::kAttention,
               .tp = TpRule::kHeads,
               .extra_parameters = heads + width,  // decay rate of each head, bias of each channel's step
               .reads = R(4.0) * width + heads,
               .writes = width,
               .flops = heads * R(2.0) * chunk * R(5.0) * dim + R(6.0) * state,
               .recurrence = R(8.0) * state,
               .state = state,
               .saved = width + heads * chunk,
               .keep = Keep::kSelective,
               .saved_tp = TpRule::kHeads});
    if (k.full_rank_gate) {
      column("output gate projection", d_model_, width);
    } else {
      low_rank("output gate", dim, width);
    }
    gated_norm("gated norm", width, dim);
    list_.output("output projection", Part::kAttention, width, false);
  }

  /// LFM2: input, and a gate before and behind the convolution.
  void conv(const ConvSpec& c) {
    column("input and gates projection", d_model_, R(3.0) * d_model_);
    convolution(d_model_, fixed<R>(c.kernel), false);
    elementwise("gates", R(3.0) * d_model_, d_model_, R(2.0));
    list_.output("output projection", Part::kAttention, d_model_, false);
  }

  void lightning(const LightningSpec& l) {
    const R heads = fixed<R>(l.heads), dim = fixed<R>(l.head_dim);
    const R width = heads * dim;
    column("query, key and value projection", d_model_, R(3.0) * width);
    elementwise("query, key and value activation", R(3.0) * width, R(3.0) * width, R(kSiluFlops));
    column("gate projection", d_model_, width);
    const R state = width * dim;
    list_.add({.name = "lightning attention",
               .kind = OpKind::kScan,
               .part = Part::kAttention,
               .tp = TpRule::kHeads,
               .reads = R(3.0) * width,
               .writes = width,
               .flops = R(4.0 * kLightningChunk) * width + R(4.0) * state,
               .recurrence = R(4.0) * state,
               .state = state,
               .saved = width,
               .keep = Keep::kSelective,
               .saved_tp = TpRule::kHeads});
    gated_norm("gated output norm", width, width);
    list_.output("output projection", Part::kAttention, width, false);
  }

  void mamba1(const Mamba1Spec& m) {
    const R inner = fixed<R>(m.d_inner), states = fixed<R>(m.d_state), rank = fixed<R>(m.dt_rank);
    const R selected = rank + R(2.0) * states;
    column("input and gate projection", d_model_, R(2.0) * inner);
    convolution(inner, fixed<R>(m.d_conv), true);
    // Each tensor rank has a part of the channels, and every channel needs the whole step and state projections.
    list_.matmul("step and state projection", Part::kAttention, TpRule::kRow, inner, selected, false, TpRule::kWhole);
    list_.last().summed = selected;
    if (m.norms) {
      list_.add({.name = "step and state norms",
                 .kind = OpKind::kVector,
                 .part = Part::kAttention,
                 .tp = TpRule::kWhole,
                 .extra_parameters = selected,
                 .reads = selected,
                 .writes = selected,
                 .flops = selected * R(4.0),
                 .saved = selected,
                 .keep = Keep::kWithoutRemat,
                 .saved_tp = TpRule::kWhole});
    }
    list_.matmul("step projection", Part::kAttention, TpRule::kColumn, rank, inner, true, TpRule::kColumn);
    const R state = inner * states;
    list_.add({.name = "selective scan",
               .kind = OpKind::kScan,
               .part = Part::kAttention,
               .tp = TpRule::kHeads,
               .extra_parameters = state + inner,  // decay of each state, skip of each channel
               .reads = R(2.0) * inner + R(2.0) * states,
               .writes = inner,
               .flops = R(9.0) * state,
               .recurrence = R(9.0) * state,
               .state = state,
               .by_element = true,
               .saved = inner,
               .keep = Keep::kSelective,
               .saved_tp = TpRule::kHeads});
    elementwise("gate", R(2.0) * inner, inner, R(kSiluFlops));
    list_.output("output projection", Part::kAttention, inner, false);
  }

  void mamba2(const Mamba2Spec& m) {
    const R heads = fixed<R>(m.heads), dim = fixed<R>(m.head_dim), states = fixed<R>(m.d_state);
    const R inner = heads * dim;
    const R projected = R(2.0) * fixed<R>(m.groups) * states;
    column("input, gate and step projection", d_model_, R(2.0) * inner + heads);
    list_.matmul("state projection", Part::kAttention, TpRule::kKvColumn, d_model_, projected, false,
                 TpRule::kKvColumn);
    list_.last().groups = fixed<R>(m.groups);
    convolution(inner + projected, fixed<R>(m.d_conv), true);
    const R chunk(kMamba2Chunk);
    const R state = inner * states;
    list_.add({.name = "state space scan",
               .kind = OpKind::kScan,
               .part = Part::kAttention,
               .tp = TpRule::kHeads,
               .extra_parameters = R(3.0) * heads,  // decay, step bias and skip of each head
               .reads = inner + projected + heads,
               .writes = inner,
               .flops = chunk * projected + R(2.0) * chunk * inner + R(4.0) * state,
               .recurrence = R(7.0) * state,
               .state = state,
               .saved = inner,
               .keep = Keep::kSelective,
               .saved_tp = TpRule::kHeads});
    if (m.norm) {
      gated_norm("gated norm", inner, inner);
    } else {
      elementwise("gate", R(2.0) * inner, inner, R(kSiluFlops));
    }
    list_.output("output projection", Part::kAttention, inner, false);
  }

 private:
  /// Down to `rank`, which every tensor rank has whole, and up again.
  void low_rank(std::string_view part, const R& rank, const R& width) {
    const bool decay = part == "decay";
    list_.matmul(decay ? "decay down-projection" : "output gate down-projection", Part::kAttention, TpRule::kSequence,
                 d_model_, rank, false, TpRule::kSequence);
    column(decay ? "decay up-projection" : "output gate up-projection", rank, width);
  }

  void column(std::string_view name, const R& k, const R& n) {
    list_.matmul(name, Part::kAttention, TpRule::kColumn, k, n, false, TpRule::kColumn);
  }

  /// Each channel over its last `kernel` tokens, then an activation; its output is cheap to compute again.
  void convolution(const R& channels, const R& kernel, bool bias) {
    list_.add({.name = "short convolution",
               .kind = OpKind::kVector,
               .part = Part::kAttention,
               .tp = TpRule::kColumn,
               .extra_parameters = channels * (bias ? kernel + R(1.0) : kernel),
               .reads = channels,
               .writes = channels,
               .flops = channels * (R(2.0) * kernel + R(kSiluFlops)),
               .saved = channels,
               .keep = Keep::kWithoutRemat,
               .saved_tp = TpRule::kColumn});
  }

  void elementwise(std::string_view name, const R& reads, const R& writes, const R& flops_each) {
    list_.add({.name = name,
               .kind = OpKind::kVector,
               .part = Part::kAttention,
               .tp = TpRule::kColumn,
               .reads = reads,
               .writes = writes,
               .flops = writes * flops_each,
               .saved = writes,
               .keep = Keep::kWithoutRemat,
               .saved_tp = TpRule::kColumn});
  }

  /// The output normed with `weights` weights and multiplied by its gate.
  void gated_norm(std::string_view name, const R& width, const R& weights) {
    elementwise(name, R(2.0) * width, width, R(4.0 + kSiluFlops));
    list_.last().extra_parameters = weights;
  }

  OpList<R>& list_;
  const R& d_model_;
};

}  // namespace

template <class R>
void add_recurrence(OpList<R>& list, MixerKind kind) {
  RecurrenceBuilder<R> builder(list);
  const ModelSpec& model = list.model();
  switch (kind) {
    case MixerKind::kGdn: return builder.gdn(*model.gdn);
    case MixerKind::kKda: return builder.kda(*model.kda);
    case MixerKind::kLightning: return builder.lightning(*model.lightning);
    case MixerKind::kConv: return builder.conv(*model.conv);
    case MixerKind::kMamba1: return builder.mamba1(*model.mamba1);
    case MixerKind::kFullMamba2:
    case MixerKind::kMamba2: return builder.mamba2(*model.mamba2);
    case MixerKind::kFull:
    case MixerKind::kSliding:
    case MixerKind::kChunked:
    case MixerKind::kMla:
    case MixerKind::kNone: break;
  }
  internal_error("a recurrence of this kind");
}

template void add_recurrence(OpList<double>&, MixerKind);
template void add_recurrence(OpList<Dual>&, MixerKind);
template void add_recurrence(OpList<Traced>&, MixerKind);
template void add_recurrence(OpList<Interval>&, MixerKind);

}  // namespace scalecalc
