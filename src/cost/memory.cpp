// Computes the memory of a layout as an out-of-memory error would count it: the peak on the fullest chip. Sources:
// ZeRO, arXiv:1910.02054 section 3 (states); Korthikanti et al. 2022, arXiv:2205.05198 section 4 (activations); the
// schedules' papers for microbatches in flight (pipeline.h).
#include <algorithm>
#include <string_view>

#include "cost/stage_memory.h"
#include "cost/stage_parameters.h"

namespace scalecalc {
namespace {

/// Layers of the multi-token prediction modules run as one more of their kind.
double modules_of(const ModelSpec& model, const StageShape& stage, std::size_t kind) {
  return stage.head && model.mtp_layers > 0 && model.mtp_kind == kind ? static_cast<double>(model.mtp_layers) : 0.0;
}

/// What the stage's own layers keep of one microbatch.
template <class R>
BytesOf<R> kept_by_layers(const StepInput<R>& in, const StageShape& stage) {
  const std::vector<LayerCost<R>>& kinds = in.network->kinds;
  const std::size_t remat = static_cast<std::size_t>(in.layout.remat);
  const R& depth = in.network->depth;
  BytesOf<R> out(R(0.0));
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    const std::int32_t treated = treated_layers(in.layout, stage, k);
    const double modules = modules_of(*in.model, stage, k);
    const double under_policy = static_cast<double>(treated) + modules;
    const double others = static_cast<double>(stage.layers[k] - treated);
    if (under_policy > 0) out += kinds[k].saved[remat] * (R(static_cast<double>(treated)) * depth + R(modules));
    if (others > 0) out += kinds[k].saved[0] * (R(others) * depth);
  }
  return out;
}

/// And the layers of towers on it, which a recipe treats whole, whatever number of the model's own it does.
template <class R>
BytesOf<R> kept_by_towers(const StepInput<R>& in, const StageShape& stage) {
  const std::size_t remat = static_cast<std::size_t>(in.layout.remat);
  BytesOf<R> out(R(0.0));
  if (!stage.embedding) return out;
  for (const TowerCost<R>& tower : in.network->towers) {
    out += tower.layer.saved[remat] * R(tower.count);
  }
  return out;
}

template <class R>
BytesOf<R> kept_per_microbatch(const StepInput<R>& in, const StageShape& stage) {
  return in.network->towers.empty() ? kept_by_layers(in, stage) : kept_by_layers(in, stage) + kept_by_towers(in, stage);
}

template <class R>
class MemoryCounter {
 public:
  explicit MemoryCounter(const StepInput<R>& in)
      : in_(in), net_(*in.network), ch_(*in.channels), layout_(in.layout), rules_(in.workload->memory) {}

  /// The stage that holds most, with what it holds.
  MemoryUse<R> fullest() const {
    return fullest([&](std::size_t, const StageShape& stage) { return whole(stage); });
  }
  /// `before`: what each holds before anything is offloaded.
  template <class Before>
  MemoryUse<R> fullest(const Before& before) const {
    MemoryUse<R> out;
    double most = -1;
    for (std::size_t s = 0; s < in_.stages->size(); ++s) {
      const StageShape& stage = (*in_.stages)[s];
      MemoryUse<R> use = rest(stage, before(s, stage));
      const double total = value_of(use.total());
      if (total <= most) continue;
      most = total;
      out = std::move(use);
    }
    return out;
  }

  MemoryUse<R> of(const StageShape& stage) const { return rest(stage, whole(stage)); }

  /// Before anything is offloaded.
  MemoryUse<R> whole(const StageShape& stage) const {
    MemoryUse<R> use = state(stage);
    activations(stage, use);
    buffers(stage, use);
    return use;
  }
  MemoryUse<R> with_activations(const StageShape& stage, MemoryUse<R> use) const {
    activations(stage, use);
    return use;
  }

  MemoryUse<R> rest(const StageShape& stage, MemoryUse<R> use) const {
    if (layout_.offload != 0) offload(stage, use);
    update(stage, use);
    allocator(use);
    use.reserve = in_.memory_reserve;
    return use;
  }

