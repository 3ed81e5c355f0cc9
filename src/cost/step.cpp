// Sources: overlap of communication with compute and its bound max(compute, communication): scaling book, chapters 1
// and 5 (FSDP, tensor, mixed). Pipeline bubble: Huang et al. 2019 (GPipe) and Narayanan et al. 2021, arXiv:2104.04473
// section 2.2. ZeRO stages: Rajbhandari et al. 2020, arXiv:1910.02054 section 7.
#include "cost/step.h"

#include "cost/stage_time.h"

namespace scalecalc {
namespace {

template <class R>
class StepBuilder {
 public:
  StepBuilder(const Reader<R>& reader, const StepInput<R>& in, const Phases<R>& phases)
      : phases_(phases), in_(in), net_(*in.network), ch_(*in.channels), overlap_(*in.overlap), layout_(in.layout) {
    microbatches_ = reader.input(static_cast<double>(layout_.grad_accum), "grad_accum", "layout");
    stages_ = reader.input(static_cast<double>(layout_.pp), "pp", "layout");
    chunks_ = reader.input(static_cast<double>(layout_.vpp), "vpp", "layout");
  }

  /// All but what follows the last backward pass.
  StepTime<R> build() {
    slowest_stage();
    StepTime<R> out;
    const PhaseTime<R>& stage = slowest_;
    out.compute =
        named(microbatches_ * stage.compute, "compute", "microbatches x compute-bound work of the slowest stage");
    out.hbm =
        named(microbatches_ * stage.hbm, "memory-bound work", "microbatches x HBM-bound work of the slowest stage");
    out.tp = named(microbatches_ * stage.tp, "exposed tensor-parallel communication", kOverlapRule);
    out.fsdp = named(microbatches_ * stage.fsdp, "exposed FSDP communication", kOverlapRule);
    out.cp = named(microbatches_ * stage.cp, "exposed context-parallel communication", kOverlapRule);
    out.ep = named(microbatches_ * stage.ep, "exposed expert communication", kOverlapRule);
    out.host = named(microbatches_ * stage.host, "exposed offload", kOverlapRule);
    for (std::size_t x = 0; x < kTrafficKinds; ++x) out.spilled[x] = stage.spilled[x] * value_of(microbatches_);
    pipeline(out);
    out.overhead = named(microbatches_ * stage.overhead + in_.chip->step_overhead, "kernel and step overhead",
                         "kernels x overhead of each, and the host's share of a step");
    return out;
  }

  /// [LAST] A step ends with the stage that is done last: microbatches x its time, then its gradients and its update.
  /// What another stage than the slowest needs longer is charged to the gradients. So the step does not fall when a
  /// stage slows down, whichever stage that makes the slowest (step_lower_bound rests on it).
  void ends(StepTime<R>& out) const {
    const StageEnd<R> own = stage_end(*shape_);
    out.optimizer = own.optimizer;
    SecondsOf<R> longer(R(0.0));
    for (const StageShape& stage : *in_.stages) {
      if (&stage == shape_) continue;
      const StageEnd<R> other = stage_end(stage);
      const SecondsOf<R> lead = microbatches_ * (slowest_.total() - stage_time(in_, phases_, stage).total());
      longer = max(longer, other.dp + other.optimizer - own.dp - own.optimizer - lead);
    }
    out.dp = named(own.dp + longer, "exposed gradient reduction",
                   "reduce-scatter and all-gather of the stage's weights; ZeRO, arXiv:1910.02054");
  }

  StageEnd<R> stage_end(const StageShape& stage) const {
    StageEnd<R> out = data_parallel(stage);
    out.optimizer = optimizer(stage);
    return out;
  }

 private:
  void slowest_stage() {
    double slowest = -1;
    for (const StageShape& stage : *in_.stages) {
      PhaseTime<R> time = stage_time(in_, phases_, stage);
      all_stages_ += time.total() * R(static_cast<double>(stage.count));
      const double total = value_of(time.total());
      if (total <= slowest) continue;
      slowest = total;
      slowest_ = time;
      shape_ = &stage;
    }
  }

  /// [BUBBLE] While the pipeline fills and drains, a stage waits for one pass of a microbatch through all the others:
  /// (sum of stage times - slowest) / vpp. Equal stages give the textbook (pp - 1) (t_f + t_b) / vpp. ZB-H1 fills what
  /// it can with weight gradients W: (pp - 1)(t_f + t_b - 2 W), t_b being the whole backward. DualPipe feeds from both
  /// ends: (pp/2 - 1)(t_f + t_b + t_b - 3 W).
  SecondsOf<R> bubble() const {
    const SecondsOf<R> zero(R(0.0));
    switch (layout_.schedule) {
      case Schedule::kZeroBubble:
        return named(
            max(zero, all_stages_ - slowest_.total() - R(2.0) * (stages_ - R(1.0)) / stages_ * phases_.weight_whole),
            "pipeline bubble", "(pp - 1)(t_f + t_b - 2 W); ZB-H1, arXiv:2401.10241 table 1");
      case Schedule::kDualPipe:
        return named(max(zero, (stages_ / R(2.0) - R(1.0)) / stages_ *
                                   (R(2.0) * all_stages_ - phases_.forward_whole - R(3.0) * phases_.weight_whole)),
                     "pipeline bubble", "(pp/2 - 1)(t_f + 2 t_b - 3 W); arXiv:2412.19437 table 2");
      default: break;
    }
    return named(max(zero, (all_stages_ - slowest_.total()) / chunks_), "pipeline bubble",
                 "(sum of stages - slowest) / vpp; arXiv:2104.04473 section 2.2");
  }

