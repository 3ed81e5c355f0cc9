// What follows a stage's last backward: its gradients are reduced, its weights updated and gathered.
// Sources: ZeRO stages: Rajbhandari et al. 2020, arXiv:1910.02054 section 7.
#pragma once

#include "cost/stage_time.h"

namespace scalecalc {

/// The ends of a step's stages. `dense` and `expert` are the stage's parameters per chip, `layers(backward)` the time
/// of one microbatch's forward or backward through its layers.
template <class R>
class StageEnds {
 public:
  /// Keeps references to `in` and what it points to.
  StageEnds(const StepInput<R>& in, const R& microbatches)
      : in_(in), ch_(*in.channels), overlap_(*in.overlap), layout_(in.layout), microbatches_(microbatches) {
    const bool hides = in.workload->hides_gradients();
    hides_ = hides ? in.overlap->dp : R(0.0);
    chunks_ = hides ? layout_.vpp : 1;
  }

  /// Gradients hide under the last microbatch's backward, updated weights under the next step's first forward.
  template <class Layers>
  StageEnd<R> data_parallel(const StageShape& stage, const R& dense, const R& expert, const Layers& layers,
                            std::string_view label = "") const {
    StageEnd<R> out;
    const Precision& p = in_.workload->precision;
    const bool sharded = layout_.zero == 3;
    const bool grouped = !sharded && layout_.shards_in_groups();
    const Channel<R>& channel = sharded ? ch_.replicate : grouped ? ch_.shard : ch_.data;
    const Channel<R>& experts = sharded ? ch_.expert_replicate : grouped ? ch_.expert_shard : ch_.expert_data;
    out.reduce = out.dp = twin_time(stage, dense, expert);
    if (channel.size == 1 && experts.size == 1) return out;
    const R shards(sharded ? static_cast<double>(ch_.shard.size) : 1.0);
    const R expert_shards(sharded ? static_cast<double>(ch_.expert_shard.size) : 1.0);
    const BytesOf<R> gradients(dense * R(p.reduced_bytes) / shards);
    const BytesOf<R> expert_gradients(expert * R(p.reduced_bytes) / expert_shards);
    const Pieces& buckets = in_.workload->runtime.reductions;
    const double reductions = pieces(buckets, dense / shards, stage, &LayerCost<R>::tensors, channel);
    const double expert_reductions =
        pieces(buckets, expert / expert_shards, stage, &LayerCost<R>::expert_tensors, experts);
    const SecondsOf<R> backward = named(layers(true), "backward of a microbatch", kPass, label);
    // A bound's channels have no links: which tier a placement slows the compute for is not known yet.
    const R share = channel.links == 0 ? R(0.0) : contention_of(overlap_, channel);
    if (layout_.zero == 0 || sharded) {
      const SecondsOf<R> reduce = named(all_reduce_time(channel, gradients, reductions) +
                                            expert_time(experts, expert_gradients, true, expert_reductions),
                                        "gradients' all-reduce", kWhole, label);
      out.reduce += reduce;
      out.dp += exposed(reduce, chunks_, share, backward, kGradients, label);
      return out;
    }
    SecondsOf<R> scatter(R(0.0));
    if (in_.workload->runtime.reduces_whole && layout_.zero == 1) {
      scatter = named(all_reduce_time(ch_.data, gradients, reductions) +
                          expert_time(ch_.expert_data, expert_gradients, true, expert_reductions),
                      "gradients' all-reduce", kWhole, label);
    } else {
      scatter = named(all_gather_time(channel, gradients, reductions) +
                          expert_time(experts, expert_gradients, false, expert_reductions),
                      "gradients' reduce-scatter", kWhole, label);
      if (grouped) scatter = named(scatter + between_groups(gradients, expert_gradients), kReduced, kWhole, label);
    }
    out.reduce += scatter;
    const Pieces& updates = in_.workload->runtime.updates;
    out.gather = named(all_gather_time(channel, BytesOf<R>(dense * R(p.weight_bytes)),
                                       pieces(updates, dense, stage, &LayerCost<R>::tensors, channel)) +
                           expert_time(experts, BytesOf<R>(expert * R(p.weight_bytes)), false,
                                       pieces(updates, expert, stage, &LayerCost<R>::expert_tensors, experts)),
                       "weights' all-gather", kWhole, label);
    const R scatters = layout_.zero == 2 ? microbatches_ : R(1.0);
    // Owners that send whole tensors one after the other are waited for before the next forward.
    out.gather_exposed = updates.by_rank
                             ? out.gather
                             : exposed(out.gather, chunks_, share,
                                       named(layers(false), "forward of a microbatch", kPass, label), kWeights, label);
    // ZeRO-2 scatters every microbatch, so none waits for the groups that follow.
    const std::int64_t chunks = layout_.zero == 2 ? 1 : chunks_;
    out.dp += scatters * exposed(scatter, chunks, share, backward, kGradients, label) + out.gather_exposed;
    return out;
  }

