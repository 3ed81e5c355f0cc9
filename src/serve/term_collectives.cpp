// The collectives of a step. Sources: sums over tensor ranks: Megatron-LM, arXiv:1909.08053 section 3; two-dimensional
// and gathered weights: Pope et al. 2022, arXiv:2211.05102 section 3.2; experts' all-to-alls: DeepSeek-V3,
// arXiv:2412.19437 section 3.2.2 (8-bit dispatch, 16-bit combine).
#include <algorithm>
#include <cmath>

#include "base/scalar.h"
#include "cost/mesh.h"
#include "serve/term_builder.h"

namespace scalecalc {
namespace {

template <class R>
class CollectiveBuilder {
 public:
  CollectiveBuilder(const ServeBasis<R>& basis, const ServeLayout& layout, const Slice& slice,
                    const Placement& placement, const TermBuilder<R>& builder, StepTerms<R>& terms)
      : basis_(basis),
        system_(basis.system),
        layout_(layout),
        model_(*basis.system.model),
        slice_(slice),
        dims_(basis.dims),
        dispatch_(builder.dispatch_bytes()),
        layer_bytes_(builder.layer_bytes()),
        terms_(terms) {
    const Group tp = placement.of(MeshDim::kTp);
    const Group all = merge(merge(tp, placement.of(MeshDim::kCp)), placement.of(MeshDim::kFsdp));
    reduce_ = channel(merge(tp, placement.of(MeshDim::kCp)), "tensor group");
    tp_ = channel(tp, "tp");
    cp_ = channel(placement.of(MeshDim::kCp), "cp");
    pp_ = channel(placement.of(MeshDim::kPp), "pp");
    group_ = channel(all, "stage");
    Group inner, outer;
    if (fold({tp}, layout.tp_x, inner, outer)) {
      x_ = channel(inner, "tp x");
      y_ = channel(outer, "tp y");
    }
    const std::vector<Group> nest{tp, placement.of(MeshDim::kCp), placement.of(MeshDim::kFsdp)};
    if (fold(nest, layout.etp, inner, outer)) {
      etp_ = channel(inner, "etp");
      ep_ = make_channel(*system_.hw, slice, basis_.network, outer, "ep", routing_of(model_));
    }
  }

  void build() {
    for (const KindOps<R>& kind : basis_.kinds) layer(kind.kind, kind.ops, kind.layers);
    ends();
  }

 private:
  double act() const { return system_.formats.activation_bytes; }
  BytesOf<R> bytes(const R& elements, double each) const { return BytesOf<R>(elements * R(each)); }
  Channel<R> channel(const Group& group, std::string_view label) const {
    return make_channel(*system_.hw, slice_, basis_.network, group, label);
  }

  /// `row_bytes` for each row, and `fixed` whatever the rows.
  void add(std::string_view name, double times, const Channel<R>& channel, const SecondsOf<R>& latency,
           const BytesOf<R>& row_bytes, const SecondsPerByteOf<R>& per_byte, bool logits = false,
           const SecondsOf<R>& fixed = SecondsOf<R>(R(0.0))) {
    if (channel.size == 1) return;
    CollectiveTerm<R> term{.name = name,
                           .times = R(times),
                           .latency = latency,
                           .per_row = row_bytes * per_byte,
                           .ramp = channel.ramp,
                           .row_bytes = row_bytes,
                           .fixed = fixed,
                           .latency_adds = channel.latency_adds,
                           .logits = logits};
    for (CollectiveTerm<R>& known : terms_.collectives) {
      if (known.name != name || value_of(known.per_row) != value_of(term.per_row)) continue;
      known.times = known.times + term.times;
      return;
    }
    terms_.collectives.push_back(std::move(term));
  }

  void all_reduce(std::string_view name, double times, const Channel<R>& channel, const R& elements) {
    add(name, times, channel, channel.reduce_latency, bytes(elements, act()), channel.reduce);
  }
  void gather(std::string_view name, double times, const Channel<R>& channel, const R& elements, double each,
              bool logits = false) {
    add(name, times, channel, channel.gather_latency, bytes(elements, each), channel.gather, logits);
  }
  void all_to_all(std::string_view name, double times, const Channel<R>& channel, const R& elements, double each) {
    add(name, times, channel, channel.all_to_all_latency, bytes(elements, each), channel.all_to_all);
  }

