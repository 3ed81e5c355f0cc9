// Time of one microbatch through a pipeline stage, from the phases of what the stage holds.
#pragma once

#include <string_view>

#include "cost/stage_parameters.h"
#include "cost/step.h"

namespace scalecalc {

inline constexpr std::string_view kOverlapRule = "OVERLAP, docs/model.md: what does not hide under the work";

template <class R>
R contention_of(const OverlapRates<R>& overlap, const Channel<R>& c) {
  return c.size == 1 ? R(0.0) : (c.scale_out ? overlap.contention_out : overlap.contention_up);
}

/// The backward of a stage's layers of one kind, `treated` of them under the remat policy.
template <class R>
void add_backward(const Phases<R>& phases, std::size_t kind, std::int32_t treated, std::int32_t layers,
                  PhaseTime<R>& out) {
  out.add(phases.backward[kind], R(static_cast<double>(treated)));
  if (treated < layers) out.add(phases.kept_backward[kind], R(static_cast<double>(layers - treated)));
}

/// One microbatch through one stage; under DualPipe half of one through each of the two parts.
template <class R>
PhaseTime<R> stage_time(const StepInput<R>& in, const Phases<R>& phases, const StageShape& stage) {
  PhaseTime<R> out;
  for (std::size_t k = 0; k < in.network->kinds.size(); ++k) {
    const R layers(static_cast<double>(stage.layers[k]));
    if (stage.layers[k] == 0) continue;
    out.add(phases.forward[k], layers);
    add_backward(phases, k, treated_layers(in.layout, stage, k), stage.layers[k], out);
  }
  if (stage.embedding) out.add(phases.embedding, R(1.0));
  if (stage.head) out.add(phases.head, R(1.0));
  if (stage.parts == 1) return out;
  return PhaseTime<R>().add(out, R(1.0 / stage.parts));
}

}  // namespace scalecalc
