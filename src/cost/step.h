// One training step of one plan: exposed time by cause (the causes sum to the step exactly) and memory on the fullest
// chip. Assembled from the layer costs, the channels of the placed groups and the pipeline; one text, three readings.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "cost/layer_cost.h"
#include "cost/mesh.h"
#include "cost/overlap.h"
#include "cost/pipeline.h"

namespace scalecalc {

template <class R>
struct StepTime {
  SecondsOf<R> compute{R(0.0)}, hbm{R(0.0)}, tp{R(0.0)}, fsdp{R(0.0)}, dp{R(0.0)}, cp{R(0.0)}, ep{R(0.0)}, pp{R(0.0)},
      host{R(0.0)}, bubble{R(0.0)}, optimizer{R(0.0)}, overhead{R(0.0)};
  /// Of tp, fsdp, cp, ep, host: seconds that outlasted the work they could hide under. Above zero the step is
  /// communication-bound in the roofline's sense (book, chapter 5).
  std::array<double, kTrafficKinds> spilled{};
  SecondsOf<R> total() const;
};

template <class R>
struct MemoryUse {
  BytesOf<R> weights{R(0.0)}, gradients{R(0.0)}, optimizer{R(0.0)}, activations{R(0.0)}, logits{R(0.0)},
      buffers{R(0.0)}, update{R(0.0)}, allocator{R(0.0)}, reserve{R(0.0)};
  BytesOf<R> host{R(0.0)};   ///< offloaded, per chip, in the host's memory
  BytesOf<R> total() const;  ///< in the chip's memory
};

/// Whether this share of the chip's memory holds it, and the host the chip's part of what is offloaded.
bool fits(const HardwareSpec& hw, const MemoryUse<double>& memory, double usable = 1);

enum class MemoryVerdict : std::uint8_t {
  kFits,   ///< even where more is needed than predicted, by the stack's error
  kTight,  ///< as predicted, but not where it errs so: may not fit
  kDoesNotFit,
};
inline constexpr std::array<std::string_view, 3> kMemoryVerdictNames{"fits", "tight", "does_not_fit"};
MemoryVerdict memory_verdict(const HardwareSpec& hw, const StackMemory& rules, const MemoryUse<double>& memory);

/// Everything about a plan that is not in its layer costs.
template <class R>
struct StepInput {
  const ModelSpec* model = nullptr;
  const Workload* workload = nullptr;
  const NetworkCost<R>* network = nullptr;
  const MeshChannels<R>* channels = nullptr;
  const OverlapRates<R>* overlap = nullptr;
  const ChipRates<R>* chip = nullptr;
  const std::vector<StageShape>* stages = nullptr;
  BytesOf<R> memory_reserve;
  Layout layout;
};

/// Forward and backward of one microbatch through each thing a stage can hold, with what communication it exposes. It
/// depends on the network's cost, remat, the tensor, context and expert channels and (ZeRO-3) the shard channel alone,
/// so the planner computes it once for the many layouts that share these.
template <class R>
struct Phases {
  std::vector<PhaseTime<R>> forward;             ///< by layer kind
  std::vector<PhaseTime<R>> backward;            ///< with recompute
  std::vector<PhaseTime<R>> kept_backward;       ///< of layers that keep everything on the chip; empty if none are left
  std::vector<PhaseTime<R>> kept_forward;        ///< of such layers, where others are offloaded; else empty
  PhaseTime<R> embedding;                        ///< both phases
  PhaseTime<R> head;                             ///< both phases, with MTP modules
  PhaseTime<R> embedding_forward, head_forward;  ///< of these, the forward
  SecondsOf<R> forward_whole{R(0.0)};            ///< of every layer and both ends
  /// One use of the head, and a module without its layer: what a policy does not change.
  struct Once {
    PhaseTime<R> head_forward, head_backward, module_forward, module_backward;
  } once;
};

/// One microbatch through a stage, or through all of them: the whole, and of it the weight gradients that a split
/// backward puts off.
template <class R>
struct PassTime {
  SecondsOf<R> time{R(0.0)};
  SecondsOf<R> put_off{R(0.0)};
};

/// `plain`, if any, are those of the same layout without remat and with the whole loss, where nothing is offloaded.
template <class R>
Phases<R> phases(const StepInput<R>& in, const Phases<R>* plain = nullptr);
/// The same into `out`, whose memory is used again.
void phases_into(const StepInput<double>& in, const Phases<double>* plain, Phases<double>& out);

template <class R>
StepTime<R> step_time(const Reader<R>& reader, const StepInput<R>& in, const Phases<R>& phases);
template <class R>
StepTime<R> step_time(const Reader<R>& reader, const StepInput<R>& in) {
  return step_time(reader, in, phases(in));
}

template <class R>
MemoryUse<R> memory_use(const StepInput<R>& in);

/// What a chip of each of these stages holds; memory_use is that of the fullest of all.
std::vector<MemoryUse<double>> memory_by_stage(const StepInput<double>& in, const std::vector<StageShape>& stages);

/// The same of a layout that is not placed: memory depends on the sizes of its groups alone. Nothing if the model has
/// too few layers for its stages.
std::optional<MemoryUse<double>> memory_of_layout(const ModelSpec& model, const HardwareSpec& hw,
                                                  const Efficiency& efficiency, const Workload& workload,
                                                  const Layout& layout);

/// What memory_use adds up for one stage while nothing is offloaded, by what decides it: the sharding `state` and
/// `buffers`, the remat policy `activations`.
struct StageBytes {
  double state = 0;                             ///< weights, gradients, optimizer
  double weights_away = 0, optimizer_away = 0;  ///< of it what can be with the host
  double activations = 0;
  double activations_away = 0;  ///< of all layers
  double logits = 0;
  double buffers = 0;
  double waiting = 0;        ///< there at the end of the step, when activations are gone
  double fragmentation = 0;  ///< share of all but the state that the allocator cannot use
  /// memory_use(in).total() of the fullest stage, to the last bit.
  double total(double reserve) const {
    const double passing = activations + logits + buffers;
    const double update = std::max(0.0, waiting - passing);
    return state + activations + logits + buffers + update + (passing + update) * fragmentation + reserve;
  }
  /// The same with all of this offloaded, but for rounding.
  double total_without(std::uint8_t offload, double reserve) const {
    StageBytes left = *this;
    if ((offload & kOffloadWeights) != 0) left.state -= weights_away;
    if ((offload & kOffloadOptimizer) != 0) left.state -= optimizer_away;
    if ((offload & kOffloadActivations) != 0) left.activations -= activations_away;
    return left.total(reserve);
  }
};
/// What a recipe keeps, whatever its sharding (the other part: cost/stage_memory.h).
StageBytes pass_bytes(const StepInput<double>& in, const StageShape& stage);

/// Weights, gradients and optimizer state of a stage before anything is offloaded; the rest is 0.
MemoryUse<double> state_of(const StepInput<double>& in, const StageShape& stage);

/// What follows a stage's last backward.
template <class R>
struct StageEnd {
  SecondsOf<R> dp{R(0.0)};              ///< exposed: gradients and updated weights
  SecondsOf<R> reduce{R(0.0)};          ///< one reduction of the stage's gradients, hidden or not
  SecondsOf<R> gather{R(0.0)};          ///< all-gather of its updated weights (ZeRO 1 and 2)
  SecondsOf<R> gather_exposed{R(0.0)};  ///< the part of `dp` that hides under no forward of the next step
  SecondsOf<R> optimizer{R(0.0)};
};
StageEnd<double> stage_end(const StepInput<double>& in, const Phases<double>& phases, const StageShape& stage);

/// Activations of a stage that keeps `in_flight` microbatches: what its layers keep of each, and the working set of
/// the layer that runs.
template <class R>
BytesOf<R> activation_bytes(const StepInput<R>& in, const StageShape& stage, const R& in_flight);

}  // namespace scalecalc
