#include "serve/queue_server.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace scalecalc {

std::int64_t GapLog::GapRun::up_to(double seconds) const {
  if (seconds < low) return 0;
  if (seconds >= high) return steps * times;
  const double position = (seconds - low) / (high - low) * static_cast<double>(steps - 1);
  return std::min(static_cast<std::int64_t>(position) + 1, steps) * times;
}

void GapLog::add_run(double first, double last, std::int64_t steps, std::int64_t times) {
  if (steps <= 0 || times <= 0) return;
  count_ += steps * times;
  sum_ += (first + last) / 2 * static_cast<double>(steps * times);
  if (steps == 1 && !runs_.empty() && runs_.back().steps == 1 && runs_.back().low == first) {
    runs_.back().times += times;
    return;
  }
  runs_.push_back({std::min(first, last), std::max(first, last), steps, times});
}

void GapLog::add_all(const GapLog& other) {
  runs_.insert(runs_.end(), other.runs_.begin(), other.runs_.end());
  count_ += other.count_;
  sum_ += other.sum_;
}

double GapLog::mean() const { return count_ > 0 ? sum_ / static_cast<double>(count_) : 0; }

double GapLog::quantile(double p) const {
  check(count_ > 0, "a quantile is of something");
  const auto rank = std::max<std::int64_t>(static_cast<std::int64_t>(std::ceil(p * static_cast<double>(count_))), 1);
  double low = std::numeric_limits<double>::infinity();
  double high = 0;
  for (const GapRun& run : runs_) {
    low = std::min(low, run.low);
    high = std::max(high, run.high);
  }
  // Halving, with the runs that lie on one side taken out of the search.
  std::vector<GapRun> open = runs_;
  std::int64_t below = 0;
  while (high - low > 1e-9 * high) {
    const double middle = low + (high - low) / 2;
    std::int64_t found = below;
    for (const GapRun& run : open) found += run.up_to(middle);
    if (found >= rank) {
      high = middle;
      std::erase_if(open, [&](const GapRun& run) { return run.low > middle; });
    } else {
      low = middle;
      std::erase_if(open, [&](const GapRun& run) {
        if (run.high > middle) return false;
        below += run.steps * run.times;
        return true;
      });
    }
  }
  return high;
}

namespace {

/// Steps whose times lie on a line: step i takes first + slope i.
struct LinearRun {
  std::int64_t steps = 1;
  double first = 0;
  double slope = 0;

  double step(std::int64_t i) const { return first + slope * static_cast<double>(i); }
  double seconds(std::int64_t n) const {
    const auto count = static_cast<double>(n);
    return count * first + slope * (count * (count - 1) / 2);
  }
};

/// The longest run found by halving, of at most `most` steps of which each adds a key per sequence.
LinearRun linear_run(const StepSeconds& seconds, const StepLoad& load, std::int64_t most) {
  constexpr double kOnLine = 1e-7;
  const auto at = [&](std::int64_t i) {
    StepLoad later = load;
    later.context_tokens += load.sequences * static_cast<double>(i);
    return seconds(later);
  };
  LinearRun run{.steps = most, .first = at(0)};
  if (most == 1) return run;
  double last = at(most - 1);
  for (;;) {
    run.slope = (last - run.first) / static_cast<double>(run.steps - 1);
    if (run.steps == 2) return run;
    const std::int64_t middle = (run.steps - 1) / 2;
    const double there = at(middle);
    if (std::abs(there - run.step(middle)) <= kOnLine * there) return run;
    run.steps = middle + 1;
    last = there;
  }
}

/// The fewest steps, at least one, that take `seconds` or more; all of them if none do.
std::int64_t steps_to_pass(const LinearRun& run, double seconds) {
  std::int64_t low = 1;
  std::int64_t high = run.steps;
  while (low < high) {
    const std::int64_t tried = low + (high - low) / 2;
    if (run.seconds(tried) >= seconds) {
      high = tried;
    } else {
      low = tried + 1;
    }
  }
  return low;
}

}  // namespace

QueueServer::QueueServer(const StepSeconds& seconds, const QueueRules& rules) : seconds_(seconds), rules_(rules) {
  check(rules.token_budget > 0 && rules.prompt_chunk > 0 && rules.most_sequences > 0 && rules.block_tokens > 0,
        "a server can run something");
  all_blocks_ = static_cast<std::int64_t>(rules.kv_tokens / static_cast<double>(rules.block_tokens));
  free_blocks_ = all_blocks_;
}

std::int64_t QueueServer::blocks_of(std::int64_t tokens) const {
  return (tokens + rules_.block_tokens - 1) / rules_.block_tokens;
}