  void layer(const LayerKind& kind, const std::vector<Op<R>>& ops, double count) {
    for (const Op<R>& op : ops) {
      if (value_of(op.summed) > 0) all_reduce("inner all-reduce", count, tp_, op.summed);
      if (op.kind == OpKind::kAttention && op.tp == TpRule::kHeads) {
        all_to_all("context all-to-all", count, cp_, op.v_width / R(to_double(layout_.tp)), act());
        if (layout_.scheme == ServeScheme::kStationary2d) {
          // Queries, keys and values go from heads to sequences, the outputs back.
          const R moved = (op.qk_width + op.v_width + op.shared) / R(to_double(layout_.tp));
          all_to_all("sequence all-to-all", count * 2, tp_, moved * R(0.5), act());
        }
      }
    }
    const bool shares_experts = kind.ffn == FfnKind::kMoe && terms_.sharing > 1;
    if (shares_experts) expert_all_to_all(count);
    switch (layout_.scheme) {
      case ServeScheme::kStationary1d: return reductions(kind, count);
      case ServeScheme::kStationary2d: return reductions_2d(kind, ops, count);
      case ServeScheme::kGathered: return gathers(count);
    }
  }

  /// Each half of a layer ends in a sum over the ranks its last matmul was divided over.
  void reductions(const LayerKind& kind, double count) {
    const double halves =
        model_.parallel_block ? 1 : (kind.mixer != MixerKind::kNone ? 1 : 0) + (kind.ffn != FfnKind::kNone ? 1 : 0);
    all_reduce("tensor all-reduce", count * halves, reduce_, dims_.d_model);
  }

  /// Inputs lie in parts of d_model, so that wide outputs are summed over x as well, and narrow ones over y in parts.
  void reductions_2d(const LayerKind& kind, const std::vector<Op<R>>& ops, double count) {
    const R x(to_double(layout_.tp_x)), y(to_double(layout_.tp / layout_.tp_x));
    R wide(0.0);
    for (const Op<R>& op : ops) {
      if (op.kind == OpKind::kMatmul && (op.tp == TpRule::kColumn || op.tp == TpRule::kKvColumn))
        wide = wide + op.n / y;
    }
    all_reduce("2d all-reduce over x", count, x_, wide);
    const double halves = model_.parallel_block || kind.ffn == FfnKind::kNone ? 1 : 2;
    all_reduce("2d all-reduce over y", count * halves, y_, dims_.d_model / x);
  }

  void gathers(double count) {
    const SecondsOf<R> transfer = BytesOf<R>(R(layer_bytes_)) * tp_.gather;
    add("weight all-gather", count, tp_, tp_.gather_latency, BytesOf<R>(R(0.0)), tp_.gather, false, transfer);
  }

  /// Each rank sends its part of its group's tokens to the experts they chose and gets the sums back; without expert
  /// ranks all tokens go everywhere.
  void expert_all_to_all(double count) {
    const R& width = dims_.expert_width;
    const R each(1 / to_double(layout_.tp * layout_.cp));
    if (layout_.ep == 1) {
      const R rows(terms_.sharing);
      gather("expert all-gather", count, group_, rows * width, dispatch_);
      gather("expert reduce-scatter", count, group_, rows * width, act());
      return;
    }
    const R routed = dims_.top_k * width * each;
    all_to_all("expert dispatch", count, ep_, routed, dispatch_);
    all_to_all("expert combine", count, ep_, routed, act());
    if (layout_.etp > 1) {
      const R arrived = routed * R(to_double(layout_.etp));
      gather("expert tensor all-gather", count, etp_, arrived, dispatch_);
      gather("expert tensor reduce-scatter", count, etp_, arrived, act());
    }
  }

  void ends() {
    if (layout_.scheme == ServeScheme::kStationary1d) gather("logits gather", 1, reduce_, dims_.vocab, act(), true);
    if (layout_.pp == 1) return;
    terms_.stage_send_latency = pp_.send_latency;
    terms_.stage_send_per_row = bytes(dims_.d_model, act()) * pp_.send;
  }

  const ServeBasis<R>& basis_;
  const ServingSystem& system_;
  const ServeLayout& layout_;
  const ModelSpec& model_;
  const Slice& slice_;
  const ModelDims<R>& dims_;
  double dispatch_;
  double layer_bytes_;
  StepTerms<R>& terms_;
  Channel<R> tp_, reduce_, x_, y_, cp_, ep_, etp_, group_, pp_;
};

}  // namespace

template <class R>
void add_collectives(const ServeBasis<R>& basis, const ServeLayout& layout, const Slice& slice,
                     const Placement& placement, const TermBuilder<R>& builder, StepTerms<R>& terms) {
  if (layout.replica_chips() == 1) return;
  CollectiveBuilder<R>(basis, layout, slice, placement, builder, terms).build();
}

#define SCALECALC_INSTANTIATE(R)                                                                          \
  template void add_collectives(const ServeBasis<R>&, const ServeLayout&, const Slice&, const Placement&, \
                                const TermBuilder<R>&, StepTerms<R>&);
SCALECALC_INSTANTIATE(double)
SCALECALC_INSTANTIATE(Dual)
SCALECALC_INSTANTIATE(Traced)
SCALECALC_INSTANTIATE(Interval)
#undef SCALECALC_INSTANTIATE

}  // namespace scalecalc
