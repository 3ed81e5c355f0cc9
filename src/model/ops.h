// One description of a network's work, read by training, memory, FLOPs accounting and explain alike: the list of
// operations of one layer, with shapes, what each keeps for the backward pass, and what each parallel dimension does
// to it. A new architecture feature is one change here.
//
// All sizes are per token of one layer; nothing here knows a chip or a layout.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/scalar.h"
#include "spec/model_spec.h"

namespace scalecalc {

/// The lookup whose table gives every layer a vector of its own: one row of it is read for a token.
inline constexpr std::string_view kPerLayerTable = "per-layer embedding lookup";
/// The same of the tables of hashed n-grams.
inline constexpr std::string_view kNgramTables = "n-gram embedding lookup";
/// Whether an operation looks rows up in a table whose others no token reads.
inline bool is_side_table(std::string_view name) { return name == kPerLayerTable || name == kNgramTables; }

enum class OpKind {
  kMatmul,         ///< [tokens, k] x [k, n]
  kGroupedMatmul,  ///< the same per routed expert, each on its share of the tokens
  kAttention,      ///< scores and weighted sum over the context
  kScan,           ///< a recurrence over the sequence with a state of constant size
  kVector,         ///< norms, activation functions, residual adds: reads, writes, few FLOPs
};

/// What the tensor dimension does to an operation.
enum class TpRule {
  kColumn,     ///< n is divided (QKV, gate, up, head)
  kRow,        ///< k is divided (output and down projections)
  kKvColumn,   ///< n is divided up to the number of groups (KV heads), replicated beyond
  kHeads,      ///< attention and recurrences: heads are divided
  kSequence,   ///< work on whole tokens: divided only when sequence sharding is on
  kExpert,     ///< divided by the expert dimensions instead
  kExpertRow,  ///< the same, for the expert's down projection: its contracted width is divided by etp, and what is as
               ///< wide as a token, its output or a dispatched copy, is whole on each rank of an expert
  kWhole,      ///< done in full on every tensor rank
};

enum class Part { kAttention, kMlp, kExperts, kRouter, kNorm, kEmbedding, kHead, kMtp, kTower };

/// Which tokens before it a query attends to.
enum class Reach {
  kAll,
  kWindow,  ///< the last `span`
  kChunk,   ///< those of its own piece of `span` tokens
  kChosen,  ///< the `span` that an indexer picks anywhere
  kBoth,    ///< all, those behind it too
  kAround,  ///< the `span` around it
  kFixed,   ///< `span`, however long the sequence
};

/// Until which remat policy a tensor stays in memory between forward and backward.
enum class Keep {
  kNever,         ///< the backward pass does not need it
  kWithoutRemat,  ///< kept by remat none only (vector work or a small matmul brings it back)
  kSelective,     ///< kept by none and selective (it costs a large matmul)
  kAlways,        ///< the layer's input: kept even by full remat
};

/// Whether what an operation keeps is a matmul's input, which recipes treat differently from other tensors.
enum class KeptInput {
  kNo,
  kGathered,  ///< divided by sequence; tensor ranks gather it first
  kGated,     ///< the product of an activation function and a gate
  kOther,
};

/// Whose software keeps what an operation says it keeps (StackMemory).
enum class KeptBy {
  kAll,
  kViews,    ///< where queries, keys and values are views of one projection, which stays beside what is rotated
  kPadding,  ///< where adapters of a part of that projection are written into zeros
};

/// In which passes tensor ranks sum what an operation gives them.
enum class SummedIn { kBoth, kForward, kBackward };

template <class R>
struct Op {
  std::string_view name;
  OpKind kind = OpKind::kMatmul;
  Part part = Part::kMlp;
  TpRule tp = TpRule::kColumn;
  bool tied = false;        ///< its matrix is the input embedding's, counted there
  bool frozen = false;      ///< its weights do not train: no gradient, no optimizer state
  R rows{1.0};              ///< rows per token: top_k for routed experts, else 1
  R k{0.0};                 ///< matmul: contracted width
  R n{0.0};                 ///< matmul: output width
  R matrices{1.0};          ///< weight matrices (experts); 1 otherwise
  R groups{1.0};            ///< kKvColumn: ways the output divides
  R values{0.0};            ///< of n, in a joint projection of keys and values: the values'
  R extra_parameters{0.0};  ///< biases, norm weights, sinks
  R qk_width{0.0};          ///< attention: heads x query/key dim
  R v_width{0.0};           ///< attention: heads x value dim
  R heads{0.0};             ///< attention with a softmax: query heads, which score every key
  Reach reach = Reach::kAll;
  R span{0.0};              ///< attention: tokens of the window, chunk or choice
  R reads{0.0};             ///< vector, scan: elements read per token; matmul: by a vector kernel behind it
  R writes{0.0};            ///< the same, written
  R flops{0.0};             ///< FLOPs of that kernel per token
  R recurrence{0.0};        ///< scan: FLOPs per token that conventions count, without the work inside chunks
  R state{0.0};             ///< scan: elements one sequence hands on from token to token
  bool by_element = false;  ///< scan: on the vector unit; otherwise small matmuls over chunks
  R shared{0.0};            ///< elements per token that context parallelism brings to every rank: keys and values
  R summed{0.0};            ///< elements per token summed over the tensor ranks before the layer's own output
  SummedIn summed_in = SummedIn::kBoth;
  R saved{0.0};  ///< elements per token the backward pass needs, produced by this op
  Keep keep = Keep::kNever;
  TpRule saved_tp = TpRule::kSequence;  ///< how the saved tensor is divided
  KeptInput input = KeptInput::kNo;
  bool masked = false;  ///< dropout follows the part that reads what is kept: a mask of a byte an element
  KeptBy kept_by = KeptBy::kAll;
  R repeats{1.0};          ///< keys and values: query heads to each, whose copies some software makes and keeps
  bool rms_input = false;  ///< what is kept is what an RMS norm reads, which some software widens
  bool unread = false;     ///< no weight gradient reads the matmul's input that is kept
  double adapters = 0;     ///< projections whose adapters read it; queries, keys and values are one

