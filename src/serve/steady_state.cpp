// Computes continuous batching in its steady state, in closed form.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "serve/prompt_line.h"
#include "serve/queueing.h"

namespace scalecalc {
namespace {

double rate_at(const SteadyEngine& engine, double batch, double decode_steps) {
  return batch / (decode_steps * engine.decode_step(batch) + batch * engine.packed_cost(batch));
}

/// Sequences that memory and the scheduler let in, prompts under way counted.
double sequences_with_memory(const QueueRules& rules, const RequestMix& mix) {
  const double block_rest = (static_cast<double>(rules.block_tokens) - 1) / 2;  // half of a block is empty
  const double held = rules.admission == Admission::kRequestFits
                          ? mix.prompt.mean() + mix.generate.mean() - 1 + block_rest
                          : std::max(mix.decode_context(), mix.prompt.mean()) + block_rest;
  const double slots = static_cast<double>(std::min(rules.most_sequences, rules.token_budget));
  return std::max(std::min(slots, std::floor(rules.kv_tokens / held)), 1.0);
}

/// Sequences that decode, from step to step: those whose prompts ended during the last G - 1 decode steps. While their
/// number is N, L step(N) requests come in a step. So that as many leave as come, p(N) of steps follows from
///   N p(N) = (L (G - 1) step(N - 1) + (D - 1) (N - 1)) / D p(N - 1),
/// which is Poisson's distribution where all steps are alike and prompts end at random, and the negative binomial's of
/// variance over mean D, as the chain of prompts has it, where they end in bursts. A sequence sees N as often as there
/// are N of them, and its own gap(N), which is longer than a step: it begins beside the prompts that came during its
/// own.
class DecodeQueue {
 public:
  DecodeQueue(const SteadyEngine& engine, double rate, double steps, double most)
      : engine_(engine), rate_(rate), steps_(steps), most_(std::max(std::floor(most), 1.0)) {
    if (steps <= 0) {
      counts_.push_back({0, 1, 1});
    } else {
      walk();
      double gaps = 0, sequences = 0;
      for (const Count& c : counts_) {
        gaps += c.share * c.n * at(c.n).gap_s;
        sequences += c.share * c.n;
      }
      gap_s = gaps / sequences;
    }
    see_prompts(over_time(rate * steps * gap_s));
  }

  double gap_s = 0;       ///< of a sequence, the mean
  double waiting = 0;     ///< sequences that there is no room for
  double prompts = 0;     ///< without a first token
  double in_service = 0;  ///< of these in a step
  double step_share = 0;  ///< of time: with prompts
  double share_full = 0;  ///< of time: without a place for another
  bool full = false;      ///< there is no steady state
  bool settled = true;    ///< the chains of prompts were followed to their ends

 private:
  /// Between the points that are looked at, which lie closer where there are few.
  PromptQueue at(double n) {
    constexpr double kApart = 1.1;
    while (points_.empty() || points_.back().first < n) {
      const double last = points_.empty() ? -1 : points_.back().first;
      const double next = points_.empty() ? first_ : std::min(std::max(last + 1, std::floor(last * kApart)), most_);
      points_.emplace_back(next, prompt_queue(engine_, next, rate_, steps_));
    }
    const auto above = std::lower_bound(points_.begin(), points_.end(), n,
                                        [](const auto& point, double to) { return point.first < to; });
    if (above->first == n) return above->second;
    return between(*std::prev(above), *above, n);
  }

  static PromptQueue between(const std::pair<double, PromptQueue>& a, const std::pair<double, PromptQueue>& b,
                             double n) {
    const double part = (n - a.first) / (b.first - a.first);
    PromptQueue out;
    for (double PromptQueue::*x : {&PromptQueue::prompts, &PromptQueue::in_service, &PromptQueue::gap_s,
                                   &PromptQueue::step_share, &PromptQueue::step_s, &PromptQueue::dispersion}) {
      out.*x = a.second.*x + part * (b.second.*x - a.second.*x);
    }
    out.settled = a.second.settled && b.second.settled;
    return out;
  }

  /// Below this, N is hardly ever: decode steps without prompts, which are the shortest, would carry the rate there.
  double least() const {
    double low = 0, high = most_;
    for (int i = 0; i < 40 && high - low > 1; ++i) {
      const double middle = (low + high) / 2;
      (middle < rate_ * steps_ * engine_.decode_step(middle) ? low : high) = middle;
    }
    return std::max(std::floor(low - 12 * std::sqrt(low)), 0.0);
  }

  struct Count {
    double n;
    double share;    ///< of steps, in proportion
    double seconds;  ///< of such a step
  };

