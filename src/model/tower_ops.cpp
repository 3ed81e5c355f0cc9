// Lists the operations of towers: vision transformers, arXiv:2010.11929 section 3.1; encoders, arXiv:1706.03762
// section 3.1.
#include "model/op_list.h"
#include "model/ops.h"

namespace scalecalc {
namespace {

/// Dimensions that no question asks a derivative by.
template <class R>
ModelDims<R> fixed_dims(const ModelSpec& model) {
  const AttentionSpec& a = model.attention;
  const AttentionShape full = a.shape(MixerKind::kFull), local = a.shape(MixerKind::kSliding);
  const auto dims = [](const AttentionShape& s) {
    return AttentionDims<R>{fixed<R>(s.heads), fixed<R>(s.kv_heads), fixed<R>(s.head_dim), fixed<R>(s.v_head_dim)};
  };
  ModelDims<R> out{};
  out.d_model = out.expert_width = fixed<R>(model.d_model);
  out.d_ff = fixed<R>(model.mlp.d_ff);
  out.attention = dims(full);
  out.local = dims(local);
  out.window = fixed<R>(a.window);
  return out;
}

/// `times` the work, and what is kept of it.
template <class R>
void scale(Op<R>& op, const R& times) {
  for (R* each :
       {&op.rows, &op.reads, &op.writes, &op.flops, &op.saved, &op.qk_width, &op.v_width, &op.heads, &op.shared}) {
    *each = *each * times;
  }
}

/// A tower's operations beside those of a token.
template <class R>
class TowerBuilder {
 public:
  explicit TowerBuilder(const TowerSpec& tower) : tower_(tower), positions_(tower.per_token) {}

  std::vector<TowerPart<R>> build() {
    const ModelSpec& network = tower_.network;
    const ModelDims<R> dims = fixed_dims<R>(network);
    OpList<R> ends(network, dims);
    if (network.vocab > 0) {
      ends.add({.name = "tower embedding lookup",
                .kind = OpKind::kVector,
                .part = Part::kEmbedding,
                .tp = TpRule::kSequence,
                .extra_parameters = fixed<R>(network.vocab) * dims.d_model,
                .reads = dims.d_model,
                .writes = dims.d_model});
    }
    for (const ProjectorLayer& p : tower_.stem) {
      ends.matmul("tower input projection", Part::kMlp, TpRule::kSequence, fixed<R>(p.in), fixed<R>(p.out), p.bias,
                  TpRule::kSequence);
      ends.last().rows = fixed<R>(p.times);
    }
    const std::int64_t others = tower_.other_weights + network.learned_positions * network.d_model;
    const R norm = dims.d_model * R(network.final_norm ? network.norm_parameters() : 0.0);
    ends.add({.name = "tower positions and norms",
              .kind = OpKind::kVector,
              .part = Part::kNorm,
              .tp = TpRule::kSequence,
              .extra_parameters = fixed<R>(others + network.position_biases) + norm,
              .reads = dims.d_model,
              .writes = dims.d_model});
    put(ends.take(), 1, positions_);
    for (std::size_t k = 0; k < network.kinds.size(); ++k) layers(k, dims);
    OpList<R> projector(network, dims);
    for (const ProjectorLayer& p : tower_.projector) {
      projector.matmul("tower projector", Part::kMlp, TpRule::kSequence, fixed<R>(p.in), fixed<R>(p.out), p.bias,
                       TpRule::kSequence);
      projector.last().rows = fixed<R>(p.times);
    }
    put(projector.take(), 1, positions_ / fixed<R>(tower_.merge));
    return std::move(out_);
  }

 private:
  void layers(std::size_t kind, const ModelDims<R>& dims) {
    const ModelSpec& network = tower_.network;
    std::int64_t count = 0;
    for (const std::uint8_t k : network.layer_kind) count += k == kind ? 1 : 0;
    if (count == 0) return;
    const MixerKind mixer = network.kinds[kind].mixer;
    put(layer_ops(network, network.kinds[kind], dims), count, positions_);
    out_.back().heads = attends_by_heads(mixer) ? network.attention.shape(mixer).heads : 0;
    out_.back().d_ff = network.d_ff_of(network.kinds[kind]);
  }

  /// Alike `count` times, for `rows` positions beside a token.
  void put(std::vector<Op<R>> ops, std::int64_t count, const R& rows) {
    for (Op<R>& op : ops) {
      if (!tower_.counted) op.part = Part::kTower;
      scale(op, rows);
      op.summed = R(0.0);
      if (value_of(rows) == 0) op.kind = OpKind::kVector, op.keep = Keep::kNever;  // not shown anything
      if (op.kind == OpKind::kAttention && tower_.tokens > 0) {
        const bool windowed = op.reach == Reach::kAround && value_of(op.span) < static_cast<double>(tower_.tokens);
        op.span = windowed ? op.span : fixed<R>(tower_.tokens);
        op.reach = Reach::kFixed;
      }
    }
    if (ops.empty()) return;
    out_.push_back(
        {std::move(ops), static_cast<double>(count), value_of(rows) > 0, rows * fixed<R>(tower_.network.d_model)});
  }

  const TowerSpec& tower_;
  R positions_;
  std::vector<TowerPart<R>> out_;
};

}  // namespace

template <class R>
std::vector<TowerPart<R>> tower_parts(const ModelSpec& model) {
  std::vector<TowerPart<R>> out;
  for (const TowerSpec& tower : model.towers) {
    for (TowerPart<R>& part : TowerBuilder<R>(tower).build()) out.push_back(std::move(part));
  }
  return out;
}

template <class R>
std::vector<Op<R>> tower_ops(const ModelSpec& model) {
  std::vector<Op<R>> out;
  for (TowerPart<R>& part : tower_parts<R>(model)) {
    hold_whole(part.ops);
    const R times(part.count);
    for (Op<R>& op : part.ops) {
      scale(op, times);
      op.matrices = op.matrices * times;
      op.extra_parameters = op.extra_parameters * times;
      out.push_back(std::move(op));
    }
  }
  return out;
}

#define SCALECALC_INSTANTIATE(R)                                    \
  template std::vector<TowerPart<R>> tower_parts(const ModelSpec&); \
  template std::vector<Op<R>> tower_ops(const ModelSpec&);
SCALECALC_INSTANTIATE(double)
SCALECALC_INSTANTIATE(Dual)
SCALECALC_INSTANTIATE(Traced)
#undef SCALECALC_INSTANTIATE

}  // namespace scalecalc
