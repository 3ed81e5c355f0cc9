// Continuous batching in its steady state, in closed form.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "serve/prompt_chain.h"
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

/// Sequences that decode, as in a queue whose server is shared: each is served at 1 / gap(N) while there are N. Its
/// distribution needs no more of the generations than their mean (Kelly, Reversibility and Stochastic Networks, 1979,
/// section 3.3): p(N) ~ prod over j up to N of L (G - 1) gap(j) / j, Poisson's where the gap does not depend on N.
///
/// That is of arrivals that come at random in time. In steps, which all sequences pass together, they come the denser
/// the longer steps are, and steps with prompts are long: over a generation their number is that of a family of which
/// everyone has as many children as come during its own prompt, with a variance of 1 / (1 - L X)^2 of the mean (Borel
/// and Tanner). So the distribution is the negative binomial's of that variance, in the place of Poisson's.
class DecodeQueue {
 public:
  DecodeQueue(const SteadyEngine& engine, double rate, double steps, double most)
      : engine_(engine), rate_(rate), steps_(steps), most_(std::max(std::floor(most), 1.0)) {
    if (steps <= 0) {
      add(1, 0);
      return;
    }
    walk();
    if (full) return;
    const double spread = dispersion(std::max(std::round(batch), 1.0)) - 1;
    if (spread < 1e-3) return;
    shape_ = batch / spread;
    // Tokens leave at the rate at which they come: what a spread loses where the gap rises, a larger mean gives.
    double low = 0.5, high = 2;
    for (int i = 0; i < 40 && high - low > 1e-6; ++i) {
      scale_ = (low + high) / 2;
      walk();
      (full || made_ > rate_ * steps_ ? high : low) = scale_;
    }
  }

  double batch = 0;       ///< E[N], of those that there is room for
  double waiting = 0;     ///< of the others
  double prompts = 0;     ///< without a first token
  double in_service = 0;  ///< of these in a step
  double step_share = 0;  ///< of time: with prompts
  bool full = false;      ///< there is no steady state

 private:
  /// Between the points that are looked at, which lie closer where there are few.
  PromptQueue at(double n) {
    while (points_.empty() || points_.back().first < n) {
      const double last = points_.empty() ? -1 : points_.back().first;
      const double next = points_.empty() ? first_ : std::min(std::max(last + 1, std::floor(last * 1.06)), most_);
      points_.emplace_back(next, PromptChain(engine_, next, rate_, steps_).solve());
    }
    const auto above = std::lower_bound(points_.begin(), points_.end(), n,
                                        [](const auto& point, double to) { return point.first < to; });
    if (above->first == n) return above->second;
    return between(*std::prev(above), *above, n);
  }

