// What one layer costs one chip for one microbatch, before data parallelism, pipeline and placement come in: time of
// its operations by binding resource, bytes it sends in each dimension, parameters it holds, tensors it keeps. It
// depends only on the inner degrees (tensor, context, expert) and the microbatch, so the planner computes it once for
// the many layouts that share them.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "cost/op_work.h"

namespace scalecalc {

/// "layer", "MoE layer", "sliding layer", "mamba2-only layer": for explanations.
std::string label_of(const LayerKind& kind);

/// One phase (forward or backward) of a layer: its own work, and what it sends.
template <class R>
struct Phase {
  Work<R> work;
  SecondsOf<R> attention{R(0.0)};     ///< of the work: what a ring's exchange may hide under
  SecondsOf<R> experts{R(0.0)};       ///< of the work: matmuls of routed experts, which wait for their weights
  double tp_gathers = 0;              ///< all-gathers and reduce-scatters of tp_bytes (sequence sharding on)
  double tp_narrow_gathers = 0;       ///< all-gathers of tp_narrow_bytes
  double tp_reduces = 0;              ///< all-reduces of tp_bytes (sequence sharding off)
  double tp_inner_reduces = 0;        ///< all-reduces inside a part, of less than an activation
  BytesOf<R> tp_inner_bytes{R(0.0)};  ///< of these, summed over them
  double etp_gathers = 0;             ///< all-gathers and reduce-scatters of etp_bytes around the experts
  double cp_gathers = 0;              ///< all-gathers or reduce-scatters of cp_bytes
  double cp_sends = 0;                ///< pieces of cp_bytes passed round the ring
  double cp_all_to_alls = 0;          ///< all-to-alls of cp_bytes (Ulysses)
  BytesOf<R> ep_bytes{R(0.0)};        ///< bytes a chip holds before all the phase's all-to-alls, summed over them
  double ep_all_to_alls = 0;          ///< how many all-to-alls

  /// Collectives of layers' own data, each whole: what the host launches.
  double tp_collectives() const { return tp_gathers + tp_narrow_gathers + tp_reduces + tp_inner_reduces + etp_gathers; }
  double cp_collectives() const { return cp_gathers + cp_sends + cp_all_to_alls; }
  double launches = 0;         ///< kernels the host launches one by one
  double weight_launches = 0;  ///< of a backward: those of weight gradients, which only the optimizer waits for
};

template <class R>
struct LayerCost {
  Phase<R> forward;
  Phase<R> backward;                            ///< without recompute
  std::array<Phase<R>, kRematCount> recompute;  ///< added to the backward, by remat policy
  BytesOf<R> tp_bytes{R(0.0)};                  ///< one gathered activation of the tensor group
  BytesOf<R> tp_narrow_bytes{R(0.0)};           ///< the same in the 8 bits that a matmul reads it in
  BytesOf<R> etp_bytes{R(0.0)};
  BytesOf<R> cp_bytes{R(0.0)};    ///< of one of them: keys and values of the sequence, one rank's piece, all states
  BytesOf<R> cp_buffer{R(0.0)};   ///< what the context ranks' communication holds while the layer runs
  R dense_parameters{0.0};        ///< that train, per chip, divided by tp, not yet by data ranks
  R expert_parameters{0.0};       ///< that train, per chip, divided by ep and etp
  double tensors = 0;             ///< that these are, and frozen weights
  double expert_tensors = 0;      ///< of the experts, each kind of matrix one
  R tied_parameters{0.0};         ///< of the dense ones: the matrix that is the embedding's too
  FlopsOf<R> orthogonal{R(0.0)};  ///< of orthogonalizing the dense ones' matrices once, divided as they are
  FlopsOf<R> orthogonal_experts{R(0.0)};      ///< the same of the experts'
  BytesOf<R> frozen{R(0.0)};                  ///< of weights that do not train, divided as the dense ones
  BytesOf<R> frozen_experts{R(0.0)};          ///< the same, divided as the experts
  BytesOf<R> tied_frozen{R(0.0)};             ///< of the frozen ones: the matrix that is the embedding's too
  BytesOf<R> unpacked{R(0.0)};                ///< the largest frozen matrix as its matmul reads it, if it is packed
  SecondsOf<R> weight_gradient{R(0.0)};       ///< part of the backward's work that only the optimizer waits for
  std::array<BytesOf<R>, kRematCount> saved;  ///< kept per microbatch, by remat policy
  BytesOf<R> workspace{R(0.0)};               ///< gradients of the widest activations while the layer runs
};

/// One layer of a tower, which `count` are alike, or one of its ends.
template <class R>
struct TowerCost {
  LayerCost<R> layer;
  double count = 1;
  bool shown = true;  ///< whether it is given anything; else its weights are held, and not gathered
};

/// Costs of everything a stage can hold: each layer kind, the embedding, the head, an MTP module.
template <class R>
struct NetworkCost {
  std::vector<LayerCost<R>> kinds;
  std::shared_ptr<const std::vector<std::string>> labels;  ///< of the kinds
  LayerCost<R> embedding;
  std::vector<TowerCost<R>> towers;  ///< beside the embedding
  LayerCost<R> head;
  LayerCost<R> mtp;                           ///< projection and norms of one module; its layer and head come on top
  std::array<BytesOf<R>, kLossCount> logits;  ///< what the losses, by kind, hold of one microbatch
  BytesOf<R> boundary{R(0.0)};                ///< activation one chip sends to the next pipeline stage
  R depth{1.0};    ///< 1: layers a stage really has for each it is counted with; carries the derivative by `layers`
  R d_model{0.0};  ///< width of the residual stream
};

/// Operation lists of a model in one reading, built once.
template <class R>
struct ModelOps {
  std::vector<std::vector<Op<R>>> kinds;
  std::shared_ptr<const std::vector<std::string>> labels;  ///< of the kinds
  std::vector<Op<R>> embedding;
  std::vector<TowerPart<R>> towers;
  std::vector<Op<R>> head;
  std::vector<Op<R>> mtp;
  ModelDims<R> dims;
};
/// As they are in training: with adapters if `tune` has any.
template <class R>
ModelOps<R> read_model(const Reader<R>& reader, const ModelSpec& model, const std::optional<FineTune>& tune = {},
                       const std::optional<double>& expert_capacity = {});

class OperationSums;
/// `known`, if any, is of the same `ops`, chip and workload; only plain numbers use it.
template <class R>
NetworkCost<R> network_cost(const Reader<R>& reader, const ModelSpec& model, const ModelOps<R>& ops,
                            const ChipRates<R>& chip, const Workload& workload, const InnerDegrees& inner,
                            OperationSums* known = nullptr);

}  // namespace scalecalc
