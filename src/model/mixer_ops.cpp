// Lists the operations of attention. Shapes: scaling book, chapter 4 (multi-head, grouped-query); DeepSeek-V2,
// arXiv:2405.04434 section 2.1 (MLA); DeepSeek-V3.2, arXiv:2512.02556 section 2 (indexer and chosen tokens);
// Transformer-XL, arXiv:1901.02860 section 3.3 (relative positions); gated output: Qwen3-Next; compressed attention:
// DeepSeek-V4 (huggingface/transformers: models/deepseek_v4); strided: Phi-3, arXiv:2404.14219 section 2;
// disentangled: DeBERTa, arXiv:2006.03654 section 3.1; cross attention: arXiv:1706.03762 section 3.2.3. What the
// backward pass keeps follows Korthikanti et al. 2022, arXiv:2205.05198 section 4, with flash attention (no score
// matrix is kept).
#include "base/check.h"
#include "model/op_list.h"

namespace scalecalc {
namespace {

template <class R>
class AttentionBuilder {
 public:
  AttentionBuilder(OpList<R>& list, const LayerKind& kind)
      : list_(list), kind_(kind.mixer), layer_(kind), a_(list.model().attention), dims_(list.dims()) {
    heads_ = slides(kind_) ? dims_.local : dims_.attention;
  }

  void build() {
    if (a_.compressed) return compressed(*a_.compressed);
    if (kind_ == MixerKind::kCross) return cross();
    if (kind_ == MixerKind::kMla) {
      mla_projections();
    } else {
      qkv_projections();
    }
    if (list_.model().relative_positions) relative_positions();
    if (chooses() && !layer_.reuse) indexer();
    if (kind_ == MixerKind::kStrided) {
      strided(*a_.strided);
    } else {
      attention();
    }
    if (a_.disentangled) position_scores(*a_.disentangled);
    if (a_.output_gate) output_gate("output gate projection", heads_.heads * heads_.v_head_dim);
    if (a_.head_gate) output_gate("head gate projection", heads_.heads);
    list_.output("attention output projection", Part::kAttention, heads_.heads * heads_.v_head_dim, a_.o_bias);
  }

  /// To a tower's output: its keys and values are projected from each position of it, once for the sequence.
  void cross() {
    const R q_width = heads_.heads * heads_.head_dim;
    const R kv_width = R(2.0) * heads_.kv_heads * heads_.head_dim;
    const R rows(list_.model().towers.empty() ? 1.0 : source_rows());
    list_.matmul("cross query projection", Part::kAttention, TpRule::kColumn, dims_.d_model, q_width, a_.qkv_bias,
                 TpRule::kColumn);
    list_.last().extra_parameters = list_.last().extra_parameters + cross_weights();
    list_.matmul(kCrossKeysValues, Part::kAttention, TpRule::kKvColumn, source_width(), kv_width, a_.qkv_bias,
                 TpRule::kKvColumn);
    if (!a_.key_bias) list_.last().extra_parameters = kv_width / R(2.0);
    list_.last().groups = heads_.kv_heads;
    list_.last().values = kv_width / R(2.0);
    list_.last().rows = rows;
    list_.last().saved = kv_width * rows;
    list_.add({.name = "cross attention",
               .kind = OpKind::kAttention,
               .part = Part::kAttention,
               .tp = TpRule::kHeads,
               .groups = heads_.kv_heads,
               .qk_width = q_width,
               .v_width = q_width,
               .heads = heads_.heads,
               .reach = a_.cross_tokens > 0 || value_of(rows) == 0 ? Reach::kFixed : Reach::kBoth,
               .span = fixed<R>(a_.cross_tokens),
               .saved = heads_.heads * (heads_.head_dim + R(2.0)),
               .keep = Keep::kSelective,
               .saved_tp = TpRule::kHeads});
    list_.output("cross attention output projection", Part::kAttention, q_width, a_.o_bias);
  }

 private:
  /// Positions of the tower behind cross attention that go on, for each token of the sequence.
  double source_rows() const {
    const TowerSpec& tower = list_.model().towers.front();
    return tower.per_token / static_cast<double>(tower.merge);
  }
  /// Width of what the tower hands on.
  R source_width() const {
    if (list_.model().towers.empty()) return dims_.d_model;
    const TowerSpec& tower = list_.model().towers.front();
    return fixed<R>(tower.projector.empty() ? tower.network.d_model : tower.projector.back().out);
  }
  R cross_weights() const { return a_.cross_gates ? R(2.0) * heads_.head_dim + R(2.0) : R(0.0); }

