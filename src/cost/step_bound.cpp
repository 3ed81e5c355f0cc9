#include "cost/step_bound.h"

#include <algorithm>

#include "cost/stage_end.h"

namespace scalecalc {
namespace {

PassTime<double> stage_total(const StepInput<double>& in, const PhaseTotals& phases, const StageShape& stage) {
  double out = 0;
  double put_off = 0;
  const std::size_t kinds = in.network->kinds.size();
  for (std::size_t k = 0; k < kinds; ++k) {
    if (stage.layers[k] == 0) continue;
    const double layers = stage.layers[k];
    const double first = first_layers(numbered_layers(in.layout), stage, k);
    out += (phases.forward[k].time + phases.backward[k].time) * first;
    put_off += phases.backward[k].put_off * first;
    if (first == layers) continue;
    out += (phases.kept_forward[k].time + phases.kept_backward[k].time) * (layers - first);
    put_off += phases.kept_backward[k].put_off * (layers - first);
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

/// With one more collective on a link of its own; launching it is not counted.
PhaseTotal with_traffic(PhaseTotal phase, double time, double overlap) {
  const double beyond = std::max(0.0, time * overlap - phase.hides);
  const double beyond_alone = std::max(0.0, time * overlap - phase.hides_alone);
  const double chip = phase.time - phase.idle + time * (1 - overlap) + beyond;
  const double left = phase.left + time * (1 - overlap) + beyond_alone;
  phase.time = std::max(chip, phase.launch);
  phase.idle = phase.time - chip;
  phase.left = left;
  phase.put_off = std::max(0.0, phase.time - std::max(left, phase.launch_alone));
  return phase;
}

}  // namespace

PhaseTotals totals_of(const Phases<double>& phases) {
  PhaseTotals out;
  for (std::size_t k = 0; k < phases.forward.size(); ++k) {
    out.forward[k] = total_of(phases.forward[k]);
    out.backward[k] = total_of(phases.backward[k]);
    if (!phases.kept_backward.empty()) out.kept_backward[k] = total_of(phases.kept_backward[k]);
    out.kept_forward[k] = phases.kept_forward.empty() ? out.forward[k] : total_of(phases.kept_forward[k]);
  }
  out.embedding = pass_of(phases.embedding);
  out.head = pass_of(phases.head);
  out.forward_whole = phases.forward_whole.value();
  return out;
}

double whole_model_time(const StepInput<double>& in, const PhaseTotals& phases) {
  return stage_total(in, phases, in.stages->front()).time.value();
}

GatherTimes gather_times(const StepInput<double>& in) {
  GatherTimes out;
  for (std::size_t k = 0; k < in.network->kinds.size(); ++k) {
    out.forward[k] = weight_gather_time(in, in.network->kinds[k], false).value();
    out.backward[k] = weight_gather_time(in, in.network->kinds[k], true).value();
  }
  return out;
}

PhaseTotals gathering(const PhaseTotals& phases, const GatherTimes& gathers, std::size_t kinds, double overlap) {
  PhaseTotals out = phases;
  for (std::size_t k = 0; k < kinds; ++k) {
    out.forward[k] = with_traffic(phases.forward[k], gathers.forward[k], overlap);
    out.backward[k] = with_traffic(phases.backward[k], gathers.backward[k], overlap);
    out.kept_backward[k] = with_traffic(phases.kept_backward[k], gathers.backward[k], overlap);
    out.kept_forward[k] = with_traffic(phases.kept_forward[k], gathers.forward[k], overlap);
  }
  return out;
}

void outline(const StepInput<double>& in, const PhaseTotals& phases, StepOutline& out) {
  const double microbatches = static_cast<double>(in.layout.grad_accum);
  PassTime<double> all;
  Seconds slowest(0);
  out.busy.clear();
  out.passes.clear();
  for (const StageShape& stage : *in.stages) {
    const PassTime<double> pass = stage_total(in, phases, stage);
    all.time += pass.time * static_cast<double>(stage.count);
    all.put_off += pass.put_off * static_cast<double>(stage.count);
    slowest = max(slowest, pass.time);
    out.busy.push_back(microbatches * pass.time.value());
    out.passes.push_back(pass);
  }
  out.others = (in.chip->step_overhead + scale_loss(in, microbatches * slowest)).value();
  if (in.layout.pp == 1) return;
  const double pp = static_cast<double>(in.layout.pp);
  const double vpp = static_cast<double>(in.layout.vpp);
  if (!splits_backward(in.layout.schedule)) out.others += bubble_time(vpp, all.time, slowest).value();
  for (std::size_t s = 0; splits_backward(in.layout.schedule) && s < out.busy.size(); ++s) {
    out.busy[s] +=
        split_bubble(in.layout.schedule, microbatches, pp, all, Seconds(phases.forward_whole), out.passes[s]).value();
  }
  out.others += exposed_sends(in, microbatches, pp, vpp).value();
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

double forward_of(const PhaseTotals& phases, const StageShape& stage, std::size_t kinds) {
  double out = 0;
  for (std::size_t k = 0; k < kinds; ++k) out += phases.forward[k].time * stage.layers[k];
  return out / stage.parts;
}

double backward_of(const PhaseTotals& phases, const StageShape& stage, std::size_t kinds) {
  double out = 0;
  for (std::size_t k = 0; k < kinds; ++k) out += phases.backward[k].time * stage.layers[k];
  return out / stage.parts;
}

}  // namespace scalecalc