void QueueServer::submit(const QueueJob& job) {
  check(blocks_of(job.prompt + job.generate - 1) <= all_blocks_, "a job fits the cache");
  if (in_system() == 0) clock_ = std::max(clock_, job.arrival_s);
  totals_.in_system_s += std::max(clock_ - job.arrival_s, 0.0);  // it came during the step under way
  Sequence sequence{.job = job, .record = {.id = job.id}};
  sequence.brings_cache = job.generated > 0;
  sequence.target = job.prompt + std::max<std::int64_t>(job.generated - 1, 0);
  waiting_.push_back(std::move(sequence));
}

void QueueServer::advance_until(double time_s) {
  while (in_system() > 0 && clock_ < time_s) step(time_s);
}

void QueueServer::drain(const Stop& stop) {
  while (in_system() > 0) {
    if (should_stop(stop)) throw Stopped();
    step(std::numeric_limits<double>::infinity());
  }
}

void QueueServer::step(double until) {
  admit_transferred();
  if (rules_.batching == Batching::kPrefillFirst) {
    choose_chunks(rules_.token_budget, true);
    if (!chunks_.empty()) return mixed_step(false);
    evict_for_decode();
    return decode_run(until);
  }
  const bool evicted = evict_for_decode();
  const auto decoding = std::count_if(running_.begin(), running_.end(), [](const Sequence& s) { return s.decodes(); });
  choose_chunks(rules_.token_budget - decoding, !evicted);
  if (!chunks_.empty()) return mixed_step(true);
  decode_run(until);
}

void QueueServer::admit_transferred() {
  while (!waiting_.empty() && waiting_.front().brings_cache && may_join(waiting_.front())) {
    Sequence sequence = std::move(waiting_.front());
    waiting_.pop_front();
    sequence.prefilled = sequence.target;
    join(std::move(sequence));
  }
}

bool QueueServer::may_join(const Sequence& sequence) const {
  if (static_cast<std::int64_t>(running_.size()) >= std::min(rules_.most_sequences, rules_.token_budget)) return false;
  const std::int64_t whole = sequence.job.prompt + sequence.job.generate - 1;
  const std::int64_t wanted = blocks_of(rules_.admission == Admission::kRequestFits ? whole : sequence.target);
  if (running_.empty()) return wanted <= free_blocks_;
  const bool evicts = rules_.admission == Admission::kPromptFits;
  const double kept = evicts ? rules_.kv_kept_free * static_cast<double>(all_blocks_) : 0;
  return static_cast<double>(free_blocks_ - wanted) >= std::floor(kept);
}

void QueueServer::join(Sequence sequence) {
  const std::int64_t whole = sequence.job.prompt + sequence.job.generate - 1;
  sequence.blocks = blocks_of(rules_.admission == Admission::kRequestFits ? whole : sequence.target);
  free_blocks_ -= sequence.blocks;
  if (!sequence.was_admitted) sequence.record.admitted_s = clock_;
  sequence.was_admitted = true;
  running_.push_back(std::move(sequence));
}

void QueueServer::evict_last() {
  Sequence sequence = std::move(running_.back());
  running_.pop_back();
  free_blocks_ += sequence.blocks;
  totals_.evictions += 1;
  totals_.recomputed_tokens += sequence.prefilled - cached_tokens(rules_, sequence.job.prompt);
  sequence.blocks = 0;
  sequence.brings_cache = false;
  sequence.prefilled = 0;
  // The last token made is computed with the others and gives the next one.
  sequence.target = sequence.job.prompt + sequence.job.generated;
  waiting_.push_front(std::move(sequence));
}

std::int64_t QueueServer::blocks_wanted_after(std::int64_t steps) const {
  std::int64_t wanted = 0;
  for (const Sequence& s : running_) {
    if (!s.decodes()) continue;
    wanted += std::max<std::int64_t>(blocks_of(s.job.prompt + s.job.generated + steps - 1) - s.blocks, 0);
  }
  return wanted;
}

bool QueueServer::evict_for_decode() {
  bool evicted = false;
  while (free_blocks_ < static_cast<std::int64_t>(running_.size()) && blocks_wanted_after(1) > free_blocks_) {
    evict_last();
    evicted = true;
  }
  return evicted;
}

void QueueServer::choose_chunks(std::int64_t budget, bool admit) {
  chunks_.clear();
  const auto take = [&](std::size_t index) {
    const Sequence& s = running_[index];
    const std::int64_t tokens = std::min({budget, rules_.prompt_chunk, s.target - s.prefilled});
    if (tokens <= 0) return;
    chunks_.push_back({index, tokens});
    budget -= tokens;
  };
  for (std::size_t i = 0; i < running_.size(); ++i) {
    if (!running_[i].decodes()) take(i);
  }
  while (admit && budget > 0 && !waiting_.empty() && !waiting_.front().brings_cache && may_join(waiting_.front())) {
    Sequence sequence = std::move(waiting_.front());
    waiting_.pop_front();
    sequence.prefilled = cached_tokens(rules_, sequence.job.prompt);
    join(std::move(sequence));
    take(running_.size() - 1);
  }
}