  void vector(std::string_view name, const R& parameters, const R& reads, const R& writes, const R& flops) {
    list_.add({.name = name,
               .kind = OpKind::kVector,
               .part = Part::kAttention,
               .tp = TpRule::kWhole,
               .extra_parameters = parameters,
               .reads = reads,
               .writes = writes,
               .flops = flops});
  }

  /// A token's entry for a compressor, and its gate; `copies` of both for windows that overlap. A position bias for
  /// each of the `ratio` tokens of an entry.
  void compressor(std::string_view name, const R& width, const R& copies, const R& ratio) {
    list_.matmul(name, Part::kAttention, TpRule::kWhole, dims_.d_model, R(2.0) * copies * width, false, TpRule::kWhole);
    list_.last().extra_parameters = ratio * copies * width + width;
    vector("compression", R(0.0), R(2.0) * copies * width, width / ratio, R(6.0) * copies * width);
  }

  /// Scores and sum over entries of one tensor that is key and value, of which there is one for `ratio` tokens.
  void compressed_scores(std::string_view name, const R& ratio, Reach reach, const R& span, const R& sinks) {
    const R width = heads_.heads * heads_.head_dim / ratio;
    list_.add({.name = name,
               .kind = OpKind::kAttention,
               .part = Part::kAttention,
               .tp = TpRule::kHeads,
               .groups = R(1.0),
               .extra_parameters = sinks,
               .qk_width = width,
               .v_width = width,
               .heads = heads_.heads / ratio,
               .reach = reach,
               .span = span,
               .shared = heads_.head_dim / ratio,
               .saved = heads_.heads * (heads_.head_dim + R(2.0)),
               .keep = Keep::kSelective,
               .saved_tp = TpRule::kHeads});
    if (value_of(ratio) > 1) list_.last().keep = Keep::kNever;  // one output of both kinds of scores
  }

  void compressed(const CompressedSpec& c) {
    const R q_rank = fixed<R>(c.q_lora_rank), o_rank = fixed<R>(c.o_lora_rank), groups = fixed<R>(c.o_groups);
    const R width = heads_.heads * heads_.head_dim;
    list_.matmul("query down-projection", Part::kAttention, TpRule::kSequence, dims_.d_model, q_rank, false,
                 TpRule::kSequence);
    list_.norm("query latent norm", q_rank, Keep::kNever);
    list_.matmul("query up-projection", Part::kAttention, TpRule::kColumn, q_rank, width, false, TpRule::kColumn);
    list_.last().keep = Keep::kWithoutRemat;
    list_.matmul("key/value projection", Part::kAttention, TpRule::kWhole, dims_.d_model, heads_.head_dim, false,
                 TpRule::kWhole);
    list_.last().extra_parameters = heads_.head_dim;  // of its norm
    vector("rotary embedding", R(0.0), width + heads_.head_dim, width + heads_.head_dim, R(0.5) * width);
    compressed_scores("window attention", R(1.0), Reach::kWindow, dims_.window, heads_.heads);
    if (kind_ == MixerKind::kHca) {
      const R ratio = fixed<R>(c.hca_ratio);
      compressor("compressor projection", heads_.head_dim, R(1.0), ratio);
      compressed_scores("compressed attention", ratio, Reach::kAll, R(0.0), R(0.0));
    } else if (kind_ == MixerKind::kCsa) {
      const R ratio = fixed<R>(c.csa_ratio);
      compressor("compressor projection", heads_.head_dim, R(2.0), ratio);
      compressed_index(ratio, q_rank);
      compressed_scores("chosen attention", ratio, Reach::kChosen, fixed<R>(a_.indexer->top_k) * ratio, R(0.0));
    }
    // Each group of heads is projected by itself.
    list_.matmul("output down-projection", Part::kAttention, TpRule::kColumn, width / groups, groups * o_rank, false,
                 TpRule::kColumn);
    list_.output("attention output projection", Part::kAttention, groups * o_rank, false);
  }