  /// Weights, gradients and optimizer state.
  MemoryUse<R> state(const StageShape& stage) const {
    const Precision& p = in_.workload->precision;
    const Optimizer& o = in_.workload->optimizer;
    const R dense = dense_parameters(*in_.model, net_, stage);
    const R expert = expert_parameters(*in_.model, net_, stage);
    const auto held = [&](double bytes, int from_zero) {
      return BytesOf<R>((dense / R(ways(from_zero)) + expert / R(expert_ways(from_zero))) * R(bytes));
    };
    const bool master = sharded_master();
    MemoryUse<R> use;
    use.weights = named(held(master ? kMasterBytes : p.weight_bytes, 3) + frozen(stage) + cached(stage), "weights",
                        "parameters per chip x bytes, divided by ZeRO-3 shards");
    use.gradients = named(held(gradient_bytes(*in_.workload), 2) + buckets(held), "gradients",
                          "parameters per chip x bytes, divided from ZeRO-2 on");
    const R twins(layout_.zero == 0 ? 1.0 : static_cast<double>(stage.parts));
    // Temporaries of an update lie where the state does, and are there with all of it.
    const double state_bytes = o.state_bytes - (master ? o.master_bytes : 0.0) + rules_.shard_update_bytes;
    use.optimizer = named(held(state_bytes, 1) / twins, "optimizer state",
                          "parameters per chip x bytes, divided from ZeRO-1 on (arXiv:1910.02054)");
    return use;
  }

  /// Beside gradients what data ranks sum them in.
  template <class Held>
  BytesOf<R> buckets(const Held& held) const {
    if (rules_.gradient_buckets.empty() || layout_.zero > 0 || ch_.data.size == 1) return BytesOf<R>(R(0.0));
    const auto by = rules_.gradient_buckets.find(in_.workload->precision.name);
    return by == rules_.gradient_buckets.end() ? BytesOf<R>(R(0.0)) : held(by->second, 2);
  }

  /// Weights that do not train have nothing but themselves to keep.
  BytesOf<R> frozen(const StageShape& stage) const {
    if (!in_.workload->fine_tune) return BytesOf<R>(R(0.0));
    return named(frozen_bytes(*in_.model, net_, stage) / R(ways(3)) +
                     frozen_expert_bytes(*in_.model, net_, stage) / R(expert_ways(3)),
                 "frozen weights", "in the base's format, divided by ZeRO-3 shards");
  }

  /// Matmuls of a stack that casts weights once a step read copies of them.
  BytesOf<R> cached(const StageShape& stage) const {
    if (rules_.cached_weights.empty() || layout_.zero == 3) return BytesOf<R>(R(0.0));
    const auto by = rules_.cached_weights.find(in_.workload->precision.name);
    if (by == rules_.cached_weights.end()) return BytesOf<R>(R(0.0));
    const R parameters = sum_of_layers(*in_.model, net_, stage, &LayerCost<R>::dense_parameters) +
                         sum_of_layers(*in_.model, net_, stage, &LayerCost<R>::expert_parameters);
    return named(BytesOf<R>(parameters * R(by->second)), "cached weights", "copies that the layers' matmuls read");
  }

  void activations(const StageShape& stage, MemoryUse<R>& use) const {
    use.activations = activation_bytes(in_, stage, in_flight_of(stage));
    if (!stage.head) return;
    const BytesOf<R>& logits = net_.logits[static_cast<std::size_t>(layout_.loss)];
    const R modules(static_cast<double>(in_.model->mtp_layers));
    use.logits = named(logits + net_.head.saved[0] * (R(1.0) + modules) + net_.mtp.saved[0] * modules,
                       "logits and loss", logits_rule(layout_.loss));
  }

  BytesOf<R> waiting(const StageShape& stage) const {
    if (layout_.pp == 1 || rules_.update_bytes <= 0) return BytesOf<R>(R(0.0));
    const R parameters = dense_parameters(*in_.model, net_, stage) + expert_parameters(*in_.model, net_, stage);
    return BytesOf<R>(parameters * R(rules_.update_bytes));
  }