  /// Each chip updates its shard: memory traffic against vector work, as any operation. [PASSES] Beside it lie the
  /// kernels of their own that copy gradients into buckets and back, and add those of a microbatch to the others'.
  SecondsOf<R> optimizer(const StageShape& stage, const R& dense, const R& expert, std::string_view label = "") const {
    const Optimizer& o = in_.workload->optimizer;
    const StackRuntime& runtime = in_.workload->runtime;
    const double ways =
        layout_.zero == 0 ? 1.0 : static_cast<double>(layout_.shards_in_groups() ? ch_.shard.size : ch_.data.size);
    const double expert_ways =
        layout_.zero == 0
            ? 1.0
            : static_cast<double>(layout_.shards_in_groups() ? ch_.expert_shard.size : ch_.expert_data.size);
    const double twins = layout_.zero == 0 ? 1.0 : static_cast<double>(stage.parts);
    const R updated = named(dense / R(ways * twins) + expert / R(expert_ways * twins), "parameters one chip updates",
                            "its shard of the stage", label);
    const Work<R> update =
        roofline(FlopsOf<R>(updated * R(o.update_flops)), in_.chip->vector,
                 BytesOf<R>(updated * R(std::max(o.update_bytes, runtime.update_traffic))), in_.chip->hbm);
    SecondsOf<R> time = update.total();
    const R passes = R(ch_.data.size > 1 ? runtime.bucket_traffic : 0.0) +
                     R(runtime.accumulation_traffic) * (microbatches_ - R(1.0));
    if (value_of(passes) > 0) {
      time += named(BytesOf<R>((dense + expert) * passes) / in_.chip->hbm, "gradients copied and added up",
                    "[PASSES], docs/model.md", label);
    }
    if (o.orthogonalizes) time += orthogonalization(stage, ways * twins, expert_ways * twins);
    if (layout_.offload != 0) time = from_host(updated, time);
    return named(time, "optimizer step", "parameters of the shard x bytes per update / HBM bandwidth", label);
  }

  /// A tied matrix lies on the first and on the last stage: when both are through, at the end of the pipeline, they
  /// exchange its gradients, and each adds the other's to its own (Megatron-LM,
  /// core/distributed/finalize_model_grads.py).
  SecondsOf<R> tied_time() const {
    const R& tied = in_.network->head.tied_parameters;
    const bool apart = layout_.pp > 1 && in_.stages->front().parts == 1;
    if (!apart || value_of(tied) <= 0) return SecondsOf<R>(R(0.0));
    const double ways = layout_.zero < 2 ? 1.0 : static_cast<double>((layout_.zero == 3 ? ch_.shard : ch_.data).size);
    return named(send_time(ch_.pp, BytesOf<R>(tied * R(in_.workload->precision.reduced_bytes / ways))),
                 "tied embedding's gradients", "exchanged by the first and the last stage");
  }

 private:
  static constexpr std::string_view kWhole = "bytes x seconds per byte, and latency";
  static constexpr std::string_view kHiding = "OVERLAP, docs/model.md, with one kind of traffic";
  static constexpr std::string_view kReduced = "gradients' reduce-scatter, and all-reduce between groups";
  static constexpr std::string_view kPass = "through the layers of the stage";

  /// What an explanation calls the parts of a transfer.
  struct Names {
    std::string_view wait, never, may, beyond, slowed, exposed;
  };
  static constexpr Names kGradients{"time for gradients to hide under", "gradients that never hide",
                                    "gradients that may hide",          "gradients beyond the work",
                                    "work slowed by gradients",         "exposed gradients"};
  static constexpr Names kWeights{"time for weights to hide under", "weights that never hide", "weights that may hide",
                                  "weights beyond the work",        "work slowed by weights",  "exposed weights"};

