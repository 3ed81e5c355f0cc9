// One description of a network's work, read by training, memory, FLOPs accounting and explain alike: the list of
// operations of one layer, with shapes, what each keeps for the backward pass, and what each parallel dimension does
// to it. A new architecture feature is one change here.
//
// All sizes are per token of one layer; nothing here knows a chip or a layout.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/scalar.h"
#include "spec/model_spec.h"

namespace scalecalc {

enum class OpKind {
  kMatmul,         ///< [tokens, k] x [k, n]
  kGroupedMatmul,  ///< the same per routed expert, each on its share of the tokens
  kAttention,      ///< scores and weighted sum over the context
  kVector,         ///< norms, activation functions, residual adds: reads, writes, few FLOPs
};

/// What the tensor dimension does to an operation.
enum class TpRule {
  kColumn,     ///< n is divided (QKV, gate, up, head)
  kRow,        ///< k is divided (output and down projections)
  kKvColumn,   ///< n is divided up to the number of KV heads, replicated beyond
  kHeads,      ///< attention: heads are divided
  kSequence,   ///< work on whole tokens: divided only when sequence sharding is on
  kExpert,     ///< divided by the expert dimensions instead
  kExpertRow,  ///< the same, for the expert's down projection: its contracted width is divided by etp
};

enum class Part { kAttention, kMlp, kExperts, kRouter, kNorm, kEmbedding, kHead, kMtp };

/// Until which remat policy a tensor stays in memory between forward and backward.
enum class Keep {
  kNever,         ///< the backward pass does not need it
  kWithoutRemat,  ///< kept by remat none only (cheap vector work brings it back)
  kSelective,     ///< kept by none and selective (it costs a matmul)
  kAlways,        ///< the layer's input: kept even by full remat
};

template <class R>
struct Op {
  std::string_view name;
  OpKind kind = OpKind::kMatmul;
  Part part = Part::kMlp;
  TpRule tp = TpRule::kColumn;
  R rows{1.0};              ///< rows per token: top_k for routed experts, else 1
  R k{0.0};                 ///< matmul: contracted width
  R n{0.0};                 ///< matmul: output width
  R matrices{1.0};          ///< weight matrices (experts); 1 otherwise
  R extra_parameters{0.0};  ///< biases, norm weights, sinks
  R qk_width{0.0};          ///< attention: heads x query/key dim
  R v_width{0.0};           ///< attention: heads x value dim
  R window{0.0};            ///< attention: tokens looked back at most; 0 = all
  R reads{0.0};             ///< vector: elements read per token
  R writes{0.0};            ///< vector: elements written per token
  R flops{0.0};             ///< vector: FLOPs per token
  R saved{0.0};             ///< elements per token the backward pass needs, produced by this op
  Keep keep = Keep::kNever;
  TpRule saved_tp = TpRule::kSequence;  ///< how the saved tensor is divided

  R weight_parameters() const { return k * n * matrices; }
  R parameters() const { return weight_parameters() + extra_parameters; }
  /// Matmul FLOPs per token, forward: 2 x rows x k x n (book, chapter 4). Attention is counted by attention_flops.
  FlopsOf<R> matmul_flops() const { return FlopsOf<R>(R(2.0) * rows * k * n); }
};

/// Model dimensions in one reading; the names are those of the model file, so that sensitivity can ask for them.
template <class R>
struct ModelDims {
  R d_model, d_ff, heads, kv_heads, head_dim, vocab, window, experts, top_k, d_ff_expert, d_ff_shared;
};

template <class R>
ModelDims<R> read_dims(const Reader<R>& reader, const ModelSpec& model);

/// Operations of one layer in execution order.
template <class R>
std::vector<Op<R>> layer_ops(const ModelSpec& model, const LayerKind& kind, const ModelDims<R>& dims);

/// Embedding lookup, first stage.
template <class R>
std::vector<Op<R>> embedding_ops(const ModelSpec& model, const ModelDims<R>& dims);

/// Final norm, projection to the vocabulary and loss, last stage. Tied embeddings have no weights of their own here.
template <class R>
std::vector<Op<R>> head_ops(const ModelSpec& model, const ModelDims<R>& dims);

/// What one multi-token-prediction module adds besides its layer and its use of the head.
template <class R>
std::vector<Op<R>> mtp_ops(const ModelSpec& model, const ModelDims<R>& dims);

/// Tokens a query attends to on average in a causal sequence of `seq` tokens: about half the sequence, or the window
/// (full - half of the ramp-up). With `causal` false the whole sequence or window, as the book counts it.
double mean_context(double seq, double window, bool causal);

/// Attention FLOPs per token, forward: 2 x context x (qk_width + v_width) (book, chapter 4).
template <class R>
FlopsOf<R> attention_flops(const Op<R>& op, const R& context) {
  return FlopsOf<R>(R(2.0) * context * (op.qk_width + op.v_width));
}

}  // namespace scalecalc
