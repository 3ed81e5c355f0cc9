// Sources: overlap of communication with compute and its bound max(compute, communication): scaling book, chapters 1
// and 5 (FSDP, tensor, mixed). Pipeline bubble: Huang et al. 2019 (GPipe) and Narayanan et al. 2021, arXiv:2104.04473
// section 2.2. ZeRO stages: Rajbhandari et al. 2020, arXiv:1910.02054 section 7.
#include "cost/step.h"

#include <array>

#include "cost/stage_parameters.h"

namespace scalecalc {
namespace {

constexpr std::string_view kOverlapRule = "OVERLAP, docs/model.md: what does not hide under the work";

template <class R>
R contention_of(const OverlapRates<R>& overlap, const Channel<R>& c) {
  return c.size == 1 ? R(0.0) : (c.scale_out ? overlap.contention_out : overlap.contention_up);
}

/// One microbatch through one stage.
template <class R>
PhaseTime<R> stage_time(const StepInput<R>& in, const Phases<R>& phases, const StageShape& stage) {
  PhaseTime<R> out;
  for (std::size_t k = 0; k < in.network->kinds.size(); ++k) {
    const R layers(static_cast<double>(stage.layers[k]));
    if (stage.layers[k] == 0) continue;
    out.add(phases.forward[k], layers).add(phases.backward[k], layers);
  }
  if (stage.embedding) out.add(phases.embedding, R(1.0));
  if (stage.head) out.add(phases.head, R(1.0));
  return out;
}

/// All layers and both ends on one stage.
StageShape whole_model(const ModelSpec& model) {
  StageShape out;
  for (const std::uint8_t kind : model.layer_kind) ++out.layers[kind];
  out.embedding = true;
  out.head = true;
  return out;
}

template <class R>
class PhaseBuilder {
 public:
  explicit PhaseBuilder(const StepInput<R>& in)
      : in_(in), net_(*in.network), ch_(*in.channels), overlap_(*in.overlap), layout_(in.layout) {}

  Phases<R> build() {
    phase_times();
    out_.whole = stage_time(in_, out_, whole_model(*in_.model)).total();
    return std::move(out_);
  }

 private:
  R contention(const Channel<R>& c) const { return contention_of(overlap_, c); }

  /// Weights gathered (and with `gradients` scattered) for one layer under ZeRO-3.
  SecondsOf<R> fsdp_time(const LayerCost<R>& cost, bool gradients) const {
    const Precision& p = in_.workload->precision;
    const R bytes(p.weight_bytes + (gradients ? p.gradient_bytes : 0.0));
    SecondsOf<R> time = all_gather_time(ch_.shard, BytesOf<R>(cost.dense_parameters * bytes));
    if (value_of(cost.expert_parameters) > 0) {
      time += all_gather_time(ch_.expert_shard, BytesOf<R>(cost.expert_parameters * bytes));
    }
    return time;
  }

  SecondsOf<R> tp_time(const LayerCost<R>& cost, const Phase<R>& phase) const {
    SecondsOf<R> time(R(0.0));
    if (ch_.tp.size == 1) return time;
    if (value_of(phase.tp_gathers) > 0) time += phase.tp_gathers * all_gather_time(ch_.tp, cost.tp_bytes);
    if (value_of(phase.tp_reduces) > 0) time += phase.tp_reduces * all_reduce_time(ch_.tp, cost.tp_bytes);
    if (value_of(phase.etp_gathers) > 0) time += phase.etp_gathers * all_gather_time(ch_.tp, cost.etp_bytes);
    return time;
  }

  SecondsOf<R> ep_time(const Phase<R>& phase) const {
    if (ch_.ep.size == 1 || value_of(phase.ep_exchanges) <= 0) return SecondsOf<R>(R(0.0));
    return phase.ep_exchanges * all_to_all_time(ch_.ep, phase.ep_bytes / phase.ep_exchanges);
  }

