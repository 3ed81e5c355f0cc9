#include "cost/step_bound.h"

#include <algorithm>

#include "cost/stage_end.h"

namespace scalecalc {
namespace {

double stage_total(const StepInput<double>& in, const PhaseTotals& phases, const StageShape& stage) {
  double out = 0;
  const std::size_t kinds = in.network->kinds.size();
  for (std::size_t k = 0; k < kinds; ++k) {
    if (stage.layers[k] == 0) continue;
    const double layers = stage.layers[k];
    const double treated = treated_layers(in.layout, stage, k);
    out += phases.forward[k].time * layers + phases.backward[k].time * treated;
    if (treated < layers) out += phases.kept_backward[k].time * (layers - treated);
  }
  if (stage.embedding) out += phases.embedding;
  if (stage.head) out += phases.head;
  return out / stage.parts;
}

PhaseTotal total_of(const PhaseTime<double>& phase) {
  double hides = (phase.compute + phase.hbm + phase.overhead).value();
  for (const double spilled : phase.spilled) hides += spilled;
  return {phase.total().value(), hides};
}

PhaseTotal with_traffic(PhaseTotal phase, double time, double overlap) {
  phase.time += time * (1 - overlap) + std::max(0.0, time * overlap - phase.hides);
  return phase;
}

}  // namespace

PhaseTotals totals_of(const Phases<double>& phases) {
  PhaseTotals out;
  for (std::size_t k = 0; k < phases.forward.size(); ++k) {
    out.forward[k] = total_of(phases.forward[k]);
    out.backward[k] = total_of(phases.backward[k]);
    if (!phases.kept_backward.empty()) out.kept_backward[k] = total_of(phases.kept_backward[k]);
  }
  out.embedding = phases.embedding.total().value();
  out.head = phases.head.total().value();
  out.forward_whole = phases.forward_whole.value();
  out.weight_whole = phases.weight_whole.value();
  return out;
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
  }
  return out;
}

void outline(const StepInput<double>& in, const PhaseTotals& phases, StepOutline& out) {
  const double microbatches = static_cast<double>(in.layout.grad_accum);
  double all = 0;
  double slowest = 0;
  out.busy.clear();
  for (const StageShape& stage : *in.stages) {
    const double time = stage_total(in, phases, stage);
    all += time * static_cast<double>(stage.count);
    slowest = std::max(slowest, time);
    out.busy.push_back(microbatches * time);
  }
  out.others = in.chip->step_overhead.value();
  if (in.layout.pp == 1) return;
  const double pp = static_cast<double>(in.layout.pp);
  const double vpp = static_cast<double>(in.layout.vpp);
  out.others += bubble_time(in.layout.schedule, pp, vpp, Seconds(all), Seconds(slowest), Seconds(phases.forward_whole),
                            Seconds(phases.weight_whole))
                    .value();
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
