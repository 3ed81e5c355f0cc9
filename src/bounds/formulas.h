// The scaling book's rules of thumb for training: chapter 5, "How to Parallelize a Transformer for Training", and
// chapters 4, 6 and 12 for the run as a whole. `bounds` and `train --explain` print the same ones.
//
// A layer is two matmuls of d_model x F: gating, attention and latencies are left out, communication hides under
// computation, n chips share the B tokens of a batch. The book writes bf16; here a factor (b / 2) stands for what is
// sent in another format than two bytes, and is one otherwise. Of a layer with experts, F is what one token uses (top_k
// experts) and `sparsity` E / k says how many times more weights there are (chapter 12); 1 if dense.
#pragma once

#include <optional>
#include <string>

#include "base/scalar.h"
#include "spec/model_spec.h"

namespace scalecalc::rules {

/// The feed-forward of the kind of layer most layers of a model are.
struct LayerShape {
  Traced layers;         ///< L: all of them
  Traced d_model;        ///< D
  Traced width;          ///< F of what one token uses
  Traced total_width;    ///< F of all weights
  Traced sparsity{1.0};  ///< E / k
  std::optional<Traced> experts, top_k, expert_d_ff;
  bool gated = true;
  std::string left_out;  ///< layers and matmuls of the model that the shape does not describe; empty if none
};
/// Nothing if most layers have no feed-forward.
std::optional<LayerShape> layer_shape(const ModelSpec& model);

/// Tokens per chip above which data parallelism is compute-bound: 8 B D F / (n C) > 8 s D F (b / 2) / (W M), so
/// B / n > s (b / 2) alpha / M with alpha = C / W. FSDP has the same ratio in each pass. Ch. 5 Data Parallelism, FSDP.
template <class R>
R data_limit(const FlopsPerByteOf<R>& alpha, const R& scale, const R& axes, const R& sparsity) {
  return sparsity * scale * alpha.value() / axes;
}

/// Chips over which tensor parallelism stays compute-bound: 4 B D F / (Y C) > 4 B D (b / 2) / (W M), so
/// Y < M F / alpha / (b / 2), whatever the batch. Ch. 5 Tensor Parallelism.
template <class R>
R tensor_limit(const FlopsPerByteOf<R>& alpha, const R& scale, const R& axes, const R& width) {
  return axes * width / (scale * alpha.value());
}

/// What a split into X ranks of FSDP and Y of tensor parallelism moves: weights over M_X axes, activations over M_Y.
template <class R>
struct MixedSplit {
  FlopsPerByteOf<R> alpha;
  R weight_scale{1.0}, activation_scale{1.0};  ///< b / 2 of each
  R data_axes{1.0}, tensor_axes{1.0};          ///< M_X, M_Y
  R width{1.0};                                ///< F
  R sparsity{1.0};                             ///< E / k
};

/// X where both exchanges take equally long, 4 s D F / (Y W M_X) = 4 B D / (X W M_Y): sqrt((B / F) (M_X / M_Y) n).
/// Ch. 5 Combining FSDP and Tensor Parallelism.
template <class R>
R optimal_data_ranks(const MixedSplit<R>& s, const R& batch, const R& chips) {
  const R activations = s.activation_scale * batch / s.tensor_axes;
  const R weights = s.weight_scale * s.sparsity * s.width;
  return sqrt(s.data_axes * activations / weights * chips);
}

/// Tokens per chip above which that split is compute-bound: alpha^2 / (M_X M_Y F).
template <class R>
R mixed_limit(const MixedSplit<R>& s) {
  const R sent = s.sparsity * s.weight_scale * s.activation_scale;
  return sent * s.alpha.value() * s.alpha.value() / (s.data_axes * s.tensor_axes * s.width);
}

/// T_math / T_comms of the split at its best: sqrt(B F M_X M_Y / n) / alpha, the root of how many times the limit the
/// batch is.
template <class R>
R mixed_math_over_comms(const MixedSplit<R>& s, const R& tokens_per_chip) {
  return sqrt(tokens_per_chip / mixed_limit(s));
}

/// 6 P tokens: two FLOPs per parameter and token forward, four backward. Ch. 4.
template <class R>
FlopsOf<R> training_flops(const R& parameters, const R& tokens) {
  return FlopsOf<R>(R(6.0) * parameters * tokens);
}

/// Ch. 6, Counting parameters and FLOPs.
template <class R>
SecondsOf<R> run_time(const FlopsOf<R>& flops, const R& chips, const FlopsPerSecondOf<R>& peak, const R& mfu) {
  return flops / (peak * (chips * mfu));
}

}  // namespace scalecalc::rules
