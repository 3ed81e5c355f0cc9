// Simulates the step of one plan block by block, for `scalecalc trace`.
#include "train/step_trace.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/diagnostic.h"
#include "base/units.h"
#include "plan/plan_costs.h"
#include "train/resolve.h"

namespace scalecalc {
namespace {

void check_size(const Layout& layout) {
  const std::int64_t chunks = layout.pp * layout.vpp;
  const std::int64_t most = std::max<std::int64_t>(1, kMostPasses / (2 * chunks));
  if (layout.grad_accum <= most) return;
  throw UserError(
      fmt::format("a step of {} microbatches through {} chunks is too long to trace: at most {} forwards "
                  "and backwards are laid out",
                  group_thousands(layout.grad_accum), group_thousands(chunks), group_thousands(kMostPasses)),
      fmt::format("fewer microbatches, such as --max ga={}, with a larger mb or a smaller batch", most));
}

std::vector<std::size_t> chunks_of(const StepTrace& trace, std::size_t s) {
  const std::size_t stages = trace.step.stages.size();
  if (trace.step.run.schedule == Schedule::kDualPipe) return {s, stages - 1 - s};
  std::vector<std::size_t> out;
  for (std::size_t c = s; c < trace.step.chunks.size(); c += stages) out.push_back(c);
  return out;
}

StageFigures stage_figures(const StepTrace& trace, const StepInput<double>& in, std::size_t s) {
  const StepRun& step = trace.step;
  StageFigures out{.holds = step.stages[s]};
  const double parts = static_cast<double>(out.holds.parts);
  for (const std::size_t c : chunks_of(trace, s)) {
    out.layers += step.chunks[c].layers;
    out.forward_s += step.run.chunks[c].forward / parts;
    out.backward_s += (step.run.chunks[c].backward_input + step.run.chunks[c].backward_weight) / parts;
  }
  const StageTail& tail = step.run.tails[s];
  out.busy_s = trace.timeline.busy_s[s];
  out.end_s = tail.reduce_s + tail.update_s + tail.gather_s + step.host_s;
  const double rest = trace.simulated_s - out.busy_s - out.end_s;
  constexpr double kRounding = 1e-12;
  out.idle_s = rest > kRounding * trace.simulated_s ? rest : 0;
  out.peak_in_flight = trace.timeline.peak_in_flight[s];
  out.activation_bytes = activation_bytes(in, out.holds, out.peak_in_flight / parts).value();
  return out;
}

}  // namespace

double exposed_in_passes(const StepTrace& trace, std::int64_t stage, SecondsOf<double> PhaseTime<double>::*kind) {
  std::vector<double> forward, backward;  // of each chunk
  for (const std::vector<ChunkPart>& parts : trace.step.parts) {
    double one_way = 0, other_way = 0;
    for (const ChunkPart& part : parts) {
      one_way += (part.forward.*kind).value();
      other_way += (part.backward.*kind).value();
    }
    forward.push_back(one_way);
    backward.push_back(other_way);
  }
  double out = 0;
  for (const PipelineBlock& block : trace.timeline.blocks) {
    if (block.stage != stage) continue;
    const auto chunk = static_cast<std::size_t>(block.chunk);
    if (block.kind == BlockKind::kForward) out += forward[chunk];
    if (block.kind == BlockKind::kBackward || block.kind == BlockKind::kBackwardInput) out += backward[chunk];
  }
  return out;
}

StepTrace trace_step(const TrainAnswer& answer, const Plan& plan) {
  check_size(plan.layout);
  const PlanRequest request{
      .model = &answer.model, .hw = &answer.hw, .efficiency = answer.efficiency, .workload = answer.workload};
  const PlanCosts<double> costs(Reader<double>{}, request, plan);
  const StepInput<double> in = costs.input();
  StepTrace out{.step = step_run(in, phases(in))};
  out.timeline = simulate(out.step.run);
  out.simulated_s = out.timeline.end_s + out.step.host_s;
  for (std::size_t s = 0; s < out.step.stages.size(); ++s) out.stages.push_back(stage_figures(out, in, s));
  return out;
}

}  // namespace scalecalc
