// What one chip of a pipeline stage holds: parameters before they are divided over data ranks, and layers under the
// remat policy. Shared by time and memory.
#pragma once

#include <algorithm>

#include "cost/layer_cost.h"
#include "cost/pipeline.h"

namespace scalecalc {

/// Of a stage's layers of one kind the first `number` of each part; 0: all.
inline std::int32_t first_layers(std::int64_t number, const StageShape& stage, std::size_t kind) {
  if (number == 0) return stage.layers[kind];
  return static_cast<std::int32_t>(std::min<std::int64_t>(number * stage.parts, stage.layers[kind]));
}

/// Layers that the remat policy treats.
inline std::int32_t treated_layers(const Layout& layout, const StageShape& stage, std::size_t kind) {
  return first_layers(layout.remat_layers, stage, kind);
}

/// Layers whose activations are offloaded, if any are.
inline std::int32_t offloaded_layers(const Layout& layout, const StageShape& stage, std::size_t kind) {
  return first_layers(layout.offload_layers, stage, kind);
}

/// Layers whose passes are Phases::forward and backward; the others' are the kept ones. One of the numbers is 0.
inline std::int64_t numbered_layers(const Layout& layout) {
  return std::max(layout.remat_layers, layout.offload_layers);
}

template <class R>
R layers_held(const NetworkCost<R>& net, const StageShape& stage, std::size_t kind) {
  return R(static_cast<double>(stage.layers[kind])) * net.depth;
}

/// Sum over a stage's layers of what one layer holds, the prediction modules' layers among them.
template <class R, class T>
T sum_of_layers(const ModelSpec& model, const NetworkCost<R>& net, const StageShape& stage, T LayerCost<R>::*of) {
  T out{R(0.0)};
  for (std::size_t k = 0; k < net.kinds.size(); ++k) {
    if (stage.layers[k] > 0) out = out + net.kinds[k].*of * layers_held(net, stage, k);
  }
  if (stage.head && model.mtp_layers > 0) {
    out = out + net.kinds[model.mtp_kind].*of * R(static_cast<double>(model.mtp_layers));
  }
  return out;
}

/// The same with the stage's ends. A tied head is the embedding again: a second copy (`tied`) only when another stage
/// holds it.
template <class R, class T>
T sum_of_stage(const ModelSpec& model, const NetworkCost<R>& net, const StageShape& stage, T LayerCost<R>::*of,
               T LayerCost<R>::*tied) {
  T out = sum_of_layers(model, net, stage, of);
  if (stage.embedding) {
    out = out + net.embedding.*of;
    for (const TowerCost<R>& tower : net.towers) out = out + tower.layer.*of * R(tower.count);
  }
  if (stage.head) {
    out = out + net.head.*of;
    if (stage.embedding && model.tied_embeddings) out = out - net.head.*tied;
    if (model.mtp_layers > 0) out = out + net.mtp.*of * R(static_cast<double>(model.mtp_layers));
  }
  return out;
}

/// Parameters that train.
template <class R>
R dense_parameters(const ModelSpec& model, const NetworkCost<R>& net, const StageShape& stage) {
  return named(sum_of_stage(model, net, stage, &LayerCost<R>::dense_parameters, &LayerCost<R>::tied_parameters),
               "parameters of the stage per chip", "sum of its layers and ends");
}

template <class R>
R expert_parameters(const ModelSpec& model, const NetworkCost<R>& net, const StageShape& stage) {
  return named(sum_of_layers(model, net, stage, &LayerCost<R>::expert_parameters),
               "expert parameters of the stage per chip", "sum of its layers");
}

/// How many tensors its weights are.
template <class R>
double tensors_of(const ModelSpec& model, const NetworkCost<R>& net, const StageShape& stage,
                  double LayerCost<R>::*of) {
  double out = 0;
  for (std::size_t k = 0; k < net.kinds.size(); ++k) out += net.kinds[k].*of * stage.layers[k];
  if (stage.embedding) {
    out += net.embedding.*of;
    for (const TowerCost<R>& tower : net.towers) out += tower.layer.*of * tower.count;
  }
  if (!stage.head) return out;
  const double modules = static_cast<double>(model.mtp_layers);
  return out + net.head.*of + (modules > 0 ? (net.mtp.*of + net.kinds[model.mtp_kind].*of) * modules : 0);
}

/// Bytes of weights that do not train.
template <class R>
BytesOf<R> frozen_bytes(const ModelSpec& model, const NetworkCost<R>& net, const StageShape& stage) {
  return named(sum_of_stage(model, net, stage, &LayerCost<R>::frozen, &LayerCost<R>::tied_frozen),
               "frozen weights of the stage per chip", "sum of its layers and ends");
}

template <class R>
BytesOf<R> frozen_expert_bytes(const ModelSpec& model, const NetworkCost<R>& net, const StageShape& stage) {
  return named(sum_of_layers(model, net, stage, &LayerCost<R>::frozen_experts), "frozen experts of the stage per chip",
               "sum of its layers");
}

}  // namespace scalecalc
