// Computes the phases of a step: forward, backward, gradient reduction and update. Sources: overlap of communication
// with compute and its bound max(compute, communication): scaling book, chapters 1 and 5 (FSDP, tensor, mixed).
// Offload: Rajbhandari et al. 2021, arXiv:2104.07857 section 4.
#include <algorithm>
#include <array>

#include "base/check.h"
#include "cost/stage_time.h"

namespace scalecalc {
namespace {

template <class R>
class PhaseBuilder {
 public:
  PhaseBuilder(const StepInput<R>& in, const Phases<R>* plain, Phases<R>& out)
      : in_(in),
        net_(*in.network),
        ch_(*in.channels),
        overlap_(*in.overlap),
        layout_(in.layout),
        plain_(plain),
        out_(out) {
    check(plain == nullptr || in.layout.offload == 0, "phases are shared by layouts that offload nothing");
    const bool ring = layout_.cp_comm == CpComm::kRing;
    cp_overlap_ = ring ? overlap_.cp : overlap_.cp_gather;
    // Pieces are passed through memory that the ranks map from each other, over the links of the innermost tier alone.
    const bool pipelined = in.workload->tp_overlap == CommOverlap::kPipelined && !ch_.tp.scale_out;
    const bool waits = in.workload->tp_overlap == CommOverlap::kNone || !in.workload->runtime.hides_tensor;
    tp_overlap_ = pipelined ? overlap_.tp_pipelined : waits ? R(0.0) : overlap_.tp;
    ep_overlap_ = pairs_experts(layout_) ? overlap_.ep_paired : overlap_.ep;
  }

  void build() {
    out_.embedding = out_.head = out_.embedding_forward = out_.head_forward = {};
    out_.once = {};
    phase_times();
  }

 private:
  R contention(const Channel<R>& c) const { return contention_of(overlap_, c); }

  SecondsOf<R> tp_time(const LayerCost<R>& cost, const Phase<R>& phase) const {
    SecondsOf<R> time(R(0.0));
    if (ch_.tp.size == 1) return time;
    if (phase.tp_gathers > 0) time += R(phase.tp_gathers) * all_gather_time(ch_.tp, cost.tp_bytes);
    if (phase.tp_narrow_gathers > 0) time += R(phase.tp_narrow_gathers) * all_gather_time(ch_.tp, cost.tp_narrow_bytes);
    if (phase.tp_reduces > 0) time += R(phase.tp_reduces) * all_reduce_time(ch_.tp, cost.tp_bytes);
    if (phase.tp_inner_reduces > 0) {
      const R count(phase.tp_inner_reduces);
      time += count * all_reduce_time(ch_.tp, phase.tp_inner_bytes / count);
    }
    if (phase.etp_gathers > 0) time += R(phase.etp_gathers) * all_gather_time(ch_.tp, cost.etp_bytes);
    return time;
  }

  SecondsOf<R> ep_time(const Phase<R>& phase) const {
    if (ch_.ep.size == 1 || phase.ep_all_to_alls <= 0) return SecondsOf<R>(R(0.0));
    const R count(phase.ep_all_to_alls);
    return count * all_to_all_time(ch_.ep, phase.ep_bytes / count);
  }

  SecondsOf<R> cp_time(const LayerCost<R>& cost, const Phase<R>& phase) const {
    SecondsOf<R> time(R(0.0));
    if (ch_.cp.size == 1) return time;
    if (phase.cp_gathers > 0) time += R(phase.cp_gathers) * all_gather_time(ch_.cp, cost.cp_bytes);
    if (phase.cp_sends > 0) time += R(phase.cp_sends) * send_time(ch_.cp, cost.cp_bytes);
    if (phase.cp_all_to_alls > 0) time += R(phase.cp_all_to_alls) * all_to_all_time(ch_.cp, cost.cp_bytes);
    return time;
  }

  /// Offloaded weights come for every forward and backward, offloaded activations go in one and return in the other.
  SecondsOf<R> host_time(const LayerCost<R>& cost, Remat remat, bool in_layer) const {
    BytesOf<R> bytes(R(0.0));
    if ((layout_.offload & kOffloadWeights) != 0) {
      const bool sharded = layout_.zero == 3;
      const R ways(sharded ? static_cast<double>(ch_.shard.size) : 1.0);
      const R expert_ways(sharded ? static_cast<double>(ch_.expert_shard.size) : 1.0);
      bytes += BytesOf<R>((cost.dense_parameters / ways + cost.expert_parameters / expert_ways) *
                          R(in_.workload->precision.weight_bytes)) +
               cost.frozen / ways + cost.frozen_experts / expert_ways;
    }
    if (in_layer && (layout_.offload & kOffloadActivations) != 0) bytes += cost.saved[static_cast<std::size_t>(remat)];
    return scalecalc::host_time(*in_.chip, bytes, false);
  }

