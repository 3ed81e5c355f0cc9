// Time of one microbatch through a pipeline stage, from the phases of what the stage holds.
#pragma once

#include <cmath>
#include <string_view>

#include "cost/stage_parameters.h"
#include "cost/step.h"

namespace scalecalc {

inline constexpr std::string_view kOverlapRule = "OVERLAP, docs/model.md: what does not hide under the work";

/// A pass of a stage's layers of one kind: the numbered ones and, if not all are, the `kept` others.
template <class R>
void add_layers(const StepInput<R>& in, const std::vector<PhaseTime<R>>& numbered,
                const std::vector<PhaseTime<R>>& kept, const StageShape& stage, std::size_t kind, PhaseTime<R>& out) {
  const std::int32_t layers = stage.layers[kind];
  const std::int32_t first = kept.empty() ? layers : first_layers(numbered_layers(in.layout), stage, kind);
  const R& depth = in.network->depth;
  out.add(numbered[kind], R(static_cast<double>(first)) * depth);
  if (first < layers) out.add(kept[kind], R(static_cast<double>(layers - first)) * depth);
}

/// One microbatch through one stage; under DualPipe half of one through each of the two parts.
template <class R>
PhaseTime<R> stage_time(const StepInput<R>& in, const Phases<R>& phases, const StageShape& stage) {
  PhaseTime<R> out;
  for (std::size_t k = 0; k < in.network->kinds.size(); ++k) {
    if (stage.layers[k] == 0) continue;
    add_layers(in, phases.forward, phases.kept_forward, stage, k, out);
    add_layers(in, phases.backward, phases.kept_backward, stage, k, out);
  }
  if (stage.embedding) out.add(phases.embedding, R(1.0));
  if (stage.head) out.add(phases.head, R(1.0));
  if (stage.parts == 1) return out;
  return PhaseTime<R>().add(out, R(1.0 / stage.parts));
}

/// What offloading some layers adds to one microbatch's forwards through the stages of a shape, `more` being what it
/// adds to a layer of each kind.
template <class R, class More>
R offloaded_forward(const Layout& layout, const StageShape& stage, std::size_t kinds, const More& more) {
  R out(0.0);
  for (std::size_t k = 0; k < kinds; ++k) {
    if (stage.layers[k] == 0) continue;
    const double layers = offloaded_layers(layout, stage, k);
    out = out + more(k) * R(layers * static_cast<double>(stage.count) / stage.parts);
  }
  return out;
}

/// [PIECES] The collectives of one layer under ZeRO-3: weights gathered and, with `gradients`, those scattered; frozen
/// ones in the format they are kept in, and without gradients. `each` takes a channel, bytes and how many they go in.
template <class R, class Each>
void each_weight_gather(const StepInput<R>& in, const LayerCost<R>& cost, bool gradients, const Each& each) {
  const Precision& p = in.workload->precision;
  const StackRuntime& runtime = in.workload->runtime;
  const auto send = [&](const Channel<R>& channel, const R& parameters, const BytesOf<R>& frozen, double tensors) {
    const auto in_pieces = [&](const Pieces& cut, const BytesOf<R>& bytes) {
      if (value_of(bytes) <= 0 || channel.size == 1) return;
      each(channel, bytes, cut.collectives(value_of(parameters), tensors, static_cast<double>(channel.size)));
    };
    in_pieces(runtime.gathers, BytesOf<R>(parameters * R(p.weight_bytes)) + frozen);
    if (gradients) in_pieces(runtime.reductions, BytesOf<R>(parameters * R(p.reduced_bytes)));
  };
  send(in.channels->shard, cost.dense_parameters, cost.frozen, cost.tensors);
  send(in.channels->expert_shard, cost.expert_parameters, cost.frozen_experts, cost.expert_tensors);
}

template <class R>
SecondsOf<R> weight_gather_time(const StepInput<R>& in, const LayerCost<R>& cost, bool gradients) {
  SecondsOf<R> time(R(0.0));
  each_weight_gather(in, cost, gradients, [&](const Channel<R>& channel, const BytesOf<R>& bytes, double pieces) {
    time += all_gather_time(channel, bytes, pieces);
  });
  return time;
}

/// Of that time the share that may hide: where scatters wait, the gathers' alone, and none where gathers do too.
template <class R>
R weight_gather_overlap(const StepInput<R>& in, const LayerCost<R>& cost, bool gradients) {
  const StackRuntime& runtime = in.workload->runtime;
  if (!runtime.hides_gathers) return R(0.0);
  if (!gradients || runtime.hides_scatters) return in.overlap->fsdp;
  const SecondsOf<R> gathers = weight_gather_time(in, cost, false);
  const SecondsOf<R> all = weight_gather_time(in, cost, true);
  return value_of(all) > 0 ? in.overlap->fsdp * (gathers / all) : in.overlap->fsdp;
}

/// [BUBBLE] While the pipeline fills and drains, a stage waits for one pass of a microbatch through all the others:
/// (sum of stage times - its own) / vpp. Equal stages give the textbook (pp - 1) (t_f + t_b) / vpp.
template <class R>
SecondsOf<R> bubble_time(const R& vpp, const SecondsOf<R>& all_stages, const SecondsOf<R>& slowest) {
  return max(SecondsOf<R>(R(0.0)), (all_stages - slowest) / vpp);
}

/// [SPLIT] A split backward's stage waits for the forwards and input gradients of the others, and fills what it can
/// with its own weight gradients W. ZB-H1: sum over the others of (t_f + t_b - W), less min(m - 1, pp - 1) W: the last
/// one cannot start before the stage's last backward. Equal stages give (pp - 1)(t_f + t_b - 2 W), t_b being the whole
/// backward. DualPipe feeds from both ends: (pp/2 - 1)(t_f + t_b + t_b - 3 W), of which one W is the stage's own.
/// As no stage fills with more W than it has, m T + bubble never falls when any pass takes longer.
template <class R>
SecondsOf<R> split_bubble(Schedule schedule, const R& microbatches, const R& pp, const PassTime<R>& all,
                          const SecondsOf<R>& forward, const PassTime<R>& stage) {
  const SecondsOf<R> zero(R(0.0));
  if (schedule == Schedule::kDualPipe) {
    const SecondsOf<R> others = (R(2.0) * all.time - forward - R(2.0) * all.put_off) / pp;
    return max(zero, (pp / R(2.0) - R(1.0)) * (others - stage.put_off));
  }
  const SecondsOf<R> others = (all.time - all.put_off) - (stage.time - stage.put_off);
  return max(zero, others - min(microbatches - R(1.0), pp - R(1.0)) * stage.put_off);
}

/// [SCALE] What a step loses to the slowest of its hosts (or slices): a share of its work for each doubling of them.
template <class R>
SecondsOf<R> scale_loss(const StepInput<R>& in, const SecondsOf<R>& work) {
  if (value_of(in.chip->scale_loss) <= 0 || in.channels->doublings <= 0) return SecondsOf<R>(R(0.0));
  return named(work * (in.chip->scale_loss * R(in.channels->doublings)), "loss with scale",
               "[SCALE]: the slowest stage's work x scale_loss x log2(hosts or slices)");
}

/// Two sends per microbatch and chunk, of which the overlap hides its share; filling and draining hide none.
template <class R>
SecondsOf<R> exposed_sends(const StepInput<R>& in, const BytesOf<R>& boundary, const R& microbatches, const R& pp,
                           const R& vpp) {
  const SecondsOf<R> hop = send_time(in.channels->pp, boundary);
  const R hops = R(2.0) * microbatches * vpp;
  const OverlapRates<R>& overlap = *in.overlap;
  const R hidden = in.layout.schedule == Schedule::kDualPipe ? max(overlap.pp, overlap.ep_paired) : overlap.pp;
  return hops * hop * (R(1.0) - hidden) + R(2.0) * (pp - R(1.0)) * hop;
}

}  // namespace scalecalc