  /// Exposed part of a transfer once a step that may hide under `work`, one microbatch's pass through the stage, as in
  /// OVERLAP with one kind of traffic. Of interleaved chunks each is done with its last group of microbatches a group
  /// before the next: all but the last hide under the groups that follow.
  SecondsOf<R> exposed(const SecondsOf<R>& time, std::int64_t parts, const R& contention_share,
                       const SecondsOf<R>& work, const Names& names, std::string_view label) const {
    const R chunks(static_cast<double>(parts));
    const double group = std::min(static_cast<double>(layout_.pp), value_of(microbatches_));
    const SecondsOf<R> own = work / chunks;
    const SecondsOf<R> wait = named(work * ((chunks - R(1.0)) / chunks * R(group)) + own, names.wait,
                                    "the work that follows its first chunk", label);
    const SecondsOf<R> shown = named(time / chunks * (R(1.0) - hides_), names.never, kHiding, label);
    const SecondsOf<R> hidden = named(time - shown, names.may, kHiding, label);
    const SecondsOf<R> late = max(time / chunks * hides_ - own, hidden - wait);
    const SecondsOf<R> over = named(max(SecondsOf<R>(R(0.0)), late), names.beyond, kHiding, label);
    const SecondsOf<R> slowed = named(min(hidden, wait) * contention_share, names.slowed, kHiding, label);
    return named(shown + over + slowed, names.exposed, kHiding, label);
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
    const R bytes(sharded ? (p.reduced_bytes + p.weight_bytes) / 2 : p.reduced_bytes);
    const BytesOf<R> exchanged((dense / ways + expert / expert_ways) * bytes);
    return max(send_time(ch_.pp, exchanged), all_to_all_time(ch_.pp, exchanged));
  }

  /// Each rank of a group has summed its shard of the gradients; the copies of it in other groups are summed too.
  SecondsOf<R> between_groups(const BytesOf<R>& gradients, const BytesOf<R>& expert_gradients) const {
    const R ways(static_cast<double>(ch_.shard.size));
    const R expert_ways(static_cast<double>(ch_.expert_shard.size));
    return all_reduce_time(ch_.replicate, gradients / ways) +
           expert_time(ch_.expert_replicate, expert_gradients / expert_ways, true);
  }

  SecondsOf<R> expert_time(const Channel<R>& channel, const BytesOf<R>& bytes, bool reduce, double pieces = 1) const {
    if (value_of(bytes) <= 0) return SecondsOf<R>(R(0.0));
    return reduce ? all_reduce_time(channel, bytes, pieces) : all_gather_time(channel, bytes, pieces);
  }

  /// [PIECES] Collectives that move them. Where nothing hides them they go at once.
  double pieces(const Pieces& cut, const R& parameters, const StageShape& stage, double LayerCost<R>::*tensors,
                const Channel<R>& channel) const {
    if (!in_.workload->hides_gradients()) return 1;
    return cut.collectives(value_of(parameters), tensors_of(*in_.model, *in_.network, stage, tensors),
                           static_cast<double>(channel.size));
  }

  /// Offloaded state passes through the chip: it is read and written over the host's link, which works both ways at
  /// once, while the chip updates. New offloaded weights go the same way.
  SecondsOf<R> from_host(const R& updated, const SecondsOf<R>& update) const {
    const bool state = (layout_.offload & kOffloadOptimizer) != 0;
    const bool weights = (layout_.offload & kOffloadWeights) != 0;
    const R bytes((state ? in_.workload->optimizer.state_bytes : 0.0) +
                  (weights ? in_.workload->precision.weight_bytes : 0.0));
    return max(update, host_time(*in_.chip, BytesOf<R>(updated * bytes), true));
  }

  SecondsOf<R> orthogonalization(const StageShape& stage, double ways, double expert_ways) const {
    const NetworkCost<R>& net = *in_.network;
    FlopsOf<R> dense = sum_of_layers(*in_.model, net, stage, &LayerCost<R>::orthogonal);
    if (stage.embedding) {
      for (const TowerCost<R>& tower : net.towers) dense += tower.layer.orthogonal * R(tower.count);
    }
    if (stage.head) dense += net.mtp.orthogonal * R(static_cast<double>(in_.model->mtp_layers));
    const FlopsOf<R> flops = named(
        dense / R(ways) + sum_of_layers(*in_.model, net, stage, &LayerCost<R>::orthogonal_experts) / R(expert_ways),
        "FLOPs of orthogonalization", "Muon: 5 (4 m + 2 m^2 / n) of each element (arXiv:2502.16982 section 2)");
    return flops / in_.chip->matmul[static_cast<std::size_t>(in_.workload->precision.high)];
  }

  const StepInput<R>& in_;
  const MeshChannels<R>& ch_;
  const OverlapRates<R>& overlap_;
  const Layout& layout_;
  R microbatches_;
  R hides_{1.0};             ///< share of the reduction and the gather that may hide
  std::int64_t chunks_ = 1;  ///< that communicate one after another
};

}  // namespace scalecalc
