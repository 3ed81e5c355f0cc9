// Memory as an out-of-memory error would count it: the peak on the fullest chip. Sources: ZeRO, arXiv:1910.02054
// section 3 (states); Korthikanti et al. 2022, arXiv:2205.05198 section 4 (activations); the schedules' papers for
// microbatches in flight (pipeline.h).
#include "cost/stage_parameters.h"
#include "cost/step.h"

namespace scalecalc {
namespace {

template <class R>
class MemoryCounter {
 public:
  explicit MemoryCounter(const StepInput<R>& in) : in_(in), net_(*in.network), ch_(*in.channels), layout_(in.layout) {}

  /// The stage that holds most, with what it holds.
  MemoryUse<R> fullest() const {
    MemoryUse<R> out;
    double most = -1;
    for (const StageShape& stage : *in_.stages) {
      MemoryUse<R> use = stage_memory(stage);
      const double total = value_of(use.total());
      if (total <= most) continue;
      most = total;
      out = std::move(use);
    }
    return out;
  }

 private:
  MemoryUse<R> stage_memory(const StageShape& stage) const {
    const Precision& p = in_.workload->precision;
    const R dense = dense_parameters(*in_.model, net_, stage);
    const R expert = expert_parameters(*in_.model, net_, stage);
    const auto held = [&](double bytes, int from_zero) {
      const bool shard = layout_.zero >= from_zero;
      const double ways = !shard ? 1.0 : static_cast<double>(layout_.zero == 3 ? ch_.shard.size : ch_.data.size);
      const double expert_ways =
          !shard ? 1.0 : static_cast<double>(layout_.zero == 3 ? ch_.expert_shard.size : ch_.expert_data.size);
      return BytesOf<R>((dense / R(ways) + expert / R(expert_ways)) * R(bytes));
    };
    MemoryUse<R> use;
    use.weights = named(held(p.weight_bytes, 3), "weights", "parameters per chip x bytes, divided by ZeRO-3 shards");
    use.gradients =
        named(held(p.gradient_bytes, 2), "gradients", "parameters per chip x bytes, divided from ZeRO-2 on");
    use.optimizer = named(held(in_.workload->optimizer.state_bytes, 1), "optimizer state",
                          "parameters per chip x bytes, divided from ZeRO-1 on (arXiv:1910.02054)");
    activations(stage, use);
    buffers(stage, use);
    use.reserve = in_.memory_reserve;
    return use;
  }

  void activations(const StageShape& stage, MemoryUse<R>& use) const {
    const R flight(in_flight(layout_.schedule, layout_.pp, layout_.vpp, stage.first, layout_.grad_accum));
    use.activations = activation_bytes(in_, stage, flight);
    if (!stage.head) return;
    use.logits = named(net_.logits * R(1.0) + net_.head.saved[0], "logits and loss",
                       "tokens x vocab / tp x 8 bytes: logits, fp32 softmax, gradient");
  }

  /// ZeRO-3: gathered weights of the running layer and the next (prefetch) and the whole gradient of one. ZeRO-2: that
  /// gradient alone. Experts: dispatched tokens.
  void buffers(const StageShape& stage, MemoryUse<R>& use) const {
    const Precision& p = in_.workload->precision;
    const bool sharded = layout_.zero == 3 && (ch_.shard.size > 1 || ch_.expert_shard.size > 1);
    const bool scattered = layout_.zero == 2 && ch_.data.size > 1;
    const R layer_bytes((sharded ? 2 * p.weight_bytes : 0.0) + (sharded || scattered ? p.gradient_bytes : 0.0));
    const R end_bytes((sharded ? p.weight_bytes : 0.0) + (sharded || scattered ? p.gradient_bytes : 0.0));
    BytesOf<R> whole(R(0.0));
    BytesOf<R> dispatched(R(0.0));
    for (std::size_t k = 0; k < net_.kinds.size(); ++k) {
      if (stage.layers[k] == 0) continue;
      const R parameters = net_.kinds[k].dense_parameters + net_.kinds[k].expert_parameters;
      whole = max(whole, BytesOf<R>(parameters * layer_bytes));
      dispatched = max(dispatched, net_.kinds[k].forward.ep_bytes);
    }
    if (stage.embedding) whole = max(whole, BytesOf<R>(net_.embedding.dense_parameters * end_bytes));
    if (stage.head) whole = max(whole, BytesOf<R>(net_.head.dense_parameters * end_bytes));
    use.buffers =
        named(whole + dispatched, "buffers",
              "whole layers while they are gathered or reduced (ZeRO 2 and 3), tokens on their way to experts");
  }

  const StepInput<R>& in_;
  const NetworkCost<R>& net_;
  const MeshChannels<R>& ch_;
  const Layout& layout_;
};

}  // namespace

template <class R>
BytesOf<R> activation_bytes(const StepInput<R>& in, const StageShape& stage, const R& in_flight) {
  const NetworkCost<R>& net = *in.network;
  const std::size_t remat = static_cast<std::size_t>(in.layout.remat);
  BytesOf<R> per_microbatch(R(0.0));
  BytesOf<R> recomputed(R(0.0));
  for (std::size_t k = 0; k < net.kinds.size(); ++k) {
    const bool mtp = stage.head && in.model->mtp_layers > 0 && in.model->mtp_kind == k;
    const double layers = static_cast<double>(stage.layers[k]) + (mtp ? static_cast<double>(in.model->mtp_layers) : 0);
    if (layers <= 0) continue;
    per_microbatch += net.kinds[k].saved[remat] * R(layers);
    // While one layer is computed again its tensors are all there.
    recomputed = max(recomputed, net.kinds[k].saved[0] - net.kinds[k].saved[remat] + net.kinds[k].workspace);
  }
  return named(per_microbatch * in_flight + recomputed, "activations",
               "tensors kept x microbatches in flight, and one layer's working set (arXiv:2205.05198)");
}

template <class R>
BytesOf<R> MemoryUse<R>::total() const {
  return weights + gradients + optimizer + activations + logits + buffers + reserve;
}

template <class R>
MemoryUse<R> memory_use(const StepInput<R>& in) {
  return MemoryCounter<R>(in).fullest();
}

#define SCALECALC_INSTANTIATE(R)                         \
  template struct MemoryUse<R>;                          \
  template MemoryUse<R> memory_use(const StepInput<R>&); \
  template BytesOf<R> activation_bytes(const StepInput<R>&, const StageShape&, const R&);
SCALECALC_INSTANTIATE(double)
SCALECALC_INSTANTIATE(Dual)
SCALECALC_INSTANTIATE(Traced)
SCALECALC_INSTANTIATE(Interval)
#undef SCALECALC_INSTANTIATE

}  // namespace scalecalc