  /// One layer's forward or backward, with the recompute of `remat` in the backward.
  PhaseTime<R> phase_time(const LayerCost<R>& cost, const Phase<R>& phase, Remat remat, bool backward,
                          std::string_view label, bool in_layer = false) const {
    return phase_time(cost, phase,
                      backward && remat != Remat::kNone ? &cost.recompute[static_cast<std::size_t>(remat)] : nullptr,
                      remat, backward, label, in_layer);
  }

  PhaseTime<R> phase_time(const LayerCost<R>& cost, const Phase<R>& phase, const Phase<R>* again, Remat remat,
                          bool backward, std::string_view label, bool in_layer) const {
    Work<R> work = phase.work;
    std::array<Traffic<R>, kTrafficKinds> traffic;
    traffic[kTp] = {tp_time(cost, phase), tp_overlap_, contention(ch_.tp), ch_.tp.links};
    traffic[kCp] = {cp_time(cost, phase), cp_overlap_, contention(ch_.cp), ch_.cp.links};
    traffic[kEp] = {ep_time(phase), ep_overlap_, contention(ch_.ep), ch_.ep.links};
    if (again != nullptr) {
      work += again->work;
      traffic[kTp].time += tp_time(cost, *again);
      traffic[kCp].time += cp_time(cost, *again);
      traffic[kEp].time += ep_time(*again);
    }
    if (layout_.zero == 3) {
      traffic[kFsdp] = {weight_gather_time(in_, cost, backward), weight_gather_overlap(in_, cost, backward),
                        contention(ch_.shard), ch_.shard.links};
      wait_for_layer(phase, again, backward, label, traffic[kFsdp]);
    }
    if (phase.cp_sends > 0) {
      const SecondsOf<R> attention = again == nullptr ? phase.attention : phase.attention + again->attention;
      traffic[kCp].under = named(attention, backward ? "backward attention" : "forward attention",
                                 "what the ring's exchange may hide under", label);
    }
    if (layout_.offload != 0) {
      traffic[kHost] = {host_time(cost, remat, in_layer), overlap_.host, R(0.0), kHostLink};
    }
    const auto& names = backward ? kBackwardNames : kForwardNames;
    for (std::size_t x = 0; x < kTrafficKinds; ++x) {
      traffic[x].time =
          named(traffic[x].time, names[x].whole, "bytes x seconds per byte, or latency (book ch. 3, 5, 12)", label);
    }
    std::array<SecondsOf<R>, kTrafficKinds> exposed;
    PhaseTime<R> out;
    out.compute =
        named(work.compute, backward ? "backward compute" : "forward compute", "sum of its operations", label);
    out.hbm =
        named(work.hbm, backward ? "backward memory time" : "forward memory time", "sum of its operations", label);
    out.overhead = work.overhead;
    const SecondsOf<R> beside = named(out.compute + out.hbm + out.overhead, backward ? "backward work" : "forward work",
                                      "what communication may hide under", label);
    hide(traffic, beside, names, label, exposed, out.spilled);
    const auto shown = [&](std::size_t x) { return named(exposed[x], names[x].exposed, kOverlapRule, label); };
    out.tp = shown(kTp);
    out.fsdp = shown(kFsdp);
    out.cp = shown(kCp);
    out.ep = shown(kEp);
    if (layout_.offload != 0) out.host = shown(kHost);
    if (backward) put_off(traffic, beside, exposed, cost.weight_gradient, label, out);
    wait_for_host(cost, phase, again, backward, label, out);
    return out;
  }

  /// A loop over layers whose gathers stay in their own layer brings experts' weights under what goes before the
  /// experts and takes their gradients away under what follows: the experts' own matmuls hide neither.
  void wait_for_layer(const Phase<R>& phase, const Phase<R>* again, bool backward, std::string_view label,
                      Traffic<R>& gathers) const {
    if (!in_.workload->runtime.expert_gathers_wait || value_of(phase.experts) <= 0) return;
    SecondsOf<R> others = phase.work.total() - phase.experts;
    if (again != nullptr) others += again->work.total() - again->experts;
    gathers.under = named(others, backward ? "backward work beside experts" : "forward work beside experts",
                          "what gathers and scatters of their weights may hide under", label);
  }