StepLoad QueueServer::decode_load() const {
  StepLoad load;
  std::int64_t sequences = 0;
  std::int64_t context = 0;
  for (const Sequence& s : running_) {
    if (!s.decodes()) continue;
    ++sequences;
    context += s.job.prompt + s.job.generated;
  }
  load.sequences = static_cast<double>(sequences);
  load.context_tokens = static_cast<double>(context);
  return load;
}

void QueueServer::add_chunks(StepLoad& load) const {
  double keys = 0;
  load.prompts = static_cast<double>(chunks_.size());
  for (const Chunk& chunk : chunks_) {
    const auto tokens = static_cast<double>(chunk.tokens);
    load.prefill_tokens += tokens;
    keys += tokens * (static_cast<double>(running_[chunk.sequence].prefilled) + (tokens + 1) / 2);
  }
  load.prefill_context = keys / load.prefill_tokens;
}

void QueueServer::pass_time(double seconds, std::int64_t steps, double sequences) {
  check(seconds > 0, "a step takes time");
  totals_.in_system_s += static_cast<double>(in_system()) * seconds;
  totals_.busy_s += seconds;
  totals_.steps += steps;
  if (sequences > 0) totals_.decode_steps += steps;
  clock_ += seconds;
}

void QueueServer::mixed_step(bool decode) {
  StepLoad load = decode ? decode_load() : StepLoad{};
  add_chunks(load);
  totals_.prefill_tokens += static_cast<std::int64_t>(load.prefill_tokens);
  pass_time(seconds_(load), 1, load.sequences);
  if (load.sequences > 0) tokens_made(1, clock_);
  finish_chunks();
  remove_finished();
}

std::int64_t QueueServer::steps_before_change() const {
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
  for (const Sequence& s : running_) most = std::min(most, s.job.generate - s.job.generated);
  const auto sequences = static_cast<std::int64_t>(running_.size());
  if ((most / rules_.block_tokens + 1) * sequences <= free_blocks_) return most;
  std::int64_t low = 1;  // evict_for_decode made room for one
  while (low < most) {
    const std::int64_t tried = low + (most - low + 1) / 2;
    if (blocks_wanted_after(tried) <= free_blocks_) {
      low = tried;
    } else {
      most = tried - 1;
    }
  }
  return low;
}

void QueueServer::decode_run(double until) {
  check(!running_.empty(), "somebody can run");
  const StepLoad load = decode_load();
  const auto sequences = static_cast<std::int64_t>(running_.size());
  // Steps that are not linear for long are not looked at in long runs again and again.
  const std::int64_t most = std::min(steps_before_change(), last_run_ > 16 ? last_run_ * 4 : std::int64_t{64});
  const LinearRun run = linear_run(seconds_, load, most);
  last_run_ = run.steps;
  const std::int64_t steps = steps_to_pass(run, until - clock_);
  const double start = clock_;
  pass_time(run.seconds(steps), steps, load.sequences);
  gaps_.add_run(run.step(1), run.step(steps - 1), steps - 1, sequences);
  tokens_made(steps, start + run.first);
  remove_finished();
}

void QueueServer::tokens_made(std::int64_t steps, double first_step_end) {
  for (Sequence& s : running_) {
    if (!s.decodes()) continue;
    gaps_.add(first_step_end - s.job.last_token_s);
    s.job.generated += steps;
    s.target = s.prefilled = s.job.prompt + s.job.generated - 1;
    const std::int64_t more = std::max<std::int64_t>(blocks_of(s.target) - s.blocks, 0);
    s.blocks += more;
    free_blocks_ -= more;
    s.job.last_token_s = clock_;
    totals_.decode_tokens += steps;
  }
}

void QueueServer::finish_chunks() {
  for (const Chunk& chunk : chunks_) {
    Sequence& s = running_[chunk.sequence];
    s.prefilled += chunk.tokens;
    if (!s.decodes()) continue;
    if (s.job.generated == 0) {
      s.record.first_token_s = clock_;
    } else {
      gaps_.add(clock_ - s.job.last_token_s);
    }
    s.job.generated += 1;
    s.job.last_token_s = clock_;
  }
}

void QueueServer::remove_finished() {
  std::erase_if(running_, [&](Sequence& s) {
    if (!s.decodes() || s.job.generated < s.job.generate) return false;
    free_blocks_ += s.blocks;
    s.record.finished_s = clock_;
    served_.push_back(s.record);
    return true;
  });
}

}  // namespace scalecalc
