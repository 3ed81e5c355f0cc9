// Simulates one engine's scheduler: its queue, its KV cache blocks and its steps.
#include "serve/queue_server.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace scalecalc {

namespace {

constexpr std::size_t kMostRuns = 65'536;
constexpr int kLowestPower = -40;  // 1e-12 s
constexpr std::size_t kOctaves = 80;
constexpr std::size_t kBinsOfOctave = 1024;

/// By the exponent and the mantissa: the same on every platform, as a logarithm is not.
std::size_t bin_of(double seconds) {
  int power = 0;
  const double mantissa = std::frexp(seconds, &power);  // in [0.5, 1)
  if (power <= kLowestPower || seconds <= 0) return 0;
  const auto octave = std::min(static_cast<std::size_t>(power - kLowestPower), kOctaves - 1);
  return octave * kBinsOfOctave + static_cast<std::size_t>((mantissa - 0.5) * 2 * kBinsOfOctave);
}

double end_of(std::size_t bin) {
  const auto inside = static_cast<double>(bin % kBinsOfOctave + 1) / kBinsOfOctave;
  return std::ldexp(0.5 + inside / 2, static_cast<int>(bin / kBinsOfOctave) + kLowestPower);
}

}  // namespace

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
  if (runs_.size() >= kMostRuns) fold();
}

void GapLog::add_all(const GapLog& other) {
  runs_.insert(runs_.end(), other.runs_.begin(), other.runs_.end());
  count_ += other.count_;
  sum_ += other.sum_;
  if (bins_.empty())
    bins_ = other.bins_;
  else
    for (std::size_t i = 0; i < other.bins_.size(); ++i) bins_[i] += other.bins_[i];
  if (runs_.size() >= kMostRuns) fold();
}

void GapLog::fold() {
  bins_.resize(kOctaves * kBinsOfOctave);
  for (const GapRun& run : runs_) count_in_bins(run);
  runs_.clear();
}

void GapLog::count_in_bins(const GapRun& run) {
  std::int64_t counted = 0;
  for (std::size_t bin = bin_of(run.low); counted < run.steps * run.times; ++bin) {
    const std::int64_t below = bin < bin_of(run.high) ? run.up_to(end_of(bin)) : run.steps * run.times;
    bins_[bin] += below - counted;
    counted = below;
  }
}

double GapLog::mean() const { return count_ > 0 ? sum_ / static_cast<double>(count_) : 0; }