  /// [HOST] The chip waits where the host has not launched what it could run: a phase takes the longer of the two. Both
  /// the whole and what is left without weight gradients do; what is put off is the difference. Where it waits,
  /// communication costs nothing: times are then the same to the last bit on every network, which the search rests on.
  void wait_for_host(const LayerCost<R>& cost, const Phase<R>& phase, const Phase<R>* again, bool backward,
                     std::string_view label, PhaseTime<R>& out) const {
    const SecondsOf<R> chip = out.total();
    const SecondsOf<R> left = chip - out.put_off;
    out.left = value_of(left);
    double launches = launches_of(cost, phase, backward);
    if (again != nullptr) launches += launches_of(cost, *again, false);
    if (launches <= 0) return;
    const SecondsOf<R> zero(R(0.0));
    const auto launching = [&](double count) { return in_.chip->host_overhead * R(count); };
    const SecondsOf<R> launch = named(launching(launches), backward ? "backward launches" : "forward launches",
                                      "kernels and collectives x host_overhead", label);
    const SecondsOf<R> alone = launching(launches - phase.weight_launches);
    out.launch = value_of(launch);
    out.launch_alone = value_of(alone);
    if (out.launch > out.left) out.put_off = max(zero, max(chip, launch) - max(left, alone));
    if (value_of(launch) > value_of(chip)) {
      for (SecondsOf<R>* exposed : {&out.tp, &out.fsdp, &out.cp, &out.ep, &out.host}) *exposed = zero;
      out.spilled = {};
    }
    out.idle =
        named(max(zero, launch - out.total()), backward ? "backward waits for the host" : "forward waits for the host",
              "[HOST], docs/model.md", label);
  }

  /// Kernels, and collectives of groups of more than one. Gathered weights are a collective each pass, their gradients
  /// another.
  double launches_of(const LayerCost<R>& cost, const Phase<R>& phase, bool backward) const {
    if (phase.launches <= 0) return 0;
    double out = phase.launches;
    if (ch_.tp.size > 1) out += phase.tp_collectives();
    if (ch_.cp.size > 1) out += phase.cp_collectives();
    if (ch_.ep.size > 1) out += phase.ep_all_to_alls;
    if (layout_.zero == 3) {
      each_weight_gather(in_, cost, backward,
                         [&](const Channel<R>&, const BytesOf<R>&, double pieces) { out += pieces; });
    }
    return out;
  }

  /// [SPLIT] A backward's work with what it exposes, less the same of its input gradients alone. Where communication
  /// outlasts the work, leaving the weight gradients out shortens nothing.
  void put_off(const std::array<Traffic<R>, kTrafficKinds>& traffic, const SecondsOf<R>& work,
               const std::array<SecondsOf<R>, kTrafficKinds>& exposed, const SecondsOf<R>& weight,
               std::string_view label, PhaseTime<R>& out) const {
    const SecondsOf<R> left = work - weight;
    std::array<SecondsOf<R>, kTrafficKinds> exposed_alone;
    std::array<double, kTrafficKinds> spilled{};
    hide(traffic, left, kInputNames, label, exposed_alone, spilled);
    out.put_off = weight;
    out.alone = value_of(left);
    for (std::size_t x = 0; x < kTrafficKinds; ++x) {
      out.put_off += exposed[x] - exposed_alone[x];
      out.alone += spilled[x];
    }
    out.put_off = named(out.put_off, "weight gradients put off", "SPLIT, docs/model.md", label);
  }

  void phase_times() {
    const std::size_t kinds = net_.kinds.size();
    const bool some = layout_.remat_layers > 0;
    const bool stay = layout_.offload_layers > 0;  // activations of the other layers, on the chip
    const Remat others = some ? Remat::kNone : layout_.remat;
    out_.forward.resize(kinds);
    out_.backward.resize(kinds);
    out_.kept_backward.resize(some || stay ? kinds : 0);
    out_.kept_forward.resize(stay ? kinds : 0);
    for (std::size_t k = 0; k < kinds; ++k) {
      const LayerCost<R>& cost = net_.kinds[k];
      const std::string_view label = (*net_.labels)[k];
      const auto pass = [&](bool backward, Remat remat, bool in_layer) {
        if (plain_ != nullptr && !backward) return plain_->forward[k];
        if (plain_ != nullptr && remat == Remat::kNone) return plain_->backward[k];
        return phase_time(cost, backward ? cost.backward : cost.forward, remat, backward, label, in_layer);
      };
      out_.forward[k] = pass(false, layout_.remat, true);
      out_.backward[k] = pass(true, layout_.remat, true);
      if (some || stay) out_.kept_backward[k] = pass(true, others, !stay);
      if (stay) out_.kept_forward[k] = pass(false, others, false);
    }
    embedding_times();
    head_times();
    out_.forward_whole = out_.embedding_forward.total() + out_.head_forward.total();
    // Where some layers are offloaded, how many is not known here: as if none were (offloaded_forward).
    std::array<SecondsOf<R>, kMaxLayerKinds> forward;
    for (std::size_t k = 0; k < kinds; ++k) {
      forward[k] = (stay ? out_.kept_forward : out_.forward)[k].total() * net_.depth;
    }
    for (const std::uint8_t kind : in_.model->layer_kind) out_.forward_whole += forward[kind];
  }