  void pipeline(StepTime<R>& out) {
    if (layout_.pp == 1) return;
    out.bubble = bubble();
    const SecondsOf<R> hop = send_time(ch_.pp, net_.boundary);
    const R hops = R(2.0) * microbatches_ * chunks_;
    const bool paired = layout_.schedule == Schedule::kDualPipe;
    const R hidden = paired ? max(overlap_.pp, overlap_.ep_paired) : overlap_.pp;
    out.pp = named(hops * hop * (R(1.0) - hidden) + R(2.0) * (stages_ - R(1.0)) * hop, "exposed pipeline communication",
                   "2 sends per microbatch and chunk; filling and draining hide none");
  }

  /// Exposed part of a transfer that may hide under `work`, as in OVERLAP with one kind of traffic.
  SecondsOf<R> exposed(const SecondsOf<R>& time, const R& overlap, const R& contention_share,
                       const SecondsOf<R>& work) const {
    const SecondsOf<R> hidden = time * overlap;
    return time * (R(1.0) - overlap) + max(SecondsOf<R>(R(0.0)), hidden - work) + min(hidden, work) * contention_share;
  }

  /// One phase of a microbatch through a stage's layers.
  SecondsOf<R> layers_of(const StageShape& stage, bool backward) const {
    PhaseTime<R> out;
    for (std::size_t k = 0; k < net_.kinds.size(); ++k) {
      if (stage.layers[k] == 0) continue;
      if (backward) {
        add_backward(phases_, k, treated_layers(layout_, stage, k), stage.layers[k], out);
      } else {
        out.add(phases_.forward[k], R(static_cast<double>(stage.layers[k])));
      }
    }
    return out.total() / R(static_cast<double>(stage.parts));
  }

  /// Gradients hide under the last microbatch's backward, updated weights under the next step's first forward.
  StageEnd<R> data_parallel(const StageShape& stage) const {
    StageEnd<R> out;
    const Precision& p = in_.workload->precision;
    const R dense = dense_parameters(*in_.model, net_, stage);
    const R expert = expert_parameters(*in_.model, net_, stage);
    const bool sharded = layout_.zero == 3;
    const Channel<R>& channel = sharded ? ch_.replicate : ch_.data;
    const Channel<R>& experts = sharded ? ch_.expert_replicate : ch_.expert_data;
    out.reduce = out.dp = twin_time(stage, dense, expert);
    if (channel.size == 1 && experts.size == 1) return out;
    const R shards(sharded ? static_cast<double>(ch_.shard.size) : 1.0);
    const R expert_shards(sharded ? static_cast<double>(ch_.expert_shard.size) : 1.0);
    const BytesOf<R> gradients(dense * R(p.gradient_bytes) / shards);
    const BytesOf<R> expert_gradients(expert * R(p.gradient_bytes) / expert_shards);
    const SecondsOf<R> backward = layers_of(stage, true);
    // A bound's channels have no links: which tier a placement slows the compute for is not known yet.
    const R share = channel.links == 0 ? R(0.0) : contention_of(overlap_, channel);
    if (layout_.zero == 0 || sharded) {
      const SecondsOf<R> reduce = all_reduce_time(channel, gradients) + expert_time(experts, expert_gradients, true);
      out.reduce += reduce;
      out.dp += exposed(reduce, overlap_.dp, share, backward);
      return out;
    }
    const SecondsOf<R> scatter = all_gather_time(channel, gradients) + expert_time(experts, expert_gradients, false);
    out.reduce += scatter;
    out.gather = all_gather_time(channel, BytesOf<R>(dense * R(p.weight_bytes))) +
                 expert_time(experts, BytesOf<R>(expert * R(p.weight_bytes)), false);
    const R scatters = layout_.zero == 2 ? microbatches_ : R(1.0);
    out.gather_exposed = exposed(out.gather, overlap_.dp, share, layers_of(stage, false));
    out.dp += scatters * exposed(scatter, overlap_.dp, share, backward) + out.gather_exposed;
    return out;
  }

  /// DualPipe keeps every stage on two chips, which sum what they have reduced: all of it (ZeRO 0), or each half of a
  /// shard's gradients one way and of its new weights the other. Nothing hides it. To the mirror image a torus may have
  /// to carry it across the bisection, as an all-to-all.
  SecondsOf<R> twin_time(const StageShape& stage, const R& dense, const R& expert) const {
    if (stage.parts == 1) return SecondsOf<R>(R(0.0));
    const Precision& p = in_.workload->precision;
    const bool sharded = layout_.zero > 0;
    const R ways(sharded ? static_cast<double>(ch_.data.size) : 1.0);
    const R expert_ways(sharded ? static_cast<double>(ch_.expert_data.size) : 1.0);
    const R bytes(sharded ? (p.gradient_bytes + p.weight_bytes) / 2 : p.gradient_bytes);
    const BytesOf<R> exchanged((dense / ways + expert / expert_ways) * bytes);
    return max(send_time(ch_.pp, exchanged), all_to_all_time(ch_.pp, exchanged));
  }

