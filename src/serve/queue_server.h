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
#include <vector>

#include "serve/gap_log.h"
#include "serve/step_load.h"

namespace scalecalc {

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
  void drain();

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