double GapLog::quantile(double p) const {
  check(count_ > 0, "a quantile is of something");
  const auto rank = std::max<std::int64_t>(static_cast<std::int64_t>(std::ceil(p * static_cast<double>(count_))), 1);
  if (!bins_.empty()) {
    GapLog whole = *this;
    whole.fold();
    std::int64_t found = 0;
    std::size_t bin = 0;
    while ((found += whole.bins_[bin]) < rank) ++bin;
    return end_of(bin);
  }
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

QueueServer::QueueServer(const StepSeconds& seconds, const QueueRules& rules)
    : seconds_(seconds),
      rules_(rules),
      prefixes_(rules.block_tokens, static_cast<std::int64_t>(rules.prefix_store.host_tokens) / rules.block_tokens,
                static_cast<std::int64_t>(rules.prefix_store.disk_tokens) / rules.block_tokens) {
  check(rules.token_budget > 0 && rules.prompt_chunk > 0 && rules.most_sequences > 0 && rules.block_tokens > 0 &&
            rules.receive_interval > 0,
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
  waiting_.push_back(sequence);
}

void QueueServer::step(double until) {
  look_for_requests();
  admit_transferred();
  const auto decoding = [&] {
    return std::count_if(running_.begin(), running_.end(), [](const Sequence& s) { return s.decodes(); });
  };
  if (rules_.batching == Batching::kPrefillFirst) {
    prompts_wait_ = prompts_wait(decoding());
    choose_chunks(rules_.token_budget, !prompts_wait_);
    if (!chunks_.empty()) return mixed_step(false);
    evict_for_decode();
    return decode_run(until);
  }
  const bool evicted = evict_for_decode();
  const std::int64_t decode_now = decoding();
  prompts_wait_ = prompts_wait(decode_now);
  choose_chunks(rules_.token_budget - decode_now, !evicted && !prompts_wait_);
  if (!chunks_.empty()) return mixed_step(true);
  decode_run(until);
}

void QueueServer::look_for_requests() {
  if (until_look_ > 0 && !running_.empty()) return;
  received_ = waiting_.size();
  until_look_ = rules_.receive_interval;
}

bool QueueServer::prompts_wait(std::int64_t decoding) {
  const bool may_wait = rules_.prompt_wait_steps > 0 && received_ > 0 && decoding > 0 &&
                        decoding == static_cast<std::int64_t>(running_.size()) && may_join(waiting_.front());
  if (!may_wait) return false;
  const double wanted = rules_.prompt_wait_share * static_cast<double>(rules_.token_budget);
  auto tokens = static_cast<double>(decoding);
  for (std::size_t i = 0; i < received_ && tokens < wanted; ++i) {
    tokens += static_cast<double>(waiting_[i].target - kept_tokens(waiting_[i].job.blocks, waiting_[i].job.prompt));
  }
  const bool wait = waited_ < rules_.prompt_wait_steps && tokens < wanted;
  if (!wait) waited_ = 0;
  return wait;
}

void QueueServer::admit_transferred() {
  while (!waiting_.empty() && waiting_.front().brings_cache && may_join(waiting_.front())) {
    Sequence sequence = waiting_.front();
    waiting_.pop_front();
    received_ -= std::min<std::size_t>(received_, 1);
    sequence.prefilled = sequence.target;
    join(sequence);
  }
}

bool QueueServer::may_join(const Sequence& sequence) const {
  if (static_cast<std::int64_t>(running_.size()) >= std::min(rules_.most_sequences, rules_.token_budget)) return false;
  const std::int64_t whole = sequence.job.prompt + sequence.job.generate - 1;
  std::int64_t wanted = blocks_of(rules_.admission == Admission::kRequestFits ? whole : sequence.target);
  if (!sequence.job.blocks.ids.empty()) wanted -= prefixes_.find(sequence.job.blocks, sequence.job.prompt).used;
  if (running_.empty()) return wanted <= free_blocks_;
  const bool evicts = rules_.admission == Admission::kPromptFits;
  const double kept = evicts ? rules_.kv_kept_free * static_cast<double>(all_blocks_) : 0;
  return static_cast<double>(free_blocks_ - wanted) >= std::floor(kept);
}

void QueueServer::join(Sequence sequence) {
  const std::int64_t whole = sequence.job.prompt + sequence.job.generate - 1;
  sequence.blocks = blocks_of(rules_.admission == Admission::kRequestFits ? whole : sequence.target);
  free_blocks_ -= sequence.blocks;
  use_prefix(sequence);
  prefixes_.shrink_to(free_blocks_);
  if (!sequence.was_admitted) sequence.record.admitted_s = clock_;
  sequence.was_admitted = true;
  running_.push_back(sequence);
}

std::int64_t QueueServer::kept_tokens(const PromptBlocks& blocks, std::int64_t prompt) const {
  if (blocks.ids.empty()) return cached_tokens(rules_, prompt);
  return std::min(prefixes_.find(blocks, prompt).all() * rules_.block_tokens, prompt - 1);
}

/// What is kept of its prompt needs no prefill, and no memory where others use it already.
void QueueServer::use_prefix(Sequence& s) {
  if (s.brings_cache) return;
  const std::int64_t tokens = rules_.block_tokens;
  PrefixCache::Found found;
  s.found = kept_tokens(s.job.blocks, s.job.prompt);
  if (!s.job.blocks.ids.empty()) {
    found = prefixes_.use(s.job.blocks, s.job.prompt);
    s.ids = found.ids;
    s.shared = found.all();
    free_blocks_ += found.used;
    fetch_s_ += static_cast<double>(found.blocks[1] * tokens) * rules_.prefix_store.host_token_s +
                static_cast<double>(found.blocks[2] * tokens) * rules_.prefix_store.disk_token_s;
  }
  s.prefilled = s.found;
  if (s.was_admitted) return;
  totals_.prompt_tokens += s.job.prompt;
  std::int64_t left = s.found;
  for (std::size_t place = PrefixCache::kPlaces; place-- > 0;) {
    const std::int64_t here = std::min(left, place == 0 ? left : found.blocks[place] * tokens);
    totals_.found_tokens[place] += here;
    left -= here;
  }
}

/// Its whole prompt is computed.
void QueueServer::add_prefix(Sequence& s) {
  if (s.job.blocks.ids.empty()) return;
  free_blocks_ += prefixes_.add(s.job.blocks, s.job.prompt, s.ids);
  s.shared = prefixes_.find(s.job.blocks, s.job.prompt).all();
  prefixes_.shrink_to(free_blocks_);
}

void QueueServer::leave_blocks(Sequence& s) {
  free_blocks_ += s.blocks - s.shared;
  if (s.ids > 0) free_blocks_ += prefixes_.leave(s.job.blocks, s.ids);
  s.blocks = s.shared = 0;
  s.ids = 0;
  prefixes_.shrink_to(free_blocks_);
}

void QueueServer::evict_last() {
  Sequence sequence = running_.back();
  running_.pop_back();
  leave_blocks(sequence);
  totals_.evictions += 1;
  totals_.recomputed_tokens += sequence.prefilled - kept_tokens(sequence.job.blocks, sequence.job.prompt);
  sequence.brings_cache = false;
  // The last token made is computed with the others and gives the next one.
  sequence.target = sequence.job.prompt + sequence.job.generated;
  waiting_.push_front(sequence);
  ++received_;
}

std::int64_t QueueServer::blocks_wanted_after(std::int64_t steps) const {
  std::int64_t wanted = 0;
  for (const Sequence& s : running_) {
    if (!s.decodes()) continue;
    const std::int64_t beyond = s.job.prompt + s.job.generated + steps - 1 - s.blocks * rules_.block_tokens;
    if (beyond > 0) wanted += beyond <= rules_.block_tokens ? 1 : blocks_of(beyond);  // it divides, which is slow
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
  while (admit && budget > 0 && received_ > 0 && !waiting_.front().brings_cache && may_join(waiting_.front())) {
    Sequence sequence = waiting_.front();
    waiting_.pop_front();
    --received_;
    join(sequence);
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
    load.largest_chunk = std::max(load.largest_chunk, tokens);
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
  pass_time(std::max(seconds_(load), std::exchange(fetch_s_, 0.0)), 1, load.sequences);
  if (load.sequences > 0) tokens_made(1, clock_);
  until_look_ = 0;
  finish_chunks();
  remove_finished();
}

std::int64_t QueueServer::steps_before_change() const {
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
  for (const Sequence& s : running_) most = std::min(most, s.job.generate - s.job.generated);
  const auto sequences = static_cast<std::int64_t>(running_.size());
  if ((most / rules_.block_tokens + 1) * sequences <= free_blocks_) return most;
  // So many fit by the same count, and evict_for_decode made room for one; little more does.
  std::int64_t low = std::max<std::int64_t>((free_blocks_ / sequences - 1) * rules_.block_tokens, 1);
  for (std::int64_t more = rules_.block_tokens; low + more < most; more *= 2) {
    if (blocks_wanted_after(low + more) > free_blocks_) {
      most = low + more - 1;
    } else {
      low += more;
    }
  }
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
  std::int64_t most = std::min(steps_before_change(), last_run_ > 16 ? last_run_ * 4 : std::int64_t{64});
  if (waiting_.size() > received_) most = std::min(most, until_look_);
  if (prompts_wait_) most = std::min(most, rules_.prompt_wait_steps - waited_);
  const LinearRun run = linear_run(seconds_, load, most);
  last_run_ = run.steps;
  const std::int64_t steps = steps_to_pass(run, until - clock_);
  const double start = clock_;
  if (prompts_wait_) waited_ += steps;
  // Looks that found nobody are behind it.
  until_look_ -= steps;
  if (until_look_ < 0)
    until_look_ = (rules_.receive_interval - -until_look_ % rules_.receive_interval) % rules_.receive_interval;
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
    if (s.target > s.blocks * rules_.block_tokens) {
      free_blocks_ -= blocks_of(s.target) - s.blocks;
      s.blocks = blocks_of(s.target);
    }
    s.job.last_token_s = clock_;
    totals_.decode_tokens += steps;
  }
  prefixes_.shrink_to(free_blocks_);
}

void QueueServer::finish_chunks() {
  for (const Chunk& chunk : chunks_) {
    Sequence& s = running_[chunk.sequence];
    s.prefilled += chunk.tokens;
    if (!s.decodes()) continue;
    add_prefix(s);
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
    leave_blocks(s);
    s.record.finished_s = clock_;
    served_.push_back(s.record);
    return true;
  });
}

}  // namespace scalecalc