  SecondsOf<R> expert_time(const Channel<R>& channel, const BytesOf<R>& bytes, bool reduce) const {
    if (value_of(bytes) <= 0) return SecondsOf<R>(R(0.0));
    return reduce ? all_reduce_time(channel, bytes) : all_gather_time(channel, bytes);
  }

  /// Each chip updates its shard: memory traffic against vector work, as any operation.
  SecondsOf<R> optimizer(const StageShape& stage) const {
    const Optimizer& o = in_.workload->optimizer;
    const double ways =
        layout_.zero == 0 ? 1.0 : static_cast<double>(layout_.zero == 3 ? ch_.shard.size : ch_.data.size);
    const double expert_ways =
        layout_.zero == 0 ? 1.0 : static_cast<double>(layout_.zero == 3 ? ch_.expert_shard.size : ch_.expert_data.size);
    const double twins = layout_.zero == 0 ? 1.0 : static_cast<double>(stage.parts);
    const R updated = named(dense_parameters(*in_.model, net_, stage) / R(ways * twins) +
                                expert_parameters(*in_.model, net_, stage) / R(expert_ways * twins),
                            "parameters one chip updates", "its shard of the stage");
    const Work<R> update = roofline(FlopsOf<R>(updated * R(o.update_flops)), in_.chip->vector,
                                    BytesOf<R>(updated * R(o.update_bytes)), in_.chip->hbm);
    SecondsOf<R> time = update.total();
    if (o.orthogonalizes) time += orthogonalization(updated);
    if (layout_.offload != 0) time = from_host(updated, time);
    return named(time, "optimizer step", "parameters of the shard x bytes per update / HBM bandwidth");
  }

  /// Offloaded state passes through the chip: it is read and written over the host's link, which works both ways at
  /// once, while the chip updates. New offloaded weights go the same way.
  SecondsOf<R> from_host(const R& updated, const SecondsOf<R>& update) const {
    const bool state = (layout_.offload & kOffloadOptimizer) != 0;
    const bool weights = (layout_.offload & kOffloadWeights) != 0;
    const R bytes((state ? in_.workload->optimizer.state_bytes : 0.0) +
                  (weights ? in_.workload->precision.weight_bytes : 0.0));
    return max(update, BytesOf<R>(updated * bytes) / in_.chip->host);
  }

  /// Muon: five Newton-Schulz iterations, each 4 m^2 n + 2 m^3 FLOPs on an m x n matrix (m <= n), so about
  /// 5 x 6 x d_model FLOPs per parameter of a matrix whose short side is d_model (arXiv:2502.16982 section 2).
  SecondsOf<R> orthogonalization(const R& updated) const {
    const R flops = updated * R(5.0 * 6.0 * static_cast<double>(in_.model->d_model));
    const DType dtype = in_.workload->precision.high;
    return FlopsOf<R>(flops) / in_.chip->matmul[static_cast<std::size_t>(dtype)];
  }

  const Phases<R>& phases_;
  const StepInput<R>& in_;
  const NetworkCost<R>& net_;
  const MeshChannels<R>& ch_;
  const OverlapRates<R>& overlap_;
  const Layout& layout_;
  R microbatches_{1.0}, stages_{1.0}, chunks_{1.0};
  PhaseTime<R> slowest_;
  SecondsOf<R> all_stages_{R(0.0)};  ///< one microbatch through every stage
  const StageShape* shape_ = nullptr;
};

}  // namespace

template <class R>
SecondsOf<R> StepTime<R>::total() const {
  return compute + hbm + tp + fsdp + dp + cp + ep + pp + host + bubble + optimizer + overhead;
}

template <class R>
StepTime<R> step_time(const Reader<R>& reader, const StepInput<R>& in, const Phases<R>& phases) {
  StepBuilder<R> builder(reader, in, phases);
  StepTime<R> out = builder.build();
  builder.ends(out);
  return out;
}

StageEnd<double> stage_end(const StepInput<double>& in, const Phases<double>& phases, const StageShape& stage) {
  return StepBuilder<double>(Reader<double>{}, in, phases).stage_end(stage);
}

double step_lower_bound(const StepInput<double>& in, const Phases<double>& phases) {
  return StepBuilder<double>(Reader<double>{}, in, phases).build().total().value();
}

#define SCALECALC_INSTANTIATE(R) \
  template struct StepTime<R>;   \
  template StepTime<R> step_time(const Reader<R>&, const StepInput<R>&, const Phases<R>&);
SCALECALC_INSTANTIATE(double)
SCALECALC_INSTANTIATE(Dual)
SCALECALC_INSTANTIATE(Traced)
SCALECALC_INSTANTIATE(Interval)
#undef SCALECALC_INSTANTIATE

}  // namespace scalecalc