  /// What is there only between the last backward and the update, beyond the activations that are gone by then.
  void update(const StageShape& stage, MemoryUse<R>& use) const {
    const BytesOf<R> bytes = waiting(stage);
    if (value_of(bytes) <= 0) return;
    use.update = named(max(BytesOf<R>(R(0.0)), bytes - (use.activations + use.logits + use.buffers)), "update",
                       "gradients on their way to the update, beyond what activations had");
  }

  /// What the allocator cannot use: a part of all that comes and goes.
  void allocator(MemoryUse<R>& use) const {
    if (rules_.fragmentation.value <= 0) return;
    use.allocator = named((use.activations + use.logits + use.buffers + use.update) * R(rules_.fragmentation.value),
                          "allocator", "fragmentation of activations, logits and buffers");
  }

  /// ZeRO-3: gathered weights of the running layer and the next (prefetch) and the whole gradient of one. ZeRO-2: that
  /// gradient alone. Packed weights: the largest matrix unpacked. Experts: dispatched tokens. Context ranks: the widest
  /// layer's gathered keys and values.
  void buffers(const StageShape& stage, MemoryUse<R>& use) const {
    const Precision& p = in_.workload->precision;
    const bool sharded = layout_.zero == 3 && (ch_.shard.size > 1 || ch_.expert_shard.size > 1);
    const bool scattered = layout_.zero == 2 && ch_.data.size > 1;
    const double reduced = sharded || scattered ? rules_.reduced_layers * p.gradient_bytes : 0.0;
    const R layer_bytes((sharded ? rules_.gathered_layers * p.weight_bytes : 0.0) + reduced);
    const R end_bytes((sharded ? std::min(1.0, rules_.gathered_layers) * p.weight_bytes : 0.0) + reduced);
    BytesOf<R> whole(R(0.0));
    BytesOf<R> unpacked(R(0.0));
    BytesOf<R> dispatched(R(0.0));
    BytesOf<R> context(R(0.0));
    for (std::size_t k = 0; k < net_.kinds.size(); ++k) {
      if (stage.layers[k] == 0) continue;
      const R parameters = net_.kinds[k].dense_parameters + net_.kinds[k].expert_parameters;
      const R frozen_layers(sharded ? rules_.gathered_layers : 0.0);
      whole = max(whole, BytesOf<R>(parameters * layer_bytes) +
                             (net_.kinds[k].frozen + net_.kinds[k].frozen_experts) * frozen_layers);
      unpacked = max(unpacked, net_.kinds[k].unpacked);
      dispatched = max(dispatched, net_.kinds[k].forward.ep_bytes);
      context = max(context, net_.kinds[k].cp_buffer);
    }
    const R frozen_end(sharded ? std::min(1.0, rules_.gathered_layers) : 0.0);
    const auto end = [&](const LayerCost<R>& cost) {
      whole = max(whole, BytesOf<R>(cost.dense_parameters * end_bytes) + cost.frozen * frozen_end);
    };
    if (stage.embedding) {
      end(net_.embedding);
      for (const TowerCost<R>& tower : net_.towers) {
        if (!tower.shown) continue;
        end(tower.layer);
        context = max(context, tower.layer.cp_buffer);
      }
    }
    if (stage.head) end(net_.head);
    // Two microbatches' tokens are on their way at once.
    if (pairs_experts(layout_)) dispatched += dispatched;
    use.buffers = named(
        whole + unpacked + dispatched + context, "buffers",
        "whole layers while they are gathered or reduced (ZeRO 2 and 3), unpacked weights, tokens on their way to "
        "experts, keys and values of other context ranks");
  }

  /// What leaves the chip of a stage's activations where all of them are offloaded.
  BytesOf<R> activations_away(const StageShape& stage) const {
    return kept_per_microbatch(in_, stage) * in_flight_of(stage) - on_their_way(stage, true);
  }
  /// And of its weights and optimizer state, as a share.
  R state_away(const StageShape& stage) const { return R(1.0) - two_layers(stage); }