  void embedding_times() {
    const bool again = std::any_of(net_.towers.begin(), net_.towers.end(), [](const auto& t) { return t.shown; });
    if (plain_ != nullptr && !again) {
      out_.embedding_forward = plain_->embedding_forward;
      out_.embedding = plain_->embedding;
      return;
    }
    out_.embedding_forward = ends_time(net_.embedding, false, "embedding");
    PhaseTime<R> backward = ends_time(net_.embedding, true, "embedding");
    for (const TowerCost<R>& tower : net_.towers) {
      if (!tower.shown) continue;
      const LayerCost<R>& cost = tower.layer;
      out_.embedding_forward.add(phase_time(cost, cost.forward, layout_.remat, false, "tower", true), R(tower.count));
      backward.add(phase_time(cost, cost.backward, layout_.remat, true, "tower", true), R(tower.count));
    }
    out_.embedding.add(out_.embedding_forward, R(1.0)).add(backward, R(1.0));
  }

  void head_times() {
    const bool chunked = layout_.loss == LossKind::kChunked;
    typename Phases<R>::Once& once = out_.once;
    const bool modules = in_.model->mtp_layers > 0;
    const R uses(static_cast<double>(in_.model->mtp_layers));
    if (plain_ != nullptr && !chunked) {
      once = plain_->once;
    } else {
      once.head_forward = head_time(false);
      once.head_backward = head_time(true);
      if (modules && plain_ != nullptr) {
        once.module_forward = plain_->once.module_forward;
        once.module_backward = plain_->once.module_backward;
      } else if (modules) {
        once.module_forward = ends_time(net_.mtp, false, "mtp module");
        once.module_backward = ends_time(net_.mtp, true, "mtp module");
      }
    }
    out_.head_forward.add(once.head_forward, R(1.0) + uses);
    out_.head.add(once.head_forward, R(1.0) + uses).add(once.head_backward, R(1.0) + uses);
    if (modules) modules_time(uses);
  }

  /// A chunked loss launches the head's kernels for every chunk. Where forward and backward of the chunks are loops of
  /// their own, the backward makes the logits again (MaxText: utils/vocabulary_tiling.py, custom_vjp); where a chunk's
  /// backward follows its forward, nothing runs twice (torchtitan: components/loss.py, ChunkedLossWrapper).
  PhaseTime<R> head_time(bool backward) const {
    if (layout_.loss != LossKind::kChunked) return ends_time(net_.head, backward, "head");
    const auto by_chunk = [](Phase<R> phase) {
      phase.work.overhead = phase.work.overhead * R(static_cast<double>(kLossChunks));
      phase.launches *= static_cast<double>(kLossChunks);
      phase.weight_launches *= static_cast<double>(kLossChunks);
      return phase;
    };
    const Phase<R> forward = by_chunk(net_.head.forward);
    const bool again = backward && in_.workload->memory.chunks_run_again;
    return phase_time(net_.head, backward ? by_chunk(net_.head.backward) : forward, again ? &forward : nullptr,
                      Remat::kNone, backward, "head", false);
  }

  PhaseTime<R> ends_time(const LayerCost<R>& cost, bool backward, std::string_view label) const {
    return phase_time(cost, backward ? cost.backward : cost.forward, Remat::kNone, backward, label);
  }

  /// Multi-token prediction: each module's projection and its layer, beside its use of the head.
  void modules_time(const R& modules) {
    const std::size_t kind = in_.model->mtp_kind;
    PhaseTime<R> forward = out_.once.module_forward;
    const bool stay = layout_.offload_layers > 0;
    forward.add((stay ? out_.kept_forward : out_.forward)[kind], R(1.0));
    out_.head_forward.add(forward, modules);
    out_.head.add(forward, modules).add(out_.once.module_backward, modules);
    out_.head.add((stay ? out_.kept_backward : out_.backward)[kind], modules);
  }

  const StepInput<R>& in_;
  const NetworkCost<R>& net_;
  const MeshChannels<R>& ch_;
  const OverlapRates<R>& overlap_;
  const Layout& layout_;
  const Phases<R>* plain_;
  R tp_overlap_{1.0}, cp_overlap_{1.0}, ep_overlap_{1.0};
  Phases<R>& out_;
};

}  // namespace

template <class R>
Phases<R> phases(const StepInput<R>& in, const Phases<R>* plain) {
  Phases<R> out;
  PhaseBuilder<R>(in, plain, out).build();
  return out;
}

void phases_into(const StepInput<double>& in, const Phases<double>* plain, Phases<double>& out) {
  PhaseBuilder<double>(in, plain, out).build();
}

template Phases<double> phases(const StepInput<double>&, const Phases<double>*);
template Phases<Dual> phases(const StepInput<Dual>&, const Phases<Dual>*);
template Phases<Traced> phases(const StepInput<Traced>&, const Phases<Traced>*);

}  // namespace scalecalc