  static PromptQueue between(const std::pair<double, PromptQueue>& a, const std::pair<double, PromptQueue>& b,
                             double n) {
    const double part = (n - a.first) / (b.first - a.first);
    const auto of = [&](double PromptQueue::*x) { return a.second.*x + part * (b.second.*x - a.second.*x); };
    PromptQueue out;
    for (double PromptQueue::*x :
         {&PromptQueue::prompts, &PromptQueue::in_service, &PromptQueue::gap_s, &PromptQueue::step_share}) {
      out.*x = of(x);
    }
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

  /// Variance over the mean of the sequences that join during a generation.
  double dispersion(double n) const {
    constexpr double kMore = 1.05;
    const PromptQueue now = PromptChain(engine_, n, rate_, 0).solve();
    const PromptQueue more = PromptChain(engine_, n, kMore * rate_, 0).solve();
    const double stretch = 1 + std::log(more.gap_s / now.gap_s) / std::log(kMore);  // 1 / (1 - L X)
    // A generation that is not longer than what belongs together sees a part of it.
    const double together = engine_.steps_of_one(n).first * stretch * stretch / steps_;
    const double seen = 1 - together * -std::expm1(-1 / together);
    return 1 + (stretch * stretch - 1) * seen / 2;
  }

  void add(double weight, double n) {
    const PromptQueue queue = at(n);
    sum_ += weight;
    batch += weight * n;
    if (n > 0) made_ += weight * n / queue.gap_s;
    prompts += weight * queue.prompts;
    in_service += weight * queue.in_service;
    step_share += weight * queue.step_share;
  }

  void scale(double by) {
    for (double* x : {&sum_, &batch, &waiting, &prompts, &in_service, &step_share, &made_}) *x *= by;
  }

  /// p(n) / p(n - 1).
  double ratio(double n, double gap) const {
    const double mean = scale_ * rate_ * steps_ * gap;
    return mean / n * (shape_ > 0 ? (shape_ + n - 1) / (shape_ + mean) : 1);
  }

  void walk() {
    if (points_.empty()) first_ = least();
    scale(0);
    full = false;
    double weight = 1, largest = 1, n = first_;
    add(weight, n);
    double factor = 0;
    while (n < most_) {
      n += 1;
      factor = ratio(n, at(n).gap_s);
      weight *= factor;
      add(weight, n);
      if (weight > 1e100) {
        scale(1 / weight);
        weight = 1;
        largest = 0;
      }
      largest = std::max(largest, weight);
      if (weight < 1e-12 * largest && factor < 1) break;
    }
    if (n >= most_) {
      // The others wait for a place; one more of them is as likely by the same factor every time.
      full = factor >= 1;
      if (!full) {
        const double tail = weight * factor / (1 - factor);
        add(tail, most_);
        waiting += tail / (1 - factor);
      }
    }
    scale(1 / sum_);
  }

  const SteadyEngine& engine_;
  double rate_, steps_, most_;
  double first_ = 0;
  std::vector<std::pair<double, PromptQueue>> points_;
  double shape_ = 0, scale_ = 1;
  double sum_ = 0;
  double made_ = 0;  ///< tokens a second
};

/// Of a server that is always as full as it gets: a prompt comes for each sequence that ends, by chance and not in
/// line, so that steps with prompts are not full. No more than `packed`, where they are.
double carried_rate(const SteadyEngine& engine, double batch, double steps, double packed) {
  if (steps <= 0 || batch <= 0) return packed;
  const auto leaving = [&](double rate) { return batch / (steps * PromptChain(engine, batch, rate, 0).solve().gap_s); };
  if (leaving(packed) >= packed) return packed;
  double low = 0, high = packed;
  for (int i = 0; i < 12; ++i) {
    const double middle = (low + high) / 2;
    (leaving(middle) > middle ? low : high) = middle;
  }
  return high;
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

SteadyState steady_state(const StepSeconds& seconds, const QueueRules& rules, const RequestMix& mix, double rate) {
  const SteadyEngine engine(seconds, rules, mix);
  SteadyState out{.rate = rate,
                  .largest_rate = largest_rate(seconds, rules, mix),
                  .largest_batch = largest_batch(seconds, rules, mix)};
  const double steps = mix.decode_steps();
  out.largest_rate = carried_rate(engine, out.largest_batch, steps, out.largest_rate);
  out.utilisation = rate / out.largest_rate;
  out.stable = rate < out.largest_rate;
  if (!out.stable) return out;
  const DecodeQueue queue(engine, rate, steps, sequences_with_memory(rules, mix));
  out.batch = queue.batch;
  if (steps > 0) {
    out.step_s = engine.decode_step(std::max(out.batch, 1.0));
    out.gap_s = out.batch / (rate * steps);
  }
  out.prefill_share = queue.step_share;
  out.prefill_s = queue.in_service / rate;
  if (!queue.full) {
    out.ttft_s = (queue.prompts + queue.waiting) / rate;
    out.wait_s = *out.ttft_s - out.prefill_s;
  }
  out.latency_s = out.ttft_s.value_or(out.prefill_s) + steps * out.gap_s;
  out.output_tokens_per_s = rate * mix.generate.mean();
  if (steps > 0) {
    out.finished_per_step = rate * out.gap_s;
    out.admitted_tokens_per_step = out.finished_per_step * mix.prompt.mean();
    out.evicted_tokens_per_step = out.finished_per_step * (mix.prompt.mean() + steps);
  }
  return out;
}

}  // namespace scalecalc
