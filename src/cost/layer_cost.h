// What one layer costs one chip for one microbatch, before data parallelism, pipeline and placement come in: time of
// its operations by binding resource, bytes it sends in each dimension, parameters it holds, tensors it keeps. It
// depends only on the inner degrees (tensor, context, expert) and the microbatch, so the planner computes it once for
// the many layouts that share them.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "cost/layout.h"
#include "cost/roofline.h"
#include "cost/workload.h"
#include "model/ops.h"

namespace scalecalc {

/// The inner degrees a layer's cost depends on.
struct InnerDegrees {
  std::int64_t tp = 1;
  std::int64_t cp = 1;
  std::int64_t ep = 1;
  std::int64_t etp = 1;
  std::int64_t micro_batch_seqs = 1;
  bool sp = false;
  friend auto operator<=>(const InnerDegrees&, const InnerDegrees&) = default;
};
InnerDegrees inner_of(const Layout& layout);

/// "layer", "MoE layer", "sliding layer", "mamba2-only layer": for explanations.
std::string label_of(const LayerKind& kind);

/// One phase (forward or backward) of a layer: its own work, and what it sends.
template <class R>
struct Phase {
  Work<R> work;
  R tp_gathers{0.0};            ///< all-gathers and reduce-scatters of tp_bytes (sequence sharding on)
  R tp_reduces{0.0};            ///< all-reduces of tp_bytes (sequence sharding off); a narrower one counts in part
  R etp_gathers{0.0};           ///< all-gathers and reduce-scatters of etp_bytes around the experts
  R cp_gathers{0.0};            ///< all-gathers or reduce-scatters of cp_bytes
  BytesOf<R> ep_bytes{R(0.0)};  ///< bytes a chip holds before all the phase's all-to-alls, summed over them
  R ep_exchanges{0.0};          ///< how many all-to-alls
};

template <class R>
struct LayerCost {
  Phase<R> forward;
  Phase<R> backward;                            ///< without recompute
  std::array<Phase<R>, kRematCount> recompute;  ///< added to the backward, by remat policy
  BytesOf<R> tp_bytes{R(0.0)};                  ///< one gathered activation of the tensor group
  BytesOf<R> etp_bytes{R(0.0)};
  BytesOf<R> cp_bytes{R(0.0)};                ///< keys and values of the whole sequence, or the states of all ranks
  R dense_parameters{0.0};                    ///< per chip, divided by tp, not yet by data ranks
  R expert_parameters{0.0};                   ///< per chip, divided by ep and etp
  R tied_parameters{0.0};                     ///< of the dense ones: the matrix that is the embedding's too
  std::array<BytesOf<R>, kRematCount> saved;  ///< kept per microbatch, by remat policy
  BytesOf<R> workspace{R(0.0)};               ///< gradients of the widest activations while the layer runs
};

/// Costs of everything a stage can hold: each layer kind, the embedding, the head, an MTP module.
template <class R>
struct NetworkCost {
  std::vector<LayerCost<R>> kinds;
  std::vector<std::string> labels;  ///< of the kinds
  LayerCost<R> embedding;
  LayerCost<R> head;
  LayerCost<R> mtp;             ///< projection and norms of one module; its layer and head come on top
  BytesOf<R> logits{R(0.0)};    ///< bf16 logits, fp32 softmax and bf16 gradient of one microbatch
  BytesOf<R> boundary{R(0.0)};  ///< activation one chip sends to the next pipeline stage
};

/// Operation lists of a model in one reading, built once.
template <class R>
struct ModelOps {
  std::vector<std::vector<Op<R>>> kinds;
  std::vector<Op<R>> embedding;
  std::vector<Op<R>> head;
  std::vector<Op<R>> mtp;
  ModelDims<R> dims;
};
template <class R>
ModelOps<R> read_model(const Reader<R>& reader, const ModelSpec& model);

template <class R>
NetworkCost<R> network_cost(const Reader<R>& reader, const ModelSpec& model, const ModelOps<R>& ops,
                            const ChipRates<R>& chip, const Workload& workload, const InnerDegrees& inner);

}  // namespace scalecalc
