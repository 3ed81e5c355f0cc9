// What one chip of a pipeline stage holds: parameters before they are divided over data ranks, and layers under the
// remat policy. Shared by time and memory.
#pragma once

#include <algorithm>

#include "cost/layer_cost.h"
#include "cost/pipeline.h"

namespace scalecalc {

/// Layers of one kind that the remat policy treats: all of them, or the first remat_layers of each part of the stage.
inline std::int32_t treated_layers(const Layout& layout, const StageShape& stage, std::size_t kind) {
  if (layout.remat_layers == 0) return stage.layers[kind];
  return static_cast<std::int32_t>(std::min<std::int64_t>(layout.remat_layers * stage.parts, stage.layers[kind]));
}

template <class R>
R layers_held(const NetworkCost<R>& net, const StageShape& stage, std::size_t kind) {
  return R(static_cast<double>(stage.layers[kind])) * net.depth;
}

template <class R>
R dense_parameters(const ModelSpec& model, const NetworkCost<R>& net, const StageShape& stage) {
  R out(0.0);
  for (std::size_t k = 0; k < net.kinds.size(); ++k) {
    if (stage.layers[k] > 0) out = out + net.kinds[k].dense_parameters * layers_held(net, stage, k);
  }
  if (stage.embedding) out = out + net.embedding.dense_parameters;
  if (stage.head) {
    // A tied head is the embedding again: a second copy only when another stage holds it.
    out = out + net.head.dense_parameters;
    if (stage.embedding && model.tied_embeddings) out = out - net.head.tied_parameters;
    const R modules(static_cast<double>(model.mtp_layers));
    if (model.mtp_layers > 0) {
      out = out + modules * (net.mtp.dense_parameters + net.kinds[model.mtp_kind].dense_parameters);
    }
  }
  return named(out, "parameters of the stage per chip", "sum of its layers and ends");
}

template <class R>
R expert_parameters(const ModelSpec& model, const NetworkCost<R>& net, const StageShape& stage) {
  R out(0.0);
  for (std::size_t k = 0; k < net.kinds.size(); ++k) {
    if (stage.layers[k] > 0) out = out + net.kinds[k].expert_parameters * layers_held(net, stage, k);
  }
  if (stage.head && model.mtp_layers > 0) {
    out = out + net.kinds[model.mtp_kind].expert_parameters * R(static_cast<double>(model.mtp_layers));
  }
  return named(out, "expert parameters of the stage per chip", "sum of its layers");
}

}  // namespace scalecalc