  void compressed_index(const R& ratio, const R& q_rank) {
    const R heads = fixed<R>(a_.indexer->heads), dim = fixed<R>(a_.indexer->head_dim);
    compressor("index compressor projection", dim, R(2.0), ratio);
    list_.matmul("index query projection", Part::kAttention, TpRule::kWhole, q_rank, heads * dim, false,
                 TpRule::kWhole);
    list_.matmul("index weights projection", Part::kAttention, TpRule::kWhole, dims_.d_model, heads, false,
                 TpRule::kWhole);
    list_.add({.name = "index scores",
               .kind = OpKind::kAttention,
               .part = Part::kAttention,
               .tp = TpRule::kWhole,
               .qk_width = heads * dim / ratio,
               .shared = dim / ratio,
               .saved = R(2.0) * fixed<R>(a_.indexer->top_k),
               .keep = Keep::kSelective,
               .saved_tp = TpRule::kWhole});
  }

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
    if (!borrows() || a_.reuse_stored) {
      list_.matmul(one ? "key projection" : "key/value projection", Part::kAttention, TpRule::kKvColumn, input,
                   kv_width, a_.qkv_bias, TpRule::kKvColumn);
      list_.last().groups = heads_.kv_heads;
      list_.last().repeats = heads_.heads / heads_.kv_heads;
      if (!a_.key_bias) list_.last().extra_parameters = heads_.kv_heads * heads_.v_head_dim;
      if (borrows()) list_.last().rows = list_.last().saved = R(0.0);
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
               .flops = rotated * R(3.0),
               .saved = rotated,
               .keep = Keep::kSelective,
               .saved_tp = TpRule::kColumn,
               .kept_by = KeptBy::kViews,
               .repeats = heads_.heads / heads_.kv_heads});
  }

  R qk_norm_parameters(const R& rotated) const {
    switch (a_.qk_norm) {
      case QkNorm::kNone: break;
      case QkNorm::kHeadDim: return R(borrows() && !a_.reuse_stored ? 1.0 : 2.0) * heads_.head_dim;
      case QkNorm::kHeadDimReused: return R(2.0) * heads_.head_dim;
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
             .extra_parameters = (slides(kind_) ? a_.local_sinks : a_.sinks) ? heads_.heads : R(0.0),
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

  /// Each head attends to its local tokens and to every stride-th block of those before them. The heads of a group
  /// begin at different blocks, so of the keys and values further back so many strides are read as the group has heads.
  void strided(const StridedSpec& s) {
    const R far = R(1.0) / fixed<R>(s.stride);
    const R read = min(R(1.0), heads_.heads / heads_.kv_heads * far);
    share_of_attention("local attention", Reach::kWindow, fixed<R>(s.local), R(1.0) - far, R(1.0) - read);
    share_of_attention("strided attention", Reach::kAll, R(0.0), far, read);
    list_.last().saved = R(0.0);  // one output of both
    list_.last().keep = Keep::kNever;
  }

  void share_of_attention(std::string_view name, Reach reach, const R& span, const R& scored, const R& read) {
    const R& v_dim = heads_.v_head_dim;
    list_.add({.name = name,
               .kind = OpKind::kAttention,
               .part = Part::kAttention,
               .tp = TpRule::kHeads,
               .groups = heads_.kv_heads,
               .qk_width = heads_.heads * heads_.head_dim * scored,
               .v_width = heads_.heads * v_dim * scored,
               .heads = heads_.heads * scored,
               .reach = reach,
               .span = span,
               .shared = heads_.kv_heads * (heads_.head_dim + v_dim) * read,
               .saved = heads_.heads * (v_dim + R(2.0)),
               .keep = Keep::kSelective,
               .saved_tp = TpRule::kHeads});
  }

  /// Queries against keys of the relative positions, and keys against their queries. The positions are projected once
  /// for a batch, which no token's share shows.
  void position_scores(const DisentangledSpec& d) {
    const R width = heads_.heads * heads_.head_dim;
    if (d.own_projections) {
      list_.matmul("position projections", Part::kAttention, TpRule::kColumn, dims_.d_model, R(2.0) * width, false,
                   TpRule::kColumn);
      list_.last().extra_parameters = width;  // a bias of the queries
      list_.last().rows = list_.last().saved = R(0.0);
    }
    list_.add({.name = "position scores",
               .kind = OpKind::kAttention,
               .part = Part::kAttention,
               .tp = TpRule::kHeads,
               .groups = heads_.kv_heads,
               .qk_width = R(2.0) * width,
               .heads = heads_.heads,
               .reach = Reach::kFixed,
               .span = fixed<R>(d.positions)});
  }

  void reach(Op<R>& op) const {
    if (!a_.causal) {
      op.reach = slides(kind_) ? Reach::kAround : Reach::kBoth;
      op.span = dims_.window;
    } else if (slides(kind_)) {
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

template <class R>
void add_cross_attention(OpList<R>& list, const LayerKind& kind) {
  AttentionBuilder<R>(list, kind).cross();
}

template void add_cross_attention(OpList<double>&, const LayerKind&);
template void add_cross_attention(OpList<Dual>&, const LayerKind&);
template void add_cross_attention(OpList<Traced>&, const LayerKind&);

template void add_attention(OpList<double>&, const LayerKind&);
template void add_attention(OpList<Dual>&, const LayerKind&);
template void add_attention(OpList<Traced>&, const LayerKind&);

}  // namespace scalecalc