 private:
  /// Ranks that divide what ZeRO divides from this stage on.
  double ways(int from_zero) const {
    return layout_.zero < from_zero ? 1.0
                                    : static_cast<double>(layout_.shards_in_groups() ? ch_.shard.size : ch_.data.size);
  }
  double expert_ways(int from_zero) const {
    return layout_.zero < from_zero
               ? 1.0
               : static_cast<double>(layout_.shards_in_groups() ? ch_.expert_shard.size : ch_.expert_data.size);
  }

  /// Moves to the host what is kept there. On the chip remain two layers' worth on their way: weights that FSDP does
  /// not gather anyway, the activations of one microbatch, the state of the widest layer's share.
  void offload(const StageShape& stage, MemoryUse<R>& use) const {
    const R two = two_layers(stage);
    const R flight = in_flight_of(stage);
    static constexpr std::string_view kRule = "two layers' worth on its way; the rest with the host (arXiv:2104.07857)";
    const auto move = [&](BytesOf<R>& part, std::string_view name) {
      const BytesOf<R> whole = part;
      part = named(part * two, name, kRule);
      use.host += whole;
    };
    if ((layout_.offload & kOffloadOptimizer) != 0) move(use.optimizer, "optimizer state on the chip");
    if ((layout_.offload & kOffloadWeights) != 0) move(use.weights, "weights on the chip");
    if ((layout_.offload & kOffloadActivations) != 0) {
      const bool all = layout_.offload_layers == 0;
      const BytesOf<R> kept = all ? kept_per_microbatch(in_, stage) : offloaded_per_microbatch(stage);
      use.host += kept * flight;
      use.activations =
          named(use.activations - kept * flight + on_their_way(stage, all), "activations on the chip", kRule);
    }
  }

  /// As a share of the stage.
  R two_layers(const StageShape& stage) const {
    return min(R(1.0), R(2.0) / (R(static_cast<double>(std::max(1, layers_of(stage)))) * net_.depth));
  }

  /// Of one microbatch what two layers keep, of the model's own that are offloaded or of a tower's.
  BytesOf<R> on_their_way(const StageShape& stage, bool all) const {
    const R share =
        all ? two_layers(stage) : min(R(1.0), R(2.0) / (R(static_cast<double>(layers_of(stage, true))) * net_.depth));
    BytesOf<R> out = (all ? kept_by_layers(in_, stage) : offloaded_by_layers(stage)) * share;
    if (!stage.embedding) return out;
    for (const TowerCost<R>& tower : net_.towers) {
      const double two = std::min(2.0, tower.count);
      out = max(out, tower.layer.saved[static_cast<std::size_t>(layout_.remat)] * R(two));
    }
    return out;
  }

  /// What the layers keep that offload_layers counts; all are under one remat policy.
  BytesOf<R> offloaded_per_microbatch(const StageShape& stage) const {
    return net_.towers.empty() ? offloaded_by_layers(stage) : offloaded_by_layers(stage) + kept_by_towers(in_, stage);
  }

  BytesOf<R> offloaded_by_layers(const StageShape& stage) const {
    BytesOf<R> out(R(0.0));
    for (std::size_t k = 0; k < net_.kinds.size(); ++k) {
      const std::int32_t layers = offloaded_layers(layout_, stage, k);
      if (layers == 0) continue;
      out +=
          net_.kinds[k].saved[static_cast<std::size_t>(layout_.remat)] * (R(static_cast<double>(layers)) * net_.depth);
    }
    return out;
  }

  static constexpr std::string_view logits_rule(LossKind loss) {
    return loss == LossKind::kChunked ? "LOSS, docs/model.md: one chunk's logits, and the head's input gradient in fp32"
           : loss == LossKind::kFused ? "LOSS, docs/model.md: 16-bit logits and gradient"
                                      : "tokens x vocab / tp x bytes: logits, fp32 softmax, gradient";
  }

  bool sharded_master() const { return rules_.sharded_master && layout_.zero == 3; }

