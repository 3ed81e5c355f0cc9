// Lower bounds of a step, quick enough to be asked of every layout: causes are summed beforehand, and what layouts
// share is computed once.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "cost/step.h"

namespace scalecalc {

/// One phase with its causes summed, seconds.
struct PhaseTotal {
  double time = 0;          ///< with what the chip waits for the host
  double idle = 0;          ///< of it: that
  double left = 0;          ///< what the chip runs without weight gradients
  double launch = 0;        ///< the host's time to launch it
  double launch_alone = 0;  ///< the same without weight gradients
  double hides = 0;         ///< traffic on one more link hides under this much of it: its work, and what outlasts that
  double put_off = 0;       ///< of the time: see PhaseTime
  double hides_alone = 0;   ///< as `hides`, of what is left when the weight gradients are put off
};

/// Forward and backward of one layer with their causes summed, seconds.
struct LayerPasses {
  double time = 0;
  double put_off = 0;  ///< of the backward
};

/// Both phases of everything a stage can hold: all that the outline of a step needs of them.
struct PassTotals {
  std::vector<LayerPasses> layers;  ///< by kind
  std::vector<LayerPasses> kept;    ///< of layers that keep everything on the chip; empty if none are left
  PassTime<double> embedding, head;
  double forward_whole = 0;             ///< as in Phases
  std::vector<double> offload_forward;  ///< of a layer's forward, by kind, if some are offloaded: what that adds
  Bytes boundary;                       ///< as in NetworkCost
};

/// The same phase by phase, for who adds traffic to them.
struct PhaseTotals : PassTotals {
  struct Kind {
    PhaseTotal forward, backward;            ///< with recompute
    PhaseTotal kept_forward, kept_backward;  ///< of layers that keep everything on the chip, if any are left
  };
  std::vector<Kind> kinds;
};
PhaseTotals totals_of(const NetworkCost<double>& network, const Phases<double>& phases);
/// The same into `out`, whose memory is used again.
void totals_into(const NetworkCost<double>& network, const Phases<double>& phases, PhaseTotals& out);

/// Seconds one layer of each kind takes to gather its weights, and to gather and scatter them again in the backward.
struct GatherTimes {
  std::array<double, kMaxLayerKinds> forward{};
  std::array<double, kMaxLayerKinds> backward{};
  std::array<double, kMaxLayerKinds> hidden_forward{};   ///< of them, what may hide
  std::array<double, kMaxLayerKinds> hidden_backward{};  ///< the same
};
GatherTimes gather_times(const StepInput<double>& in);

/// Phases whose layers also gather their weights, no later than they do: `phases` are free of it. What the overlap
/// leaves is exposed; the rest hides under the work unless its link alone takes longer (OVERLAP: the fullest link is
/// no less than any one). The ends are left as they are.
void gathering(const PhaseTotals& phases, const GatherTimes& gathers, PassTotals& out);

/// Time of one microbatch through a model on one stage, forward and backward.
double whole_model_time(const StepInput<double>& in, const PassTotals& phases);

/// A step before its ends.
struct StepOutline {
  std::vector<double> busy;  ///< by stage: microbatches x its time, and the bubble it has to itself ([SPLIT])
  double others = 0;         ///< bubble of all stages, sends, the host's share, loss with scale
  std::vector<PassTime<double>> passes;  ///< by stage
};
/// Asks nothing of `in.network`.
void outline(const StepInput<double>& in, const PassTotals& phases, StepOutline& out);

/// Lower bound of step_time over every placement, sharding of weights and ZeRO stage: the same step on `in.channels`,
/// which must be no slower than any placement's in each coefficient (an empty channel is free), without gradients and
/// optimizer. Proof: with stage times T_s, step_time = m T_slowest + bubble plus non-negative terms. 1F1B and
/// interleaved: (m - 1/vpp) T_slowest + (sum T_s)/vpp with m >= 1 and vpp >= 1. Split schedules: the largest over the
/// stages of m T_s + max(0, others - n W_s), where others grows with forwards and input gradients I_s = T_s - W_s, and
/// n W_s = n (T_s - I_s) with n <= m - 1. None falls when any T_s, forward or I_s grows, and none of these falls when a
/// communication does not get faster (OVERLAP: its derivative is (1 - o) + o [it outlasts the work] + o c [it does not]
/// >= 0) or when an operation takes longer.
double step_lower_bound(const StepOutline& outline);

/// The same with the ends: step_time = max_s (m T_s + end_s) + bubble, sends and overhead ([LAST]). `ends`, by stage,
/// must be no later than the layout's own.
double step_lower_bound(const StepOutline& outline, std::span<const double> ends);

/// A stage's end, seconds, no later than that of any layout with this sharding on channels that are no faster.
/// `backward` and `forward` are times of its layers, no shorter than those of any such layout whose weights are
/// gathered for free: exposed reductions do not grow with the time they may hide under. With gathered weights the
/// layers take longer, by m times what the end may gain at most.
double stage_end_bound(const StepInput<double>& in, const StageShape& stage, double dense, double expert,
                       double forward, double backward);

/// Time of one microbatch's forward through a stage's layers, and of the backward with as much recompute as `phases`.
double forward_of(const PhaseTotals& phases, const StageShape& stage);
double backward_of(const PhaseTotals& phases, const StageShape& stage);

}  // namespace scalecalc
