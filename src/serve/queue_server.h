// One engine as a scheduler sees it: a queue, a cache in blocks, steps one after another.
//
// Requests are served first come, first served. A step decodes one token of every running sequence, computes chunks of
// prompts, or both (Batching). When the cache has no block for a next token, the sequence that joined last goes back to
// the head of the queue and recomputes all its tokens later (vLLM, arXiv:2309.06180 section 4.5). Between two changes
// decode steps differ in context alone; such runs are taken at once, exactly if a step's time is linear over the run,
// and to a part in 10^7 of a step otherwise.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "base/stop.h"

namespace scalecalc {

/// What a step of an inference engine computes, and how long it takes: all that queueing knows of an engine.
struct StepLoad {
  double sequences = 0;        ///< decoding, one token each
  double context_tokens = 0;   ///< keys they attend to, their own token included, all sequences together
  double prompts = 0;          ///< with a chunk in the step
  double prefill_tokens = 0;   ///< of prompts, all chunks together
  double prefill_context = 0;  ///< keys a prefill token attends to on average: o + (c + 1) / 2 in a chunk of c after o
};

/// Seconds of one step; positive, not falling in any member of the load.
using StepSeconds = std::function<double(const StepLoad&)>;

/// What joins a step. Orca (OSDI 2022) section 4: a scheduler that decides anew each iteration.
enum class Batching {
  kChunkedPrefill,  ///< decodes first, chunks of prompts fill the budget: Sarathi-Serve (arXiv:2403.02310) section 4
  kPrefillFirst,    ///< prompts in steps of their own, before any decode: vLLM (arXiv:2309.06180) as published
};

/// When a request may join.
enum class Admission {
  kPromptFits,   ///< its prompt fits; it may be evicted later
  kRequestFits,  ///< prompt and whole generation fit, nobody is evicted: TensorRT-LLM's GUARANTEED_NO_EVICT
};

/// The scheduler's limits. Defaults are vLLM's.
struct QueueRules {
  Batching batching = Batching::kChunkedPrefill;
  Admission admission = Admission::kPromptFits;
  std::int64_t token_budget = 8192;   ///< tokens a step computes at most
  std::int64_t prompt_chunk = 8192;   ///< of one prompt; less than the budget where ranks take prompts of their own
  std::int64_t most_sequences = 256;  ///< sequences with memory at once
  double kv_tokens = 0;               ///< tokens the cache holds
  std::int64_t block_tokens = 16;     ///< the cache is given out in blocks: vLLM section 4
  double prefix_hit = 0;              ///< share of a prompt found in the cache, in whole blocks; never its last token
  double kv_kept_free = 0.01;         ///< of the cache, for those that run, when another joins: vLLM's watermark
};

/// Tokens the cache's whole blocks hold.
inline std::int64_t cache_tokens(const QueueRules& rules) {
  return static_cast<std::int64_t>(rules.kv_tokens) / rules.block_tokens * rules.block_tokens;
}

/// Tokens of a prompt that need no prefill.
inline std::int64_t cached_tokens(const QueueRules& rules, std::int64_t prompt) {
  const auto hit = static_cast<std::int64_t>(rules.prefix_hit * static_cast<double>(prompt));
  const std::int64_t whole_blocks = hit / rules.block_tokens * rules.block_tokens;
  return whole_blocks < prompt ? whole_blocks : prompt - 1;
}

// The times between the tokens of all sequences, kept as runs: a decode step's time rises evenly with the context, so
// millions of gaps are thousands of runs.
class GapLog {
 public:
  void add(double seconds, std::int64_t times = 1) { add_run(seconds, seconds, 1, times); }
  /// `steps` gaps evenly spaced from `first` to `last` seconds, each `times` over.
  void add_run(double first, double last, std::int64_t steps, std::int64_t times);
  void add_all(const GapLog& other);

