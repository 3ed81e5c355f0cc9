// The operations of one engine step on one chip, each as the few coefficients its time needs: FLOPs and bytes per row,
// bytes of weights, bytes of cache per token of context. Same operation lists as training (model/ops.h).
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "cost/mesh.h"
#include "cost/op_term.h"
#include "cost/overlap.h"
#include "model/kv_cache.h"
#include "model/ops.h"
#include "network/channel.h"
#include "network/placement.h"
#include "serve/serving_system.h"

namespace scalecalc {

/// A step's time by cause; the causes sum to it.
template <class R>
struct ServeTime {
  SecondsOf<R> compute{R(0.0)};      ///< operations bound by FLOPs
  SecondsOf<R> weights{R(0.0)};      ///< matmuls bound by reading weights
  SecondsOf<R> kv{R(0.0)};           ///< attention bound by reading the cache
  SecondsOf<R> activations{R(0.0)};  ///< other operations bound by memory
  SecondsOf<R> collectives{R(0.0)};  ///< between tensor, context and expert ranks, as far as nothing hides them
  SecondsOf<R> pipeline{R(0.0)};     ///< sends between stages, and waiting for the fullest one
  SecondsOf<R> overhead{R(0.0)};     ///< of the engine: launches, scheduling, sampling on the host

  SecondsOf<R> local() const { return compute + weights + kv + activations; }
  SecondsOf<R> total() const { return local() + collectives + pipeline + overhead; }
};

/// Coefficients of serving in one reading.
template <class R>
struct ServingRates {
  BytesPerSecondOf<R> weights;  ///< at which matmuls of few rows read theirs
  BytesPerSecondOf<R> kv;       ///< at which attention reads the cache
  BytesPerSecondOf<R> other;
  R dequantise{1.0}, expert_read{1.0};  ///< on `weights`
  R blend{0.0};
  R overlap{1.0};    ///< share of a collective that runs under other work
  R imbalance{1.0};  ///< slowest expert rank over the mean
  SecondsOf<R> layer_overhead, step_overhead, sequence_overhead;
};
/// `chip` has the rates of training and gets those that engines reach in their place.
template <class R>
ServingRates<R> read_serving(const Reader<R>& reader, const HardwareSpec& hw, const Efficiency& efficiency,
                             DType attention, ChipRates<R>& chip);

/// Tokens of a step on one chip.
template <class R>
struct StepRows {
  R decode{0.0};     ///< new tokens of sequences that decode
  R sequences{0.0};  ///< these sequences
  R context{0.0};    ///< tokens each attends to
  R prefill{0.0};    ///< new tokens of prompts
  R prompts{0.0};    ///< these prompts
  R cached{0.0};     ///< tokens before each prompt's new ones
  R logits{0.0};     ///< rows that need the next token's probabilities
  R padding{0.0};    ///< rows of a captured graph that are nobody's: matmuls compute them, experts and caches do not
  R asked() const { return decode + prefill; }
  R rows() const { return asked() + padding; }
  /// One of `parts` equal parts, but for the logits, which are taken of all rows at once.
  StepRows part(double parts) const {
    if (parts == 1) return *this;
    const R each(1 / parts);
    return {decode * each, sequences * each, context, prefill * each, prompts * each, cached, logits, padding * each};
  }
};

/// Matmul with weights that every row passes.
template <class R>
struct DenseTerm {
  std::string_view name;
  R layers{1.0};
  std::vector<double> on_stages;  ///< of these, on each of StepTerms::mixes; empty: not of a layer, or one mix
  FlopsOf<R> flops;               ///< per row
  BytesOf<R> weight_bytes;
  BytesOf<R> row_bytes;  ///< activations per row
  FlopsPerSecondOf<R> rate;
  BytesPerSecondOf<R> bandwidth;
  bool logits = false;  ///< rows are those that need logits
};

/// Matmul of routed experts: rows spread over them, weights of those touched are read.
template <class R>
struct ExpertTerm {
  std::string_view name;
  R layers{1.0};
  std::vector<double> on_stages;
  MatmulTerm<R> matmul;  ///< of one expert's part on this chip
  BytesPerSecondOf<R> bandwidth;
  double experts = 1;  ///< of the model, copies counted
  double top_k = 1;
  double here = 1;  ///< experts on this chip
};

/// Attention over a cache, or a recurrence over a state.
template <class R>
struct CacheTerm {
  std::string_view name;
  R layers{1.0};
  std::vector<double> on_stages;
  FlopsOf<R> decode_flops;     ///< per row and token of context
  FlopsOf<R> prefill_flops;    ///< the same in the form prompts use
  FlopsOf<R> row_flops;        ///< per row whatever the context
  FlopsOf<R> cached_flops;     ///< per token before a prompt's, whose latent is expanded again
  BytesOf<R> token_bytes;      ///< of cache per sequence and token of context
  BytesOf<R> state_bytes;      ///< read and written per sequence and step
  BytesOf<R> row_bytes;        ///< activations per row
  FlopsPerSecondOf<R> rate;    ///< in long contexts
  R half_context{0.0};         ///< tokens of context with which it is half of that
  bool latent_beyond = false;  ///< prompts' tokens past the span use decoding's form
  Reach reach = Reach::kAll;
  R span{0.0};
  R context_ways{1.0};  ///< ranks a context is divided over