  std::int32_t layers_of(const StageShape& stage, bool offloaded = false) const {
    std::int32_t out = 0;
    for (std::size_t k = 0; k < stage.layers.size(); ++k) {
      out += offloaded ? offloaded_layers(layout_, stage, k) : stage.layers[k];
    }
    return out;
  }

  /// Microbatches of the whole stage, whose parts under DualPipe see half of them each.
  R in_flight_of(const StageShape& stage) const {
    return R(in_flight(layout_.schedule, layout_.pp, layout_.vpp, stage.first, layout_.grad_accum) /
             static_cast<double>(stage.parts));
  }

  const StepInput<R>& in_;
  const NetworkCost<R>& net_;
  const MeshChannels<R>& ch_;
  const Layout& layout_;
  const StackMemory& rules_;
};

}  // namespace

template <class R>
BytesOf<R> activation_bytes(const StepInput<R>& in, const StageShape& stage, const R& in_flight) {
  const std::vector<LayerCost<R>>& kinds = in.network->kinds;
  const std::size_t remat = static_cast<std::size_t>(in.layout.remat);
  BytesOf<R> recomputed(R(0.0));
  BytesOf<R> beside(R(0.0));
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    if (stage.layers[k] + modules_of(*in.model, stage, k) <= 0) continue;
    // While one layer is computed again its tensors are all there.
    recomputed = max(recomputed, kinds[k].saved[0] - kinds[k].saved[remat] + kinds[k].workspace);
    beside = max(beside, kinds[k].saved[0]);
  }
  if (stage.embedding) {
    for (const TowerCost<R>& tower : in.network->towers) {
      const LayerCost<R>& layer = tower.layer;
      recomputed = max(recomputed, layer.saved[0] - layer.saved[remat] + layer.workspace);
    }
  }
  // A pair's forward fills a layer while its backward empties another: what the stage keeps is one layer more.
  if (pairs_experts(in.layout)) recomputed += beside;
  const double share = in.workload->memory.layer_share;
  if (share < 1) recomputed = recomputed * R(share);
  return named(kept_per_microbatch(in, stage) * in_flight + recomputed, "activations",
               "tensors kept x microbatches in flight, and one layer's working set (arXiv:2205.05198)");
}

template <class R>
BytesOf<R> MemoryUse<R>::total() const {
  return weights + gradients + optimizer + activations + logits + buffers + update + allocator + reserve;
}

bool fits(const HardwareSpec& hw, const MemoryUse<double>& memory, double usable) {
  return !(usable * hw.hbm_capacity.value() < memory.total().value()) && !(hw.host_memory() < memory.host);
}

MemoryVerdict memory_verdict(const HardwareSpec& hw, const StackMemory& rules, const MemoryUse<double>& memory) {
  if (!fits(hw, memory)) return MemoryVerdict::kDoesNotFit;
  return hw.hbm_capacity * usable_share(rules) < memory.total() ? MemoryVerdict::kTight : MemoryVerdict::kFits;
}

template <class R>
MemoryUse<R> memory_use(const StepInput<R>& in) {
  return MemoryCounter<R>(in).fullest();
}

MemoryUse<double> memory_use(const StepInput<double>& in, const std::vector<MemoryUse<double>>& before_offload) {
  return MemoryCounter<double>(in).fullest([&](std::size_t s, const StageShape&) { return before_offload[s]; });
}

std::vector<MemoryUse<double>> memory_of_state(const StepInput<double>& in) {
  std::vector<MemoryUse<double>> out;
  out.reserve(in.stages->size());
  memory_of_state(in, out);
  return out;
}

void memory_of_state(const StepInput<double>& in, std::vector<MemoryUse<double>>& out) {
  const MemoryCounter<double> counter(in);
  for (const StageShape& stage : *in.stages) {
    out.push_back(counter.state(stage));
    counter.buffers(stage, out.back());
  }
}

MemoryUse<double> memory_use_on(const StepInput<double>& in, std::span<const MemoryUse<double>> states) {
  const MemoryCounter<double> counter(in);
  return counter.fullest(
      [&](std::size_t s, const StageShape& stage) { return counter.with_activations(stage, states[s]); });
}