  std::int64_t count() const { return count_; }
  double mean() const;
  /// The smallest gap that a share `p` of all does not exceed (nearest rank), to a part in 10^9.
  double quantile(double p) const;

 private:
  struct GapRun {
    double low;
    double high;
    std::int64_t steps;
    std::int64_t times;

    std::int64_t up_to(double seconds) const;
  };

  std::vector<GapRun> runs_;
  std::int64_t count_ = 0;
  double sum_ = 0;
};

/// A request as it comes to a server.
struct QueueJob {
  std::size_t id = 0;
  double arrival_s = 0;
  std::int64_t prompt = 1;
  std::int64_t generate = 1;
  /// Tokens made elsewhere: the prompt's cache comes with the job, which decodes at once.
  std::int64_t generated = 0;
  double last_token_s = 0;  ///< when the last of them was made
};

struct ServedJob {
  std::size_t id = 0;
  double admitted_s = 0;     ///< the first time
  double first_token_s = 0;  ///< of those made here
  double finished_s = 0;
};

struct ServerTotals {
  double busy_s = 0;
  double in_system_s = 0;  ///< jobs in the system times seconds
  std::int64_t steps = 0;
  std::int64_t decode_steps = 0;  ///< that decode, mixed ones too
  std::int64_t decode_tokens = 0;
  std::int64_t prefill_tokens = 0;  ///< computed, again after an eviction too
  std::int64_t evictions = 0;
  std::int64_t recomputed_tokens = 0;
};

class QueueServer {
 public:
  QueueServer(const StepSeconds& seconds, const QueueRules& rules);

  /// A job needs room for its last step, alone: whole_blocks(prompt + generate - 1) <= blocks of the cache.
  void submit(const QueueJob& job);
  /// Runs every step that starts before `time_s`.
  void advance_until(double time_s);
  /// Throws Stopped when asked to end.
  void drain(const Stop& stop);

  std::int64_t in_system() const { return static_cast<std::int64_t>(running_.size() + waiting_.size()); }
  const std::vector<ServedJob>& served() const { return served_; }
  const ServerTotals& totals() const { return totals_; }
  const GapLog& gaps() const { return gaps_; }

 private:
  struct Sequence {
    QueueJob job;
    ServedJob record;
    std::int64_t target = 0;     ///< tokens to have in the cache before it decodes
    std::int64_t prefilled = 0;  ///< of them
    std::int64_t blocks = 0;
    bool brings_cache = false;
    bool was_admitted = false;

    bool decodes() const { return prefilled == target; }
  };
  struct Chunk {
    std::size_t sequence;
    std::int64_t tokens;
  };

  std::int64_t blocks_of(std::int64_t tokens) const;
  void step(double until);
  void admit_transferred();
  bool may_join(const Sequence& sequence) const;
  void join(Sequence sequence);
  bool evict_for_decode();
  void evict_last();
  void choose_chunks(std::int64_t budget, bool admit);
  StepLoad decode_load() const;
  void add_chunks(StepLoad& load) const;
  void mixed_step(bool decode);
  void decode_run(double until);
  std::int64_t blocks_wanted_after(std::int64_t steps) const;
  std::int64_t steps_before_change() const;
  void pass_time(double seconds, std::int64_t steps, double sequences);
  void tokens_made(std::int64_t steps, double first_step_end);
  void finish_chunks();
  void remove_finished();

  const StepSeconds& seconds_;
  QueueRules rules_;
  std::int64_t free_blocks_;
  std::int64_t all_blocks_;
  double clock_ = 0;
  std::deque<Sequence> waiting_;
  std::vector<Sequence> running_;  ///< in the order they joined
  std::vector<Chunk> chunks_;      ///< of the step under way
  std::int64_t last_run_ = 1;      ///< steps of the last run found linear
  std::vector<ServedJob> served_;
  ServerTotals totals_;
  GapLog gaps_;
};

}  // namespace scalecalc