  /// One layer's forward or backward with its recompute.
  PhaseTime<R> phase_time(const LayerCost<R>& cost, const Phase<R>& phase, const Phase<R>* again, bool backward,
                          std::string_view label) const {
    Work<R> work = phase.work;
    std::array<Traffic<R>, kTrafficKinds> traffic;
    traffic[kTp] = {tp_time(cost, phase), overlap_.tp, contention(ch_.tp), ch_.tp.links};
    traffic[kCp] = {phase.cp_gathers * all_gather_time(ch_.cp, cost.cp_bytes), overlap_.cp, contention(ch_.cp),
                    ch_.cp.links};
    traffic[kEp] = {ep_time(phase), overlap_.ep, contention(ch_.ep), ch_.ep.links};
    if (again != nullptr) {
      work += again->work;
      traffic[kTp].time += tp_time(cost, *again);
      traffic[kCp].time += again->cp_gathers * all_gather_time(ch_.cp, cost.cp_bytes);
      traffic[kEp].time += ep_time(*again);
    }
    if (layout_.zero == 3) {
      traffic[kFsdp] = {fsdp_time(cost, backward), overlap_.fsdp, contention(ch_.shard), ch_.shard.links};
    }
    name_traffic(traffic, label, backward);
    std::array<SecondsOf<R>, kTrafficKinds> exposed;
    PhaseTime<R> out;
    out.compute =
        named(work.compute, backward ? "backward compute" : "forward compute", "sum of its operations", label);
    out.hbm =
        named(work.hbm, backward ? "backward memory time" : "forward memory time", "sum of its operations", label);
    out.overhead = work.overhead;
    const SecondsOf<R> beside = named(out.compute + out.hbm + out.overhead, backward ? "backward work" : "forward work",
                                      "what communication may hide under", label);
    hide(traffic, beside, exposed, out.spilled);
    out.tp = named(exposed[kTp], backward ? "backward exposed tp" : "forward exposed tp", kOverlapRule, label);
    out.fsdp = named(exposed[kFsdp], backward ? "backward exposed fsdp" : "forward exposed fsdp", kOverlapRule, label);
    out.cp = named(exposed[kCp], backward ? "backward exposed cp" : "forward exposed cp", kOverlapRule, label);
    out.ep = named(exposed[kEp], backward ? "backward exposed ep" : "forward exposed ep", kOverlapRule, label);
    return out;
  }

  static void name_traffic(std::array<Traffic<R>, kTrafficKinds>& traffic, std::string_view label, bool backward) {
    static constexpr std::array<std::string_view, kTrafficKinds> kForward{
        "forward tp communication", "forward fsdp gather", "forward cp gather", "forward ep all-to-all"};
    static constexpr std::array<std::string_view, kTrafficKinds> kBackward{
        "backward tp communication", "backward fsdp gather and scatter", "backward cp gather and scatter",
        "backward ep all-to-all"};
    for (std::size_t x = 0; x < kTrafficKinds; ++x) {
      traffic[x].time = named(traffic[x].time, backward ? kBackward[x] : kForward[x],
                              "bytes x seconds per byte, or latency (book ch. 3, 5, 12)", label);
    }
  }

  void phase_times() {
    const int remat = static_cast<int>(layout_.remat);
    out_.forward.resize(net_.kinds.size());
    out_.backward.resize(net_.kinds.size());
    for (std::size_t k = 0; k < net_.kinds.size(); ++k) {
      const LayerCost<R>& cost = net_.kinds[k];
      const Phase<R>* again =
          layout_.remat == Remat::kNone ? nullptr : &cost.recompute[static_cast<std::size_t>(remat)];
      const std::string_view label = net_.labels[k];
      out_.forward[k] = phase_time(cost, cost.forward, nullptr, false, label);
      out_.backward[k] = phase_time(cost, cost.backward, again, true, label);
    }
    out_.embedding_forward = phase_time(net_.embedding, net_.embedding.forward, nullptr, false, "embedding");
    out_.embedding.add(out_.embedding_forward, R(1.0));
    out_.embedding.add(phase_time(net_.embedding, net_.embedding.backward, nullptr, true, "embedding"), R(1.0));
    const PhaseTime<R> forward = phase_time(net_.head, net_.head.forward, nullptr, false, "head");
    PhaseTime<R> head;
    head.add(forward, R(1.0));
    head.add(phase_time(net_.head, net_.head.backward, nullptr, true, "head"), R(1.0));
    const R modules(static_cast<double>(in_.model->mtp_layers));
    out_.head.add(head, R(1.0) + modules);
    out_.head_forward.add(forward, R(1.0) + modules);
    if (in_.model->mtp_layers == 0) return;
    const PhaseTime<R> module = phase_time(net_.mtp, net_.mtp.forward, nullptr, false, "mtp module");
    out_.head_forward.add(module, modules).add(out_.forward[in_.model->mtp_kind], modules);
    out_.head.add(module, modules);
    out_.head.add(phase_time(net_.mtp, net_.mtp.backward, nullptr, true, "mtp module"), modules);
    out_.head.add(out_.forward[in_.model->mtp_kind], modules);
    out_.head.add(out_.backward[in_.model->mtp_kind], modules);
  }