  /// Shares of time. Prompts are there when steps are long, and sequences then stay: of the distributions that differ
  /// by a power of N's base alone the one whose mean is that of Little's law.
  std::vector<double> over_time(double mean) const {
    std::vector<double> out(counts_.size());
    double low = -1, high = 1;
    for (int i = 0; i < 50; ++i) {
      const double tilt = (low + high) / 2;
      double largest = -std::numeric_limits<double>::infinity();
      for (std::size_t k = 0; k < out.size(); ++k) {
        out[k] = std::log(counts_[k].share * counts_[k].seconds) + tilt * counts_[k].n;
        largest = std::max(largest, out[k]);
      }
      double all = 0, sum = 0;
      for (std::size_t k = 0; k < out.size(); ++k) {
        out[k] = std::exp(out[k] - largest);
        all += out[k];
        sum += out[k] * counts_[k].n;
      }
      for (double& x : out) x /= all;
      (sum < mean * all ? low : high) = tilt;
    }
    return out;
  }

  void see_prompts(const std::vector<double>& shares) {
    for (std::size_t k = 0; k < counts_.size(); ++k) {
      const PromptQueue queue = at(counts_[k].n);
      prompts += shares[k] * queue.prompts;
      in_service += shares[k] * queue.in_service;
      step_share += shares[k] * queue.step_share;
    }
    constexpr double kHardlyEver = 1e-3;
    for (std::size_t k = 0; k < counts_.size(); ++k) {
      if (shares[k] > kHardlyEver && !at(counts_[k].n).settled) settled = false;
    }
    if (counts_.back().n >= most_) share_full = shares.back();
  }

  /// Of a decode step. With nobody there is none, but as soon as a prompt has ended; so it takes until then.
  double step(double n) { return n > 0 ? at(n).step_s : 1 / (rate_ * steps_); }

  /// p(n) / p(n - 1).
  double ratio(double n) {
    const double come = rate_ * steps_ * step(n - 1);
    const double spread = std::max(at(std::max(n - 1, 1.0)).dispersion, 1.0) - 1;
    return (come + spread * (n - 1)) / ((1 + spread) * n);
  }

  void walk() {
    first_ = least();
    double largest = 0, log_share = 0, n = first_;
    std::vector<double> logs{0};
    counts_.push_back({n, 0, step(n)});
    while (n < most_) {
      n += 1;
      const double factor = ratio(n);
      log_share += std::log(factor);
      logs.push_back(log_share);
      counts_.push_back({n, 0, step(n)});
      largest = std::max(largest, log_share);
      if (log_share < largest - 16 && factor < 1) break;
    }
    for (std::size_t k = 0; k < logs.size(); ++k) counts_[k].share = std::exp(logs[k] - largest);
    if (n < most_) return;
    // The others wait for a place; one more of them is as likely by the same factor every time.
    Count& last = counts_.back();
    const double factor = rate_ * steps_ * last.seconds / most_;
    full = factor >= 1;
    if (full) return;
    const double here = last.share * last.seconds;
    last.share /= 1 - factor;
    double seconds = 0;
    for (const Count& c : counts_) seconds += c.share * c.seconds;
    waiting = here * factor / (1 - factor) / (1 - factor) / seconds;
  }

