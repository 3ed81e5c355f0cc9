// Time of one engine step, by cause: decoding, prefill, or both in one. One model on one placed layout; the
// coefficients of every operation are worked out once, so that a step of another batch or context costs a few
// multiplications (docs/model.md, [SERVE-STEP]).
//
// A batch is the sequences of one replica, over all its attention-data ranks and pipeline stages; replicas (dp) do not
// appear here.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "network/placement.h"
#include "serve/serve_work.h"
#include "serve/serving_system.h"

namespace scalecalc {

/// The tokens of one step of a replica.
struct ServeStep {
  double decode_sequences = 0;
  double tokens_each = 1;        ///< new tokens of each: 1, or 1 + drafted when it verifies a draft
  double context = 0;            ///< tokens each attends to, on average over the batch and its generation
  double prefill_sequences = 0;  ///< prompts in the step
  double prefill_tokens = 0;     ///< new tokens of each
  double cached = 0;             ///< tokens before them, already in the cache
  bool all_logits = false;       ///< of every token of a prompt, as losses and log-probabilities need; else of its last
};

/// What every request brings.
struct ServeLoad {
  double prompt = 0;  ///< tokens to prefill, those found in a cache aside
  double cached = 0;
  double generate = 1;
  double context = 0;   ///< mean tokens in the cache while decoding
  double chunk = 8192;  ///< most tokens of prompts in one step
};

/// Mean times of requests in steady state: request = ttft + (generate - 1) tpot, and a rank with n sequences in flight
/// finishes n / request a second (Little's law).
template <class R>
struct SteadyTimes {
  SecondsOf<R> tpot;       ///< a decode step and its share of the others' prompts
  SecondsOf<R> ttft;       ///< the steps that take the prompt in; with the wait for them where prompts fill every step
  SecondsOf<R> request;    ///< from the first step of the prompt to the last token
  bool saturated = false;  ///< prompts fill every step: more sequences wait longer, and no more of them finish
};

template <class R>
class ServingCost {
 public:
  /// `placement` is one of placed() below.
  ServingCost(const ServeBasis<R>& basis, const ServeLayout& layout, const Slice& slice, const Placement& placement);

  /// One token of every sequence (`new_tokens` with speculation), from the start of the step to its end. With pipeline
  /// stages: the time until the same sequence's next step, all stages busy with other sequences.
  ServeTime<R> decode_step(double batch, double context, double new_tokens = 1) const;
  /// `sequences` prompts of `tokens` each after `cached` tokens in the cache, start to end.
  ServeTime<R> prefill(double tokens, double cached = 0, double sequences = 1) const;
  /// A decode step that also takes `chunk` tokens of a prompt with `cached` tokens before them.
  ServeTime<R> mixed_step(double batch, double context, double chunk, double cached = 0) const;
  /// Any of these.
  ServeTime<R> step(const ServeStep& step) const;

  /// Seconds that a prompt keeps the whole replica busy when prompts follow each other: its pipeline stages and
  /// attention-data ranks work on several at a time.
  SecondsOf<R> prefill_occupancy(double tokens, double cached = 0) const;
  /// Continuous batching with `batch` sequences always in flight (docs/model.md [SERVE-STEADY]).
  SteadyTimes<R> steady(double batch, const ServeLoad& load) const;

  /// Weights and contexts that a decode step must read, at the data sheet's bandwidth: no step is faster.
  SecondsOf<R> floor(double batch, double context) const;

  const ServeLayout& layout() const { return layout_; }

 private:
  ServeTime<R> time(const StepRows<R>& rows) const;
  StepRows<R> replayed(StepRows<R> rows) const;

