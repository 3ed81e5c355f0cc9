// Parameters one chip of a pipeline stage holds, before they are divided over data ranks. Shared by time and memory.
#pragma once

#include "cost/layer_cost.h"
#include "cost/pipeline.h"

namespace scalecalc {

template <class R>
R dense_parameters(const ModelSpec& model, const NetworkCost<R>& net, const StageShape& stage) {
  R out(0.0);
  for (std::size_t k = 0; k < net.kinds.size(); ++k) {
    if (stage.layers[k] > 0) out = out + net.kinds[k].dense_parameters * R(static_cast<double>(stage.layers[k]));
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
    if (stage.layers[k] > 0) out = out + net.kinds[k].expert_parameters * R(static_cast<double>(stage.layers[k]));
  }
  if (stage.head && model.mtp_layers > 0) {
    out = out + net.kinds[model.mtp_kind].expert_parameters * R(static_cast<double>(model.mtp_layers));
  }
  return named(out, "expert parameters of the stage per chip", "sum of its layers");
}

}  // namespace scalecalc