  R weight_parameters() const { return k * n * matrices; }
  /// Weights of its own.
  R parameters() const { return tied ? extra_parameters : weight_parameters() + extra_parameters; }
  /// Matmul FLOPs per token, forward: 2 x rows x k x n (book, chapter 4). Attention is counted by attention_flops.
  FlopsOf<R> matmul_flops() const { return FlopsOf<R>(R(2.0) * rows * k * n); }
};

template <class R>
struct AttentionDims {
  R heads, kv_heads, head_dim, v_head_dim;
};

/// Model dimensions in one reading; the names are those of the model file, so that sensitivity can ask for them.
template <class R>
struct ModelDims {
  R d_model, d_ff;
  AttentionDims<R> attention;  ///< of full and chunked layers; MLA: heads after the up-projections
  AttentionDims<R> local;      ///< of sliding layers
  R vocab, window, experts, top_k, d_ff_expert, d_ff_shared;
  R outputs;       ///< columns of the output head
  R expert_width;  ///< d_model, or the latent width the routed experts work in
};

template <class R>
ModelDims<R> read_dims(const Reader<R>& reader, const ModelSpec& model);

/// Operations of one layer in execution order.
template <class R>
std::vector<Op<R>> layer_ops(const ModelSpec& model, const LayerKind& kind, const ModelDims<R>& dims);

/// Embedding lookup, first stage.
template <class R>
std::vector<Op<R>> lookup_ops(const ModelSpec& model, const ModelDims<R>& dims);

/// Of a tower: one of its layers, which `count` are alike, or one of its ends, for one token of the sequence.
template <class R>
struct TowerPart {
  std::vector<Op<R>> ops;
  double count = 1;
  bool shown = true;       ///< whether it is given anything to read
  R width{0.0};            ///< of the tower's residual stream, for one token of the sequence
  std::int64_t heads = 0;  ///< that tensor ranks divide, with d_ff; 0: nothing they divide
  std::int64_t d_ff = 0;

  /// Whether so many tensor ranks divide it; else each has it whole.
  bool divides(std::int64_t tp) const { return heads > 0 && heads % tp == 0 && d_ff % tp == 0; }
  /// Tensor ranks that divide the weights of one of its operations.
  double weight_ways(const Op<R>& op, std::int64_t tp) const {
    const auto ranks = static_cast<double>(tp);
    if (op.part == Part::kEmbedding) return ranks;  // a table is divided by rows
    if (!divides(tp)) return 1;
    if (op.tp == TpRule::kKvColumn) return std::min(ranks, value_of(op.groups));
    return op.tp == TpRule::kColumn || op.tp == TpRule::kRow ? ranks : 1;
  }
};

/// As tensor ranks have what they do not divide: whole weights, and the positions of whole sequences.
template <class R>
void hold_whole(std::vector<Op<R>>& ops) {
  for (Op<R>& op : ops) {
    op.tp = op.saved_tp = TpRule::kSequence;
    op.groups = R(1.0);
  }
}

/// The first projection, layers and projector of each of the model's towers, in execution order; tensor ranks divide
/// layers as the model's own (Megatron-LM, vLLM), of the ends only the table of a vocabulary.
template <class R>
std::vector<TowerPart<R>> tower_parts(const ModelSpec& model);

/// All of them, layers that are alike as one operation with as many matrices.
template <class R>
std::vector<Op<R>> tower_ops(const ModelSpec& model);

/// What the first stage has beside its layers: lookup and towers.
template <class R>
std::vector<Op<R>> embedding_ops(const ModelSpec& model, const ModelDims<R>& dims);

/// Final norm, projection to the vocabulary and loss, last stage.
template <class R>
std::vector<Op<R>> head_ops(const ModelSpec& model, const ModelDims<R>& dims);

/// What one multi-token-prediction module adds besides its layer and its use of the head.
template <class R>
std::vector<Op<R>> mtp_ops(const ModelSpec& model, const ModelDims<R>& dims);

/// Tokens a query attends to on average in a causal sequence of `seq` tokens: half the sequence; under a window or a
/// choice of `span` tokens the span less half of its ramp-up; in chunks half a chunk (the last one may be shorter).
/// In both directions the sequence; around a token the span, less what its ends lack; or just the span.
template <class R>
R mean_context(Reach reach, const R& span, const R& seq) {
  if (reach == Reach::kFixed) return span;
  if (reach == Reach::kBoth) return seq;
  if (reach == Reach::kAround) {
    return value_of(span) >= 2 * value_of(seq) ? seq : span - span * span / (R(4.0) * seq);
  }
  if (reach == Reach::kAll || value_of(span) >= value_of(seq)) return seq / R(2.0);
  if (reach != Reach::kChunk) return span - span * span / (R(2.0) * seq);
  const R chunks(std::floor(value_of(seq) / value_of(span)));
  const R rest = seq - chunks * span;
  return (chunks * span * span + rest * rest) / (R(2.0) * seq);
}

/// Attention FLOPs per token, forward: 2 x context x (qk_width + v_width) (book, chapter 4).
template <class R>
FlopsOf<R> attention_flops(const Op<R>& op, const R& context) {
  return FlopsOf<R>(R(2.0) * context * (op.qk_width + op.v_width));
}

}  // namespace scalecalc