  const SteadyEngine& engine_;
  double rate_, steps_, most_;
  double first_ = 0;
  std::vector<std::pair<double, PromptQueue>> points_;
  std::vector<Count> counts_;
};

/// Of a server that is always as full as it gets: a prompt comes for each sequence that ends, by chance and not in
/// line, so that steps with prompts are not full. Whether as many sequences end as come.
bool as_many_leave(const SteadyEngine& engine, double batch, double steps, double rate) {
  return batch > steps * rate * prompt_queue(engine, batch, rate, 0).gap_s;
}

/// The rate at which as many leave as come; no more than `packed`, where steps with prompts are full.
double carried_rate(const SteadyEngine& engine, double batch, double steps, double packed) {
  if (steps <= 0 || batch <= 0 || as_many_leave(engine, batch, steps, packed)) return packed;
  double low = 0, high = packed;
  for (int i = 0; i < 12; ++i) {
    const double middle = (low + high) / 2;
    (as_many_leave(engine, batch, steps, middle) ? low : high) = middle;
  }
  return high;
}

// What random systems are held to.
constexpr double kMostLoad = 0.8;
constexpr double kFewestSteps = 50;     // of a sequence
constexpr double kFewestSequences = 1;  // that decode, on average

/// What is known before the means are.
OnlyNear near_by_rules(const SteadyEngine& engine, const RequestMix& mix, double utilisation) {
  if (!mix.is_fixed()) return OnlyNear::kLengths;
  if (!PromptLine::proven(engine)) return OnlyNear::kRanks;
  if (engine.rules().receive_interval > 1) return OnlyNear::kReceive;
  if (engine.rules().prompt_wait_steps > 0) return OnlyNear::kWaits;
  if (utilisation > kMostLoad * (1 + 1e-6)) return OnlyNear::kLoad;
  if (mix.decode_steps() > 0 && mix.decode_steps() < kFewestSteps) return OnlyNear::kFew;
  return OnlyNear::kNothing;
}

/// Whether a prompt takes a step more, of few, beside some more or fewer sequences that decode, so that what is held
/// for their number is none.
bool steps_vary(const SteadyEngine& engine, double batch) {
  constexpr double kMany = 10, kMuch = 1.2;  // where their number varies less; of steps
  const double more = batch + 4 * std::sqrt(batch) + 1;
  return batch < kMany && engine.steps_of_one(more).first > kMuch * engine.steps_of_one(0).first;
}

/// What the means say of themselves.
OnlyNear near_by_means(const SteadyEngine& engine, const DecodeQueue& queue, const SteadyState& means) {
  constexpr double kMostFull = 1e-3, kMostWaiting = 3e-3;
  if (queue.full || queue.share_full > kMostFull || queue.waiting > kMostWaiting * queue.prompts)
    return OnlyNear::kPlaces;
  if (!queue.settled) return OnlyNear::kLoad;
  if (means.gap_s > 0 && (means.batch < kFewestSequences || steps_vary(engine, means.batch))) return OnlyNear::kFew;
  return OnlyNear::kNothing;
}

}  // namespace

double largest_batch(const StepSeconds& seconds, const QueueRules& rules, const RequestMix& mix) {
  const SteadyEngine engine(seconds, rules, mix);
  const double room = sequences_with_memory(rules, mix);
  if (mix.decode_steps() <= 0) return 0;
  if (!engine.mixes()) return room;
  // A full step has B tokens of decoding and the rest of prompts, in the proportion G - 1 to P of every request.
  const double computed = mix.prompt.mean() * (1 - rules.prefix_hit);
  const double carried = static_cast<double>(rules.token_budget) * mix.decode_steps() / (computed + mix.decode_steps());
  // A prompt under way has memory too and does not decode: of a full server's sequences that many are prompts.
  return std::max(std::min(carried, room - std::min(room / std::max(carried, 1.0), 1.0)), 1.0);
}

double largest_rate(const StepSeconds& seconds, const QueueRules& rules, const RequestMix& mix) {
  const SteadyEngine engine(seconds, rules, mix);
  const double batch = largest_batch(seconds, rules, mix);
  if (batch <= 0) return 1 / engine.packed_cost(0);
  return rate_at(engine, batch, mix.decode_steps());
}

SteadyState steady_rates(const StepSeconds& seconds, const QueueRules& rules, const RequestMix& mix, double rate) {
  const SteadyEngine engine(seconds, rules, mix);
  SteadyState out{.rate = rate, .largest_batch = largest_batch(seconds, rules, mix)};
  out.largest_rate = carried_rate(engine, out.largest_batch, mix.decode_steps(), largest_rate(seconds, rules, mix));
  out.utilisation = rate / out.largest_rate;
  out.stable = rate < out.largest_rate;
  out.only_near = near_by_rules(engine, mix, out.utilisation);
  return out;
}

bool keeps_up(const StepSeconds& seconds, const QueueRules& rules, const RequestMix& mix, double rate) {
  const double steps = mix.decode_steps(), batch = largest_batch(seconds, rules, mix);
  if (rate >= largest_rate(seconds, rules, mix)) return false;
  return steps <= 0 || batch <= 0 || as_many_leave(SteadyEngine(seconds, rules, mix), batch, steps, rate);
}

void add_per_step(SteadyState& state, const RequestMix& mix) {
  state.finished_per_step = state.rate * state.gap_s;
  state.admitted_tokens_per_step = state.finished_per_step * mix.prompt.mean();
  state.evicted_tokens_per_step = state.finished_per_step * (mix.prompt.mean() + mix.decode_steps());
}

SteadyState steady_state(const StepSeconds& seconds, const QueueRules& rules, const RequestMix& mix, double rate) {
  SteadyState out = steady_rates(seconds, rules, mix, rate);
  if (!out.stable) return out;
  const SteadyEngine engine(seconds, rules, mix);
  const double steps = mix.decode_steps();
  const DecodeQueue queue(engine, rate, steps, sequences_with_memory(rules, mix));
  if (steps > 0) {
    out.gap_s = queue.gap_s;
    out.batch = rate * steps * out.gap_s;
    out.step_s = engine.decode_step(std::max(out.batch, 1.0));
  }
  out.prefill_share = queue.step_share;
  out.prefill_s = queue.in_service / rate;
  if (!queue.full) {
    out.ttft_s = (queue.prompts + queue.waiting) / rate;
    out.wait_s = *out.ttft_s - out.prefill_s;
  }
  out.latency_s = out.ttft_s.value_or(out.prefill_s) + steps * out.gap_s;
  if (out.only_near == OnlyNear::kNothing) out.only_near = near_by_means(engine, queue, out);
  out.output_tokens_per_s = rate * mix.generate.mean();
  if (steps > 0) add_per_step(out, mix);
  return out;
}

}  // namespace scalecalc