  ServeLayout layout_;
  StepTerms<R> terms_;
  double chunk_ways_ = 1;                           ///< ranks that a step's prompt tokens are divided among
  std::optional<FlopsPerSecondOf<R>> prompt_rate_;  ///< if --mfu says it
  std::optional<EngineRules> graphs_;               ///< if steps are captured, in batches that are known
  double launched_s_ = 0;                           ///< of the host, for a step that is not
};

/// Groups of a replica's sequences that one chip sees in turn or not at all: pipeline stages times attention-data
/// ranks.
double serve_lanes(const ServeLayout& layout);

/// Every way to place the layout on the slice; empty if its degrees do not divide the axes.
std::vector<Placement> placed(const HardwareSpec& hw, const Slice& slice, const ServeLayout& layout);
/// Of these the one whose step of 64 sequences is shortest. UserError if there is none.
Placement best_placement(const ServeBasis<double>& basis, const ServeLayout& layout, const Slice& slice);
/// Each group of more than one.
std::vector<PlacedGroup> described_placement(const HardwareSpec& hw, const Slice& slice, const Placement& placement);

/// The cost under the best placement.
ServingCost<double> serving_cost(const ServingSystem& system, const ServeLayout& layout, const Slice& slice);
ServingCost<double> serving_cost(const ServeBasis<double>& basis, const ServeLayout& layout, const Slice& slice);

// Bytes on the fullest chip of a replica, and how many sequences fit on the chips of every stage by the engine's own
// rule.

/// Bytes of one chip.
struct ServeMemoryParts {
  double weights = 0;
  double kv = 0;           ///< caches of the sequences, recurrent states included
  double activations = 0;  ///< at the peak of a step
  double graphs = 0;       ///< captured graphs and their buffers
  double reserve = 0;      ///< runtime, communication buffers, allocator
  double total() const { return weights + kv + activations + graphs + reserve; }
};

class ServeMemory {
 public:
  ServeMemory() = default;
  /// What a draft model takes of each chip beside it.
  struct Draft {
    double weights = 0;
    std::shared_ptr<const ServeMemory> cache;  ///< of one of its replicas
    double replicas = 1;                       ///< of them for one of the target's
    bool own_heads = false;                    ///< of the model itself
  };
  ServeMemory(const ServeBasis<double>& basis, const ServeLayout& layout, Draft draft);
  ServeMemory(const ServeBasis<double>& basis, const ServeLayout& layout) : ServeMemory(basis, layout, Draft{}) {}

  /// On the stage with most bytes, of a replica with so many sequences, each with `context` tokens in the cache.
  ServeMemoryParts parts(double batch, double context) const;
  double capacity() const { return capacity_; }
  /// Bytes that the engine's rule leaves for caches beside most weights; below 0: these do not fit.
  double cache_room() const;
  /// Bytes that the rule lets nobody use.
  double withheld() const;
  /// Bytes of one sequence on the chip that keeps most of it.
  double sequence_bytes(double context) const;
  /// Most sequences of a replica whose caches fit; 0 if not even one does.
  double max_batch(double context) const;
  /// Longest context of so many sequences; 0 if not even one token fits, infinite if none grows.
  double max_context(double batch) const;
  /// Of a replica that starts: for one sequence, or the longest that its engine is told of.
  double least_context(double context) const { return std::max(context, engine_.longest); }
  bool fits(double batch, double context) const { return batch <= max_batch(context); }
  /// Groups of ranks that keep sequences of their own.
  double sequence_groups() const { return batch_ways_; }
  /// "0.9 x 80 GiB - 16.1 GB weights - ... = 50.3 GB for the cache": the rule with the numbers of the stage of parts().
  std::string equation(double batch, double context) const;

 private:
  /// What chips of one pipeline stage keep, where no other stage keeps as much of all.
  struct Stage {
    double weights = 0;
    double room = 0;             ///< for caches
    bool runtime_binds = false;  ///< it needs more than the engine's rule leaves
    KvCache cache;               ///< of its layers or, if they are of one kind, of the model
    double cache_share = 1;      ///< of `cache`, that its layers keep
  };
  void give_room(Stage& stage) const;
  double sequence_bytes(const Stage& stage, double context) const;
  /// With most bytes of weights and caches.
  const Stage& fullest(double batch, double context) const;

  EngineRules engine_;
  Draft draft_;
  CacheFormat format_;
  ServeMemoryParts fixed_;  ///< all but weights and caches
  std::vector<Stage> stages_;
  double capacity_ = 0;
  double share_ = 1;         ///< of the engine's rule, for this layout
  double ways_ = 1;          ///< tensor ranks the cached heads divide over
  double batch_ways_ = 1;    ///< ranks that keep sequences of their own
  double context_ways_ = 1;  ///< ranks that each keep a part of every context
};

}  // namespace scalecalc