std::vector<MemoryUse<double>> memory_before_offload(const StepInput<double>& in,
                                                     std::span<const MemoryUse<double>> states) {
  const MemoryCounter<double> counter(in);
  std::vector<MemoryUse<double>> out;
  out.reserve(states.size());
  for (std::size_t s = 0; s < states.size(); ++s) {
    out.push_back(counter.with_activations((*in.stages)[s], states[s]));
  }
  return out;
}

std::vector<MemoryUse<double>> memory_by_stage(const StepInput<double>& in, const std::vector<StageShape>& stages) {
  const MemoryCounter<double> counter(in);
  std::vector<MemoryUse<double>> out;
  out.reserve(stages.size());
  for (const StageShape& stage : stages) out.push_back(counter.of(stage));
  return out;
}

std::optional<MemoryUse<double>> memory_of_layout(const ModelSpec& model, const HardwareSpec& hw,
                                                  const Efficiency& efficiency, const Workload& workload,
                                                  const Layout& layout) {
  const Reader<double> reader;
  const std::vector<StageShape> stages = partition(model, layout, workload.runtime.stages);
  if (stages.empty()) return std::nullopt;
  const ChipRates<double> chip = read_chip(reader, hw, efficiency, workload.precision.high);
  const NetworkCost<double> network =
      network_cost(reader, model, read_model(reader, model, workload.fine_tune, workload.expert_capacity), chip,
                   workload, inner_of(layout));
  const std::int64_t sharing = (layout.etp == 1 ? layout.tp : 1) * layout.cp * layout.fsdp;  // ranks experts fold over
  MeshChannels<double> channels;
  channels.tp.size = layout.tp;
  channels.cp.size = layout.cp;
  channels.pp.size = layout.pp;
  channels.ep.size = layout.ep;
  channels.shard.size = layout.cp * layout.fsdp;
  channels.replicate.size = channels.expert_replicate.size = layout.dp;
  channels.data.size = channels.shard.size * layout.dp;
  channels.expert_shard.size = sharing / layout.ep;
  channels.expert_data.size = sharing * layout.dp / layout.ep;
  return memory_use(StepInput<double>{.model = &model,
                                      .workload = &workload,
                                      .network = &network,
                                      .channels = &channels,
                                      .chip = &chip,
                                      .stages = &stages,
                                      .memory_reserve = Bytes(efficiency.memory_reserve.value),
                                      .layout = layout});
}

StageBytes state_bytes(const StepInput<double>& in, const StageShape& stage, const MemoryUse<double>& use) {
  const MemoryCounter<double> counter(in);
  StageBytes out{.state = (use.weights + use.gradients + use.optimizer).value(), .buffers = use.buffers.value()};
  out.weights_away = use.weights.value() * counter.state_away(stage);
  out.optimizer_away = use.optimizer.value() * counter.state_away(stage);
  out.waiting = counter.waiting(stage).value();
  out.fragmentation = in.workload->memory.fragmentation.value;
  return out;
}

MemoryUse<double> state_of(const StepInput<double>& in, const StageShape& stage) {
  return MemoryCounter<double>(in).state(stage);
}

StageBytes pass_bytes(const StepInput<double>& in, const StageShape& stage) {
  MemoryUse<double> use;
  const MemoryCounter<double> counter(in);
  counter.activations(stage, use);
  return {.activations = use.activations.value(),
          .activations_away = counter.activations_away(stage).value(),
          .logits = use.logits.value()};
}

#define SCALECALC_INSTANTIATE(R)                         \
  template struct MemoryUse<R>;                          \
  template MemoryUse<R> memory_use(const StepInput<R>&); \
  template BytesOf<R> activation_bytes(const StepInput<R>&, const StageShape&, const R&);
SCALECALC_INSTANTIATE(double)
SCALECALC_INSTANTIATE(Dual)
SCALECALC_INSTANTIATE(Traced)
#undef SCALECALC_INSTANTIATE

}  // namespace scalecalc
