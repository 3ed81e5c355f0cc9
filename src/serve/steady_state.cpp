// Continuous batching in its steady state, in closed form.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "serve/queueing.h"

namespace scalecalc {
namespace {

/// Prompts in whose place expectations are taken: the middles of equally likely parts.
constexpr int kRepresentatives = 32;

/// What a prompt costs beside `batch` decoding sequences.
struct PromptCost {
  double step = 0;            ///< one step with a prompt, on average
  double service = 0;         ///< E[S], its steps from first to last
  double service_square = 0;  ///< E[S^2]
  double added = 0;           ///< E[X], what they add to the decode steps they take the place of
};

/// The engine under one mix of requests.
class SteadyEngine {
 public:
  SteadyEngine(const StepSeconds& seconds, const QueueRules& rules, const RequestMix& mix)
      : seconds_(seconds),
        rules_(rules),
        mix_(mix),
        context_(mix.decode_context()),
        computed_(over_prompts([](double, double computed) { return computed; })),
        keys_(over_prompts([](double cached, double computed) { return computed * (cached + (computed + 1) / 2); })) {}

  bool mixes() const { return rules_.batching == Batching::kChunkedPrefill; }
  double decode_step(double batch) const { return batch > 0 ? seconds_(decoding(batch)) : 0; }

  /// Prompts one at a time, each chunk a step.
  PromptCost prompt_cost(double batch) const {
    PromptCost out;
    const double step = decode_step(batch);
    const int parts = mix_.prompt.is_fixed() ? 1 : kRepresentatives;
    for (int i = 0; i < parts; ++i) {
      const std::int64_t prompt = mix_.prompt.quantile((i + 0.5) / parts);
      double at = static_cast<double>(cached_tokens(rules_, prompt));
      const auto end = static_cast<double>(prompt);
      double service = 0;
      double added = 0;
      double chunks = 0;
      while (at < end) {
        const double tokens = std::min(chunk_of_one(batch), end - at);
        const double time = prefill_step(batch, 1, tokens, at + (tokens + 1) / 2);
        service += time;
        added += mixes() ? time - step : time;
        at += tokens;
        chunks += 1;
      }
      out.step += service / chunks / parts;
      out.service += service / parts;
      out.service_square += service * service / parts;
      out.added += added / parts;
    }
    return out;
  }

  /// The same at a rate: a prompt that comes while another is computed shares its steps.
  PromptCost prompt_cost(double batch, double rate) const {
    PromptCost out = prompt_cost(batch);
    const PromptCost shared = shared_cost(batch, tokens_at_once(batch, rate));
    const double shares = std::min(rate * out.service, 1.0);
    const double service = (1 - shares) * out.service + shares * shared.service;
    out.step = (1 - shares) * out.step + shares * shared.step;
    out.service_square *= (service / out.service) * (service / out.service);
    out.service = service;
    const bool several = takes_several(batch) && batch > 0;
    out.added = several ? added_together(batch, rate) : (1 - shares) * out.added + shares * shared.added;
    return out;
  }

  /// Means where a step computes so many tokens of as many prompts as that takes.
  PromptCost shared_cost(double batch, double tokens) const {
    const double computed = computed_tokens();
    // Prompts are whole: between two numbers of them the mean of both.
    const double one = std::min(computed, chunk_of_one(batch));
    const double whole = std::max(std::floor(tokens / one), 1.0);
    const double low = std::min(whole * one, tokens);
    const double high = std::min((whole + 1) * one, chunk(batch));
    double time = prefill_step(batch, whole, low, prompt_context());
    if (tokens > low && high > low) {
      const double more = prefill_step(batch, whole + 1, high, prompt_context());
      time += (more - time) * (tokens - low) / (high - low);
    }
    const double share = computed / tokens;
    return {.step = time, .service = share * time, .added = share * (mixes() ? time - decode_step(batch) : time)};
  }
  /// Prompts wait in line, so that every chunk is full.
  PromptCost packed_cost(double batch) const { return shared_cost(batch, chunk(batch)); }

  double chunk(double batch) const {
    const auto budget = static_cast<double>(rules_.token_budget);
    return std::max(mixes() ? budget - batch : budget, 1.0);
  }
  /// A step takes two prompts or more, so that they do not wait for each other.
  bool takes_several(double batch) const {
    return 2 * std::min(computed_tokens(), chunk_of_one(batch)) <= chunk(batch);
  }

 private:
  StepLoad decoding(double batch) const { return {.sequences = batch, .context_tokens = batch * context_}; }
  double prefill_step(double batch, double prompts, double tokens, double context) const {
    StepLoad load = mixes() ? decoding(batch) : StepLoad{};
    load.prompts = prompts;
    load.prefill_tokens = tokens;
    load.prefill_context = context;
    return seconds_(load);
  }

  double chunk_of_one(double batch) const { return std::min(chunk(batch), static_cast<double>(rules_.prompt_chunk)); }
  /// Of prompts, in the step of one that came during another: all that came meanwhile join, as far as they fit. A step
  /// that has prompts has a / (1 - e^-a) on average if a come during one.
  double tokens_at_once(double batch, double rate) const {
    const double one = std::min(computed_tokens(), chunk_of_one(batch));
    const double most = chunk(batch);
    double usual = one;
    double come = 0;
    for (int i = 0; i < 50; ++i) {
      come = rate * shared_cost(batch, usual).step;
      const double next = std::clamp(one * come / -std::expm1(-come), one, most);
      if (std::abs(next - usual) <= 1e-9 * usual) break;
      usual = next;
    }
    return std::clamp(one * (1 + come), one, most);
  }

