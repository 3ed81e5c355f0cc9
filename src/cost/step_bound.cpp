// Bounds the step of a layout from below, so that the search can skip layouts that cannot win.
#include "cost/step_bound.h"

#include <algorithm>

#include "cost/stage_end.h"

namespace scalecalc {
namespace {

PassTime<double> stage_total(const StepInput<double>& in, const PassTotals& phases, const StageShape& stage) {
  double out = 0;
  double put_off = 0;
  const std::int64_t number = numbered_layers(in.layout);
  for (std::size_t k = 0; k < phases.layers.size(); ++k) {
    if (stage.layers[k] == 0) continue;
    const double layers = stage.layers[k];
    const double first = phases.kept.empty() ? layers : first_layers(number, stage, k);
    out += phases.layers[k].time * first;
    put_off += phases.layers[k].put_off * first;
    if (first == layers) continue;
    out += phases.kept[k].time * (layers - first);
    put_off += phases.kept[k].put_off * (layers - first);
  }
  const auto end = [&](const PassTime<double>& pass) {
    out += pass.time.value();
    put_off += pass.put_off.value();
  };
  if (stage.embedding) end(phases.embedding);
  if (stage.head) end(phases.head);
  return {Seconds(out / stage.parts), Seconds(put_off / stage.parts)};
}

PhaseTotal total_of(const PhaseTime<double>& phase) {
  double hides = (phase.compute + phase.hbm + phase.overhead).value();
  for (const double spilled : phase.spilled) hides += spilled;
  return {.time = phase.total().value(),
          .idle = phase.idle.value(),
          .left = phase.left,
          .launch = phase.launch,
          .launch_alone = phase.launch_alone,
          .hides = hides,
          .put_off = phase.put_off.value(),
          .hides_alone = phase.alone};
}

PassTime<double> pass_of(const PhaseTime<double>& end) { return {end.total(), end.put_off}; }
LayerPasses pass_of(const PhaseTotal& forward, const PhaseTotal& backward) {
  return {forward.time + backward.time, backward.put_off};
}

/// With one more collective on a link of its own; launching it is not counted.
PhaseTotal with_traffic(PhaseTotal phase, double time, double hidden) {
  const double beyond = std::max(0.0, hidden - phase.hides);
  const double beyond_alone = std::max(0.0, hidden - phase.hides_alone);
  const double chip = phase.time - phase.idle + (time - hidden) + beyond;
  const double left = phase.left + (time - hidden) + beyond_alone;
  phase.time = std::max(chip, phase.launch);
  phase.idle = phase.time - chip;
  phase.put_off = std::max(0.0, phase.time - std::max(left, phase.launch_alone));
  return phase;
}

}  // namespace

PhaseTotals totals_of(const NetworkCost<double>& network, const Phases<double>& phases) {
  PhaseTotals out;
  totals_into(network, phases, out);
  return out;
}

void totals_into(const NetworkCost<double>& network, const Phases<double>& phases, PhaseTotals& out) {
  const std::size_t kinds = phases.forward.size();
  out.kinds.clear();
  out.layers.clear();
  out.kept.clear();
  out.offload_forward.clear();
  out.kinds.reserve(kinds);
  out.layers.reserve(kinds);
  if (!phases.kept_backward.empty()) out.kept.reserve(kinds);
  for (std::size_t k = 0; k < kinds; ++k) {
    PhaseTotals::Kind& kind = out.kinds.emplace_back();
    kind.forward = total_of(phases.forward[k]);
    kind.backward = total_of(phases.backward[k]);
    out.layers.push_back(pass_of(kind.forward, kind.backward));
    if (phases.kept_backward.empty()) continue;
    kind.kept_forward = phases.kept_forward.empty() ? kind.forward : total_of(phases.kept_forward[k]);
    kind.kept_backward = total_of(phases.kept_backward[k]);
    out.kept.push_back(pass_of(kind.kept_forward, kind.kept_backward));
    if (!phases.kept_forward.empty()) out.offload_forward.push_back(kind.forward.time - kind.kept_forward.time);
  }
  out.boundary = network.boundary;
  out.embedding = pass_of(phases.embedding);
  out.head = pass_of(phases.head);
  out.forward_whole = phases.forward_whole.value();
}

double whole_model_time(const StepInput<double>& in, const PassTotals& phases) {
  return stage_total(in, phases, in.stages->front()).time.value();
}

GatherTimes gather_times(const StepInput<double>& in) {
  GatherTimes out;
  for (std::size_t k = 0; k < in.network->kinds.size(); ++k) {
    out.forward[k] = weight_gather_time(in, in.network->kinds[k], false).value();
    out.backward[k] = weight_gather_time(in, in.network->kinds[k], true).value();
    out.hidden_forward[k] = out.forward[k] * weight_gather_overlap(in, in.network->kinds[k], false);
    out.hidden_backward[k] = out.backward[k] * weight_gather_overlap(in, in.network->kinds[k], true);
  }
  return out;
}

void gathering(const PhaseTotals& phases, const GatherTimes& gathers, PassTotals& out) {
  out = phases;
  for (std::size_t k = 0; k < phases.kinds.size(); ++k) {
    const PhaseTotals::Kind& kind = phases.kinds[k];
    out.layers[k] = pass_of(with_traffic(kind.forward, gathers.forward[k], gathers.hidden_forward[k]),
                            with_traffic(kind.backward, gathers.backward[k], gathers.hidden_backward[k]));
    if (phases.kept.empty()) continue;
    out.kept[k] = pass_of(with_traffic(kind.kept_forward, gathers.forward[k], gathers.hidden_forward[k]),
                          with_traffic(kind.kept_backward, gathers.backward[k], gathers.hidden_backward[k]));
  }
}

void outline(const StepInput<double>& in, const PassTotals& phases, StepOutline& out) {
  const double microbatches = static_cast<double>(in.layout.grad_accum);
  PassTime<double> all;
  Seconds slowest(0);
  double forward = phases.forward_whole;
  out.busy.clear();
  out.passes.clear();
  for (const StageShape& stage : *in.stages) {
    const PassTime<double> pass = stage_total(in, phases, stage);
    all.time += pass.time * static_cast<double>(stage.count);
    all.put_off += pass.put_off * static_cast<double>(stage.count);
    slowest = max(slowest, pass.time);
    if (!phases.offload_forward.empty()) {
      forward += offloaded_forward<double>(in.layout, stage, phases.offload_forward.size(),
                                           [&](std::size_t k) { return phases.offload_forward[k]; });
    }
    out.busy.push_back(microbatches * pass.time.value());
    out.passes.push_back(pass);
  }
  out.others = (in.chip->step_overhead + scale_loss(in, microbatches * slowest)).value();
  if (in.layout.pp == 1) return;
  const double pp = static_cast<double>(in.layout.pp);
  const double vpp = static_cast<double>(in.layout.vpp);
  if (!splits_backward(in.layout.schedule)) out.others += bubble_time(vpp, all.time, slowest).value();
  for (std::size_t s = 0; splits_backward(in.layout.schedule) && s < out.busy.size(); ++s) {
    out.busy[s] += split_bubble(in.layout.schedule, microbatches, pp, all, Seconds(forward), out.passes[s]).value();
  }
  out.others += exposed_sends(in, phases.boundary, microbatches, pp, vpp).value();
}

double step_lower_bound(const StepOutline& outline) {
  return outline.others + *std::max_element(outline.busy.begin(), outline.busy.end());
}

double step_lower_bound(const StepOutline& outline, std::span<const double> ends) {
  double last = 0;
  for (std::size_t s = 0; s < ends.size(); ++s) last = std::max(last, outline.busy[s] + ends[s]);
  return outline.others + last;
}

double stage_end_bound(const StepInput<double>& in, const StageShape& stage, double dense, double expert,
                       double forward, double backward) {
  const StageEnds<double> ends(in, static_cast<double>(in.layout.grad_accum));
  const StageEnd<double> end =
      ends.data_parallel(stage, dense, expert, [&](bool back) { return Seconds(back ? backward : forward); });
  return (end.dp + ends.optimizer(stage, dense, expert)).value();
}

double forward_of(const PhaseTotals& phases, const StageShape& stage) {
  double out = 0;
  for (std::size_t k = 0; k < phases.kinds.size(); ++k) out += phases.kinds[k].forward.time * stage.layers[k];
  return out / stage.parts;
}

double backward_of(const PhaseTotals& phases, const StageShape& stage) {
  double out = 0;
  for (std::size_t k = 0; k < phases.kinds.size(); ++k) out += phases.kinds[k].backward.time * stage.layers[k];
  return out / stage.parts;
}

}  // namespace scalecalc