  const StepInput<R>& in_;
  const NetworkCost<R>& net_;
  const MeshChannels<R>& ch_;
  const OverlapRates<R>& overlap_;
  const Layout& layout_;
  Phases<R> out_;
};

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
      const double total = value_of(time.total());
      if (total <= slowest) continue;
      slowest = total;
      slowest_ = time;
      shape_ = &stage;
    }
  }

  /// [BUBBLE] While the pipeline fills and drains, a stage waits for one pass of a microbatch through all the others:
  /// (sum of stage times - slowest) / vpp. Equal stages give the textbook (pp - 1) (t_f + t_b) / vpp.
  void pipeline(StepTime<R>& out) {
    if (layout_.pp == 1) return;
    const SecondsOf<R>& all = phases_.whole;
    out.bubble = named(max(SecondsOf<R>(R(0.0)), (all - slowest_.total()) / chunks_), "pipeline bubble",
                       "(sum of stages - slowest) / vpp; arXiv:2104.04473 section 2.2");
    const SecondsOf<R> hop = send_time(ch_.pp, net_.boundary);
    const R hops = R(2.0) * microbatches_ * chunks_;
    out.pp =
        named(hops * hop * (R(1.0) - overlap_.pp) + R(2.0) * (stages_ - R(1.0)) * hop, "exposed pipeline communication",
              "2 sends per microbatch and chunk; filling and draining hide none");
  }

  /// Exposed part of a transfer that may hide under `work`, as in OVERLAP with one kind of traffic.
  SecondsOf<R> exposed(const SecondsOf<R>& time, const R& overlap, const R& contention_share,
                       const SecondsOf<R>& work) const {
    const SecondsOf<R> hidden = time * overlap;
    return time * (R(1.0) - overlap) + max(SecondsOf<R>(R(0.0)), hidden - work) + min(hidden, work) * contention_share;
  }

  /// One phase of a microbatch through a stage's layers.
  SecondsOf<R> layers_of(const StageShape& stage, const std::vector<PhaseTime<R>>& phase) const {
    SecondsOf<R> out(R(0.0));
    for (std::size_t k = 0; k < net_.kinds.size(); ++k) {
      if (stage.layers[k] > 0) out += phase[k].total() * R(static_cast<double>(stage.layers[k]));
    }
    return out;
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
    if (channel.size == 1 && experts.size == 1) return out;
    const R shards(sharded ? static_cast<double>(ch_.shard.size) : 1.0);
    const R expert_shards(sharded ? static_cast<double>(ch_.expert_shard.size) : 1.0);
    const BytesOf<R> gradients(dense * R(p.gradient_bytes) / shards);
    const BytesOf<R> expert_gradients(expert * R(p.gradient_bytes) / expert_shards);
    const SecondsOf<R> backward = layers_of(stage, phases_.backward);
    // A bound's channels have no links: which tier a placement slows the compute for is not known yet.
    const R share = channel.links == 0 ? R(0.0) : contention_of(overlap_, channel);
    if (layout_.zero == 0 || sharded) {
      out.reduce = all_reduce_time(channel, gradients) + expert_time(experts, expert_gradients, true);
      out.dp = exposed(out.reduce, overlap_.dp, share, backward);
      return out;
    }
    out.reduce = all_gather_time(channel, gradients) + expert_time(experts, expert_gradients, false);
    out.gather = all_gather_time(channel, BytesOf<R>(dense * R(p.weight_bytes))) +
                 expert_time(experts, BytesOf<R>(expert * R(p.weight_bytes)), false);
    const R scatters = layout_.zero == 2 ? microbatches_ : R(1.0);
    out.gather_exposed = exposed(out.gather, overlap_.dp, share, layers_of(stage, phases_.forward));
    out.dp = scatters * exposed(out.reduce, overlap_.dp, share, backward) + out.gather_exposed;
    return out;
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
    const R updated = named(dense_parameters(*in_.model, net_, stage) / R(ways) +
                                expert_parameters(*in_.model, net_, stage) / R(expert_ways),
                            "parameters one chip updates", "its shard of the stage");
    const Work<R> update = roofline(FlopsOf<R>(updated * R(o.update_flops)), in_.chip->vector,
                                    BytesOf<R>(updated * R(o.update_bytes)), in_.chip->hbm);
    SecondsOf<R> time = update.total();
    if (o.orthogonalizes) time += orthogonalization(updated);
    return named(time, "optimizer step", "parameters of the shard x bytes per update / HBM bandwidth");
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
  const StageShape* shape_ = nullptr;
};

}  // namespace

template <class R>
SecondsOf<R> StepTime<R>::total() const {
  return compute + hbm + tp + fsdp + dp + cp + ep + pp + bubble + optimizer + overhead;
}

template <class R>
Phases<R> phases(const StepInput<R>& in) {
  return PhaseBuilder<R>(in).build();
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

#define SCALECALC_INSTANTIATE(R)                  \
  template struct StepTime<R>;                    \
  template Phases<R> phases(const StepInput<R>&); \
  template StepTime<R> step_time(const Reader<R>&, const StepInput<R>&, const Phases<R>&);
SCALECALC_INSTANTIATE(double)
SCALECALC_INSTANTIATE(Dual)
SCALECALC_INSTANTIATE(Traced)
SCALECALC_INSTANTIATE(Interval)
#undef SCALECALC_INSTANTIATE

}  // namespace scalecalc