  FlopsPerSecondOf<R> prompt_rate(const R& context) const {
    return value_of(half_context) > 0 ? rate * shape_share(context, half_context) : rate;
  }
};

/// Tokens a new one attends to when `context` are before it.
template <class R>
R reached(const CacheTerm<R>& term, const R& context) {
  if (term.reach == Reach::kFixed) return term.span;
  if (term.reach == Reach::kAll || term.reach == Reach::kBoth || value_of(context) <= value_of(term.span))
    return context;
  return term.reach == Reach::kChunk ? term.span / R(2.0) : term.span;
}

/// Norms, activation functions, sampling.
template <class R>
struct VectorTerm {
  std::string_view name;
  R layers{1.0};
  std::vector<double> on_stages;
  FlopsOf<R> flops;  ///< per row
  BytesOf<R> bytes;  ///< per row
  bool logits = false;
};

/// One kind of collective of a step.
template <class R>
struct CollectiveTerm {
  std::string_view name;
  R times{1.0};
  std::vector<double> on_stages;
  SecondsOf<R> latency;
  SecondsOf<R> per_row;
  SecondsOf<R> ramp;         ///< of the first MB, in proportion
  BytesOf<R> row_bytes;      ///< that `ramp` counts
  SecondsOf<R> fixed;        ///< whatever the rows: gathered weights
  bool latency_adds = true;  ///< otherwise the larger of latency and transfer counts
  bool logits = false;
  bool of_experts = false;  ///< what attention-data ranks and expert ranks exchange
  bool of_prompts = false;  ///< of towers, which only tokens of prompts have passed
};

/// Everything a step of one layout needs.
template <class R>
struct StepTerms {
  std::vector<DenseTerm<R>> dense;
  std::vector<ExpertTerm<R>> experts;
  std::vector<CacheTerm<R>> caches;
  std::vector<VectorTerm<R>> vectors;
  std::vector<CollectiveTerm<R>> collectives;
  std::vector<DenseTerm<R>> towers;          ///< per token of a prompt, in proportion to the images it has
  std::vector<VectorTerm<R>> tower_vectors;  ///< the same
  SecondsOf<R> stage_send_latency{R(0.0)};
  SecondsOf<R> stage_send_per_row{R(0.0)};
  FlopsPerSecondOf<R> vector_rate;
  BytesPerSecondOf<R> peak_bandwidth;  ///< of the data sheet
  BytesOf<R> onchip;                   ///< that an operation's activations may stay in
  ServingRates<R> rates;
  R layers{1.0};
  R stages{1.0};
  R uneven{1.0};                    ///< layers of the fullest stage over the mean
  std::vector<LayersByKind> mixes;  ///< of fullest_stages(), where layers differ; empty: `uneven` tells all of them
  double parts = 1;    ///< that a step's rows are cut into: one works while experts exchange the other's rows
  R paired{0.0};       ///< share of that exchange which can run under the other's work
  R contention{0.0};   ///< of the work, lost while it does
  double sharing = 1;  ///< attention-data ranks whose rows meet at the experts
  std::shared_ptr<const ExpertChances> chances;  ///< null: every expert as likely
};

template <class R>
struct ServeBasis;
template <class R>
StepTerms<R> step_terms(const ServeBasis<R>& basis, const ServeLayout& layout, const Slice& slice,
                        const Placement& placement);

/// Experts of this chip that at least one of `tokens` tokens goes to, of all ranks that share them: the mean rank's.
template <class R>
double touched_here(const StepTerms<R>& terms, const ExpertTerm<R>& term, double tokens);

template <class R>
ServeTime<R> time_of(const StepTerms<R>& terms, const StepRows<R>& rows);
/// FLOPs of the prompts of a step on the chips of one rank of every stage, as many layers as the fullest has on each.
template <class R>
FlopsOf<R> prompt_flops(const StepTerms<R>& terms, const StepRows<R>& rows);

// What every layout of one system has in common: operation lists, rates. Read once, used for thousands of layouts.

/// The layers of one kind.
template <class R>
struct KindOps {
  LayerKind kind;
  double layers = 0;
  std::vector<Op<R>> ops;
  std::size_t index = 0;  ///< among the model's kinds
};

template <class R>
struct ServeBasis {
  /// Keeps the pointers of `system`.
  ServeBasis(const Reader<R>& reader, const ServingSystem& system);

  /// Format that matmuls with weights of so many bits compute in: parts stored in 16 bits or more compute in them.
  DType format_of(double bits) const;
  /// Bits of the format of most weights of a part, which decides what they compute in.
  double format_bits(Part part, const LayerKind* kind) const;
  /// Where the scales of its operands come from, in formats of 8 bits.
  Scaling scaling(Part part, const LayerKind* kind) const;
  /// Bits of a weight of this part of a layer of this kind, on average; no kind: embedding and head.
  double stored_bits(Part part, const LayerKind* kind) const;

  ServingSystem system;
  ModelDims<R> dims;
  ChipRates<R> chip;
  ServingRates<R> rates;
  NetworkRates<R> network;
  OverlapRates<R> overlap;  ///< of which training's and serving's the same: a second microbatch and its contention
  BytesPerSecondOf<R> peak_bandwidth;  ///< of the data sheet
  BytesOf<R> onchip;                   ///< that activations of a step may stay in
  std::vector<KindOps<R>> kinds;
  std::vector<Op<R>> embedding, head;
  std::vector<TowerPart<R>> towers;
  std::shared_ptr<const ExpertChances> chances;  ///< null: every expert as likely
  KvCache cache;
};

}  // namespace scalecalc
