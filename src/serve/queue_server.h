// One engine as a scheduler sees it: a queue, a cache in blocks, steps one after another.
//
// Requests are served first come, first served. A step decodes one token of every running sequence, computes chunks of
// prompts, or both (Batching). When the cache has no block for a next token, the sequence that joined last goes back to
// the head of the queue and recomputes all its tokens later (vLLM, arXiv:2309.06180 section 4.5). Between two changes
// decode steps differ in context alone; such runs are taken at once, exactly if a step's time is linear over the run,
// and to a part in 10^7 of a step otherwise.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "base/stop.h"
#include "serve/prefix_cache.h"

namespace scalecalc {

/// What a step of an inference engine computes, and how long it takes: all that queueing knows of an engine.
struct StepLoad {
  double sequences = 0;        ///< decoding, one token each
  double context_tokens = 0;   ///< keys they attend to, their own token included, all sequences together
  double prompts = 0;          ///< with a chunk in the step
  double prefill_tokens = 0;   ///< of prompts, all chunks together
  double largest_chunk = 0;    ///< tokens of the largest; 0: all are alike
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

/// Where prefixes go that the chips' memory has no room for. They are fetched layer by layer under the step that takes
/// the prompt up, which ends no sooner (vLLM's KV connectors).
struct PrefixStore {
  double host_tokens = 0, disk_tokens = 0;
  double host_token_s = 0, disk_token_s = 0;  ///< of fetching one
};

/// The scheduler's limits. Defaults are vLLM's.
struct QueueRules {
  Batching batching = Batching::kChunkedPrefill;
  Admission admission = Admission::kPromptFits;
  std::int64_t token_budget = 8192;   ///< tokens a step computes at most
  std::int64_t prompt_chunk = 8192;   ///< of one prompt; less than the budget where ranks take prompts of their own
  std::int64_t lanes = 1;             ///< ranks and stages that take sequences and prompts of their own
  std::int64_t most_sequences = 256;  ///< sequences with memory at once
  double kv_tokens = 0;               ///< tokens the cache holds
  std::int64_t block_tokens = 16;     ///< the cache is given out in blocks: vLLM section 4
  double prefix_hit = 0;              ///< share of a prompt found in the cache, in whole blocks; never its last token
  PrefixStore prefix_store{};         ///< of prompts that say what they share
  double kv_kept_free = 0.01;         ///< of the cache, for those that run, when another joins: vLLM's watermark
  /// Decode steps between two looks for new requests; a step with a prompt is followed by one, an idle server looks at
  /// once: SGLang's scheduler_recv_interval.
  std::int64_t receive_interval = 1;
  /// Decode steps that prompts wait at most, where somebody decodes, until a share of the budget is full:
  /// TensorRT-LLM's batch_wait_timeout_iters and batch_wait_max_tokens_ratio.
  std::int64_t prompt_wait_steps = 0;
  double prompt_wait_share = 1;
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
  /// The smallest gap that a share `p` of all does not exceed (nearest rank), to a part in 10^9; of more than 65,536
  /// runs to one in 1,024.
  double quantile(double p) const;

 private:
  struct GapRun {
    double low;
    double high;
    std::int64_t steps;
    std::int64_t times;

    std::int64_t up_to(double seconds) const;
  };

  void fold();
  void count_in_bins(const GapRun& run);

  std::vector<GapRun> runs_;
  /// Of more runs than are worth keeping: gaps by power of two, each divided evenly.
  std::vector<std::int64_t> bins_;
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
  PromptBlocks blocks{};
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
  std::int64_t evictions = 0;
  std::int64_t recomputed_tokens = 0;
  std::int64_t prompt_tokens = 0;                                 ///< of all that were admitted
  std::array<std::int64_t, PrefixCache::kPlaces> found_tokens{};  ///< of these, by where they were found
};

class QueueServer {
 public:
  QueueServer(const StepSeconds& seconds, const QueueRules& rules);

  /// A job needs room for its last step, alone: whole_blocks(prompt + generate - 1) <= blocks of the cache.
  void submit(const QueueJob& job);
  /// Steps until something changes, or one ends at `until_s` or later; somebody is there.
  void step(double until_s);

  double clock_s() const { return clock_; }
  std::int64_t in_system() const { return static_cast<std::int64_t>(running_.size() + waiting_.size()); }
  /// Those that have ended since it was asked last.
  std::vector<ServedJob> take_served() { return std::exchange(served_, {}); }
  /// Tokens of a prompt that it keeps.
  std::int64_t kept_tokens(const PromptBlocks& blocks, std::int64_t prompt) const;
  const ServerTotals& totals() const { return totals_; }
  const GapLog& gaps() const { return gaps_; }

 private:
  struct Sequence {
    QueueJob job;
    ServedJob record;
    std::int64_t target = 0;     ///< tokens to have in the cache before it decodes
    std::int64_t prefilled = 0;  ///< of them
    std::int64_t blocks = 0;
    std::int64_t shared = 0;  ///< of them in `prefixes_`
    std::size_t ids = 0;      ///< of the prompt, these
    std::int64_t found = 0;   ///< tokens that needed no prefill
    bool brings_cache = false;
    bool was_admitted = false;

    bool decodes() const { return prefilled == target; }
  };
  struct Chunk {
    std::size_t sequence;
    std::int64_t tokens;
  };

  std::int64_t blocks_of(std::int64_t tokens) const;
  void look_for_requests();
  bool prompts_wait(std::int64_t decoding);
  void admit_transferred();
  bool may_join(const Sequence& sequence) const;
  void join(Sequence sequence);
  void use_prefix(Sequence& sequence);
  void add_prefix(Sequence& sequence);
  void leave_blocks(Sequence& sequence);
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
  std::int64_t free_blocks_;  ///< that no sequence uses; prefixes may lie in them
  std::int64_t all_blocks_;
  PrefixCache prefixes_;
  double fetch_s_ = 0;  ///< of prefixes, for the step under way
  double clock_ = 0;
  std::deque<Sequence> waiting_;
  std::vector<Sequence> running_;  ///< in the order they joined
  std::vector<Chunk> chunks_;      ///< of the step under way
  std::size_t received_ = 0;       ///< the first so many of `waiting_` are known to the scheduler
  std::int64_t until_look_ = 0;    ///< decode steps before it looks for others
  std::int64_t waited_ = 0;        ///< decode steps that prompts have waited for others
  bool prompts_wait_ = false;      ///< they do, during the step under way
  std::int64_t last_run_ = 1;      ///< steps of the last run found linear
  std::vector<ServedJob> served_;
  ServerTotals totals_;
  GapLog gaps_;
};

}  // namespace scalecalc