  /// E[X] where all prompts that came during a step join the next. Whether a step has prompts depends on how long the
  /// one before was: a Markov chain of two states.
  double added_together(double batch, double rate) const {
    const double decode = decode_step(batch);
    const double one = std::min(computed_tokens(), chunk_of_one(batch));
    double tokens = one;
    for (int i = 0;; ++i) {
      const double with = shared_cost(batch, tokens).step;
      const double after_decode = 1 - std::exp(-rate * decode);
      const double share = after_decode / (after_decode + std::exp(-rate * with));
      const double mean_step = share * with + (1 - share) * decode;
      const double came = rate * mean_step / share * computed_tokens();
      const double next = std::clamp(came, one, chunk(batch));
      if (i == 50 || std::abs(next - tokens) <= 1e-9 * tokens) {
        if (next >= chunk(batch)) return packed_cost(batch).added;
        return share * (mixes() ? with - decode : with) / (rate * mean_step);
      }
      tokens = next;
    }
  }

  /// Mean of `of(cached, computed)` over prompts.
  template <class Of>
  double over_prompts(Of of) const {
    const int parts = mix_.prompt.is_fixed() ? 1 : kRepresentatives;
    double sum = 0;
    for (int i = 0; i < parts; ++i) {
      const std::int64_t prompt = mix_.prompt.quantile((i + 0.5) / parts);
      const auto cached = static_cast<double>(cached_tokens(rules_, prompt));
      sum += of(cached, static_cast<double>(prompt) - cached) / parts;
    }
    return sum;
  }
  double computed_tokens() const { return computed_; }
  double prompt_context() const { return keys_ / computed_; }

  const StepSeconds& seconds_;
  const QueueRules& rules_;
  const RequestMix& mix_;
  double context_;
  double computed_;  ///< tokens of a prompt
  double keys_;      ///< they attend to, all together
};

double rate_at(const SteadyEngine& engine, double batch, double decode_steps) {
  return batch / (decode_steps * engine.decode_step(batch) + batch * engine.packed_cost(batch).added);
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

/// Where a rising f crosses zero, between low (f < 0) and high.
template <class F>
double crossing(double low, double high, F f) {
  for (int i = 0; i < 100 && high - low > 1e-12 * high; ++i) {
    const double middle = (low + high) / 2;
    (f(middle) < 0 ? low : high) = middle;
  }
  return high;
}

}  // namespace

double pollaczek_khinchine_wait(double rate, double mean_service, double mean_square_service) {
  check(rate * mean_service < 1, "the queue has a steady state");
  return rate * mean_square_service / (2 * (1 - rate * mean_service));
}

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
  if (batch <= 0) return 1 / engine.packed_cost(0).service;
  return rate_at(engine, batch, mix.decode_steps());
}

SteadyState steady_state(const StepSeconds& seconds, const QueueRules& rules, const RequestMix& mix, double rate) {
  const SteadyEngine engine(seconds, rules, mix);
  SteadyState out{.rate = rate,
                  .largest_rate = largest_rate(seconds, rules, mix),
                  .largest_batch = largest_batch(seconds, rules, mix)};
  out.utilisation = rate / out.largest_rate;
  out.stable = rate < out.largest_rate;
  if (!out.stable) return out;
  const double steps = mix.decode_steps();
  if (steps > 0) {
    // A sequence that decodes is one of 1 + B when requests come at random (who joins sees B others), and never one of
    // more than fit.
    const auto seen = [&](double batch) { return std::min(1 + batch, out.largest_batch); };
    out.batch = crossing(0, out.largest_batch, [&](double batch) {
      const double added = engine.prompt_cost(seen(batch), rate).added;
      return batch - rate * (steps * engine.decode_step(seen(batch)) + batch * added);
    });
    out.step_s = engine.decode_step(seen(out.batch));
    out.gap_s = out.batch / (rate * steps);
  }
  const PromptCost alone = engine.prompt_cost(out.batch);
  const PromptCost in_line = engine.prompt_cost(out.batch, rate);
  const double decode_rest = (1 - std::exp(-out.batch)) * out.step_s / 2;
  out.prefill_share = std::min(rate * in_line.service, 1.0);
  out.prefill_s = alone.service;
  if (engine.takes_several(out.batch)) {
    const double busy = out.prefill_share;
    const double spread = alone.service_square / (alone.service * alone.service);
    out.prefill_s *= in_line.step / alone.step;
    out.wait_s = busy * spread * in_line.step / 2 + (1 - busy) * decode_rest;
  } else if (rate * in_line.service < 1) {
    out.wait_s = pollaczek_khinchine_wait(rate, in_line.service, in_line.service_square) + decode_rest;
  }
  // Prompts that do not fill their steps ask for more sequences than there is room for: they wait for one to end.
  if (steps > 0 && out.batch >= out.largest_batch * (1 - 1e-9)) out.wait_s.reset();
  if (out.wait_s) out.ttft_s = *out.wait_s + out.prefill_s;
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
