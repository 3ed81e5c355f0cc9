// Attention as operation lists. Shapes: scaling book, chapter 4 (multi-head, grouped-query); DeepSeek-V2,
// arXiv:2405.04434 section 2.1 (MLA); DeepSeek-V3.2, arXiv:2512.02556 section 2 (indexer and chosen tokens);
// Transformer-XL, arXiv:1901.02860 section 3.3 (relative positions); gated output: Qwen3-Next. What the backward pass
// keeps follows Korthikanti et al. 2022, arXiv:2205.05198 section 4, with flash attention (no score matrix is kept).
#include "model/op_list.h"

namespace scalecalc {
namespace {

template <class R>
class AttentionBuilder {
 public:
  AttentionBuilder(OpList<R>& list, MixerKind kind)
      : list_(list), kind_(kind), a_(list.model().attention), dims_(list.dims()) {
    heads_ = kind == MixerKind::kSliding ? dims_.local : dims_.attention;
  }

  void build() {
    if (kind_ == MixerKind::kMla) {
      mla_projections();
    } else {
      qkv_projections();
    }
    if (list_.model().relative_positions) relative_positions();
    if (chooses()) indexer();
    attention();
    if (a_.output_gate) output_gate();
    list_.output("attention output projection", Part::kAttention, heads_.heads * heads_.v_head_dim, a_.o_bias);
  }

 private:
  /// Layers that look at the whole sequence attend to what the indexer picks.
  bool chooses() const { return a_.indexer && (kind_ == MixerKind::kFull || kind_ == MixerKind::kMla); }

  void qkv_projections() {
    const R q_width = heads_.heads * heads_.head_dim;
    const bool same = value_of(heads_.head_dim) == value_of(heads_.v_head_dim);
    const R kv_width =
        same ? R(2.0) * heads_.kv_heads * heads_.head_dim : heads_.kv_heads * (heads_.head_dim + heads_.v_head_dim);
    list_.matmul("query projection", Part::kAttention, TpRule::kColumn, dims_.d_model, q_width, a_.qkv_bias,
                 TpRule::kColumn);
    list_.matmul("key/value projection", Part::kAttention, TpRule::kKvColumn, dims_.d_model, kv_width, a_.qkv_bias,
                 TpRule::kKvColumn);
    list_.last().groups = heads_.kv_heads;
    list_.last().values = heads_.kv_heads * heads_.v_head_dim;
    const R rotated = q_width + heads_.kv_heads * heads_.head_dim;
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
      case QkNorm::kHeadDim: return R(2.0) * heads_.head_dim;
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
    list_.matmul("index weights projection", Part::kAttention, TpRule::kWhole, dims_.d_model, heads, false,
                 TpRule::kWhole);
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
             .extra_parameters = a_.sinks ? heads_.heads : R(0.0),
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

  void output_gate() {
    const R width = heads_.heads * heads_.v_head_dim;
    list_.matmul("output gate projection", Part::kAttention, TpRule::kColumn, dims_.d_model, width, a_.qkv_bias,
                 TpRule::kColumn);
    list_.add({.name = "output gate",
               .kind = OpKind::kVector,
               .part = Part::kAttention,
               .tp = TpRule::kHeads,
               .reads = width * R(2.0),
               .writes = width,
               .flops = width * R(5.0),
               .saved = width,
               .keep = Keep::kWithoutRemat,
               .saved_tp = TpRule::kHeads});
  }

  OpList<R>& list_;
  MixerKind kind_;
  const AttentionSpec& a_;
  const ModelDims<R>& dims_;
  AttentionDims<R> heads_;
};

}  // namespace

template <class R>
void add_attention(OpList<R>& list, MixerKind kind) {
  AttentionBuilder<R>(list, kind).build();
}

template void add_attention(OpList<double>&, MixerKind);
template void add_attention(OpList<Dual>&, MixerKind);
template void add_attention(OpList<Traced>&, MixerKind);
template void add_attention(OpList<Interval>&, MixerKind);

}  // namespace scalecalc
