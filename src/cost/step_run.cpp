// Prepares a plan's step for the pipeline simulation: the work of each chunk, each transfer and each stage's end.
#include "cost/step_run.h"

#include <algorithm>
#include <array>

#include "cost/stage_time.h"

namespace scalecalc {
namespace {

PhaseTime<double> without(PhaseTime<double> whole, const PhaseTime<double>& part) { return whole.add(part, -1.0); }

/// What a chunk's layers and ends do; `seen` counts the layers of each kind its stage has had before.
std::vector<ChunkPart> parts_of(const StepInput<double>& in, const Phases<double>& phases, const ChunkShape& chunk,
                                std::array<std::int64_t, kMaxLayerKinds>& seen) {
  using Kind = ChunkPart::Kind;
  std::vector<ChunkPart> out;
  if (chunk.embedding) {
    out.push_back({Kind::kEmbedding, 0, phases.embedding_forward, without(phases.embedding, phases.embedding_forward)});
  }
  for (std::int64_t layer = chunk.first_layer; layer < chunk.first_layer + chunk.layers; ++layer) {
    const std::size_t kind = in.model->layer_kind[static_cast<std::size_t>(layer)];
    const std::int64_t first = numbered_layers(in.layout);
    const bool numbered = first == 0 || seen[kind]++ < first;
    out.push_back({Kind::kLayer, layer,
                   numbered || phases.kept_forward.empty() ? phases.forward[kind] : phases.kept_forward[kind],
                   numbered ? phases.backward[kind] : phases.kept_backward[kind]});
  }
  if (chunk.head) {
    out.push_back({Kind::kHead, 0, phases.head_forward, without(phases.head, phases.head_forward)});
  }
  return out;
}

ChunkTimes times_of(const std::vector<ChunkPart>& parts) {
  ChunkTimes out;
  for (const ChunkPart& part : parts) {
    out.forward += part.forward.total().value();
    out.backward_input += (part.backward.total() - part.backward.put_off).value();
    out.backward_weight += part.backward.put_off.value();
  }
  return out;
}

StageTail tail_of(const StageEnd<double>& end, double reductions) {
  const double exposed = (end.dp - end.gather_exposed).value();
  return {.reduce_hidden_s = std::max(0.0, end.reduce.value() - exposed / reductions),
          .reduce_s = exposed,
          .update_s = end.optimizer.value(),
          .gather_s = end.gather_exposed.value()};
}

}  // namespace

StepRun step_run(const StepInput<double>& in, const Phases<double>& phases) {
  const Layout& layout = in.layout;
  StepRun out{.chunks = deal(*in.model, layout.pp, layout.vpp, in.workload->runtime.stages, layout.split),
              .stages = all_stages(*in.model, layout, in.workload->runtime.stages),
              .host_s = in.chip->step_overhead.value()};
  double slowest = 0;
  for (const StageShape& stage : *in.stages) {
    slowest = std::max(slowest, stage_time(in, phases, stage).total().value());
  }
  out.host_s += scale_loss(in, Seconds(static_cast<double>(layout.grad_accum) * slowest)).value();
  out.run = {.schedule = layout.schedule, .pp = layout.pp, .vpp = layout.vpp, .microbatches = layout.grad_accum};
  std::vector<std::array<std::int64_t, kMaxLayerKinds>> seen(out.stages.size());
  for (std::size_t c = 0; c < out.chunks.size(); ++c) {
    out.parts.push_back(parts_of(in, phases, out.chunks[c], seen[c % seen.size()]));
    out.run.chunks.push_back(times_of(out.parts.back()));
  }
  if (layout.pp > 1) out.run.send_s = send_time(in.channels->pp, in.network->boundary).value();
  const double reductions = layout.zero == 2 ? static_cast<double>(layout.grad_accum) : 1.0;
  for (const StageShape& stage : out.stages) {
    out.ends.push_back(stage_end(in, phases, stage));
    out.run.tails.push_back(tail_of(out.ends.back(), reductions));
  }
  return out;
}

}  // namespace scalecalc
