#include "serve/queueing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "base/diagnostic.h"
#include "base/units.h"

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

namespace {

double nearest_rank(const std::vector<double>& sorted, double p) {
  const auto rank = static_cast<std::size_t>(std::ceil(p * static_cast<double>(sorted.size())));
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

Percentiles percentiles_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {.mean = sum / static_cast<double>(values.size()),
          .p50 = nearest_rank(values, 0.50),
          .p95 = nearest_rank(values, 0.95),
          .p99 = nearest_rank(values, 0.99)};
}

/// `of` applied to each request that `counts`; nothing if none does.
template <class Counts, class Of>
std::optional<Percentiles> over(const std::vector<RequestTimes>& requests, Counts counts, Of of) {
  std::vector<double> values;
  values.reserve(requests.size());
  for (const RequestTimes& r : requests) {
    if (counts(r)) values.push_back(of(r));
  }
  if (values.empty()) return std::nullopt;
  return percentiles_of(std::move(values));
}

template <class Of>
Percentiles over_all(const std::vector<RequestTimes>& requests, Of of) {
  return over(
             requests, [](const RequestTimes&) { return true; }, of)
      .value_or(Percentiles{});
}

bool queue_is_stable(const std::vector<RequestTimes>& requests) {
  const auto waiting_at = [&](double time) {
    return std::count_if(requests.begin(), requests.end(),
                         [&](const RequestTimes& r) { return r.arrival_s <= time && r.admitted_s > time; });
  };
  const std::size_t half = requests.size() / 2;
  const auto grown = waiting_at(requests.back().arrival_s) - waiting_at(requests[half].arrival_s);
  return static_cast<double>(grown) < std::max(0.05 * static_cast<double>(requests.size() - half), 10.0);
}

/// Everything servers have recorded together.
struct PoolTotals {
  ServerTotals sum;
  GapLog gaps;
};

PoolTotals totals_of(const std::vector<QueueServer>& servers) {
  PoolTotals out;
  for (const QueueServer& server : servers) {
    const ServerTotals& t = server.totals();
    out.sum.busy_s += t.busy_s;
    out.sum.in_system_s += t.in_system_s;
    out.sum.decode_steps += t.decode_steps;
    out.sum.decode_tokens += t.decode_tokens;
    out.sum.prefill_tokens += t.prefill_tokens;
    out.sum.evictions += t.evictions;
    out.sum.recomputed_tokens += t.recomputed_tokens;
    out.sum.steps += t.steps;
    out.gaps.add_all(server.gaps());
  }
  return out;
}

QueueFigures figures_of(const std::vector<RequestTimes>& requests, const PoolTotals& totals, std::int64_t servers) {
  QueueFigures out{.requests = static_cast<std::int64_t>(requests.size()), .servers = servers};
  double end = 0;
  double tokens = 0;
  double decoding_s = 0;
  for (const RequestTimes& r : requests) {
    end = std::max(end, r.finished_s);
    tokens += static_cast<double>(r.generate);
    decoding_s += r.finished_s - r.first_token_s;
  }
  out.span_s = end - requests.front().arrival_s;
  out.ttft_s = over_all(requests, [](const RequestTimes& r) { return r.ttft_s(); });
  out.latency_s = over_all(requests, [](const RequestTimes& r) { return r.latency_s(); });
  out.wait_s = over_all(requests, [](const RequestTimes& r) { return r.admitted_s - r.arrival_s; });
  out.tpot_s = over(
      requests, [](const RequestTimes& r) { return r.generate > 1; }, [](const RequestTimes& r) { return r.tpot_s(); });
  if (totals.gaps.count() > 0) {
    out.inter_token_s = Percentiles{.mean = totals.gaps.mean(),
                                    .p50 = totals.gaps.quantile(0.50),
                                    .p95 = totals.gaps.quantile(0.95),
                                    .p99 = totals.gaps.quantile(0.99)};
  }
  const ServerTotals& t = totals.sum;
  out.requests_per_s = static_cast<double>(requests.size()) / out.span_s;
  out.output_tokens_per_s = tokens / out.span_s;
  if (t.decode_steps > 0) out.mean_batch = static_cast<double>(t.decode_tokens) / static_cast<double>(t.decode_steps);
  out.mean_decoding = decoding_s / out.span_s;
  out.mean_in_system = t.in_system_s / out.span_s;
  out.utilisation = t.busy_s / (out.span_s * static_cast<double>(servers));
  out.steps = t.steps;
  out.evictions = t.evictions;
  out.recomputed_tokens = t.recomputed_tokens;
  out.stable = queue_is_stable(requests);
  return out;
}

void require_room(std::span<const ServedRequest> requests, const QueueRules& rules) {
  const std::int64_t room = cache_tokens(rules);
  for (const ServedRequest& r : requests) {
    const std::int64_t needed = r.prompt + r.generate - 1;
    if (needed <= room) continue;
    throw UserError(
        fmt::format("a request of {} prompt and {} generated tokens needs a cache of {} tokens: there is room "
                    "for {}",
                    group_thousands(r.prompt), group_thousands(r.generate), group_thousands(needed),
                    group_thousands(room)),
        "more chips a replica, a smaller format of the cache, or shorter requests");
  }
}

/// Jobs in the order they arrive, each to the server with the fewest; then all to their ends.
void run_pool(std::vector<QueueServer>& servers, const std::vector<QueueJob>& jobs, const Stop& stop) {
  for (const QueueJob& job : jobs) {
    if (should_stop(stop)) throw Stopped();
    for (QueueServer& server : servers) server.advance_until(job.arrival_s);
    std::min_element(servers.begin(), servers.end(), [](const QueueServer& a, const QueueServer& b) {
      return a.in_system() < b.in_system();
    })->submit(job);
  }
  for (QueueServer& server : servers) server.drain(stop);
}

std::vector<ServedJob> records_of(const std::vector<QueueServer>& servers, std::size_t count) {
  std::vector<ServedJob> out(count);
  for (const QueueServer& server : servers) {
    for (const ServedJob& served : server.served()) out[served.id] = served;
  }
  return out;
}

std::vector<QueueServer> pool_of(const ServerKind& kind, std::int64_t servers) {
  check(servers > 0, "a pool has servers");
  return std::vector<QueueServer>(static_cast<std::size_t>(servers), QueueServer(kind.seconds, kind.rules));
}

/// The jobs of the decode pool, in the order their caches arrive.
std::vector<QueueJob> transferred_jobs(std::span<const ServedRequest> requests, const std::vector<ServedJob>& prefilled,
                                       const DisaggregatedPools& pools) {
  std::vector<QueueJob> out;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (requests[i].generate == 1) continue;
    const double done = prefilled[i].finished_s;
    const double moved = pools.transfer_s ? pools.transfer_s(static_cast<double>(requests[i].prompt)) : 0;
    out.push_back({.id = i,
                   .arrival_s = done + moved,
                   .prompt = requests[i].prompt,
                   .generate = requests[i].generate,
                   .generated = 1,
                   .last_token_s = done});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const QueueJob& a, const QueueJob& b) { return a.arrival_s < b.arrival_s; });
  return out;
}

}  // namespace

QueueResult simulate_queue(std::span<const ServedRequest> requests, const ServerKind& server) {
  check(!requests.empty(), "there are requests");
  require_room(requests, server.rules);
  std::vector<QueueJob> jobs;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    jobs.push_back(
        {.id = i, .arrival_s = requests[i].arrival_s, .prompt = requests[i].prompt, .generate = requests[i].generate});
  }
  std::vector<QueueServer> servers = pool_of(server, 1);
  run_pool(servers, jobs, server.stop);
  const std::vector<ServedJob> served = records_of(servers, jobs.size());
  QueueResult out;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    out.requests.push_back({requests[i].arrival_s, served[i].admitted_s, served[i].first_token_s, served[i].finished_s,
                            requests[i].generate});
  }
  out.figures = figures_of(out.requests, totals_of(servers), 1);
  return out;
}

DisaggregatedResult simulate_disaggregated(std::span<const ServedRequest> requests, const DisaggregatedPools& pools) {
  check(!requests.empty(), "there are requests");
  require_room(requests, pools.decode.rules);
  std::vector<QueueJob> prompts;
  std::vector<ServedRequest> prompts_alone(requests.begin(), requests.end());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    prompts_alone[i].generate = 1;
    prompts.push_back({.id = i, .arrival_s = requests[i].arrival_s, .prompt = requests[i].prompt});
  }
  require_room(prompts_alone, pools.prefill.rules);
  std::vector<QueueServer> prefill = pool_of(pools.prefill, pools.prefill_servers);
  run_pool(prefill, prompts, pools.prefill.stop);
  const std::vector<ServedJob> prefilled = records_of(prefill, requests.size());
  const std::vector<QueueJob> moved = transferred_jobs(requests, prefilled, pools);
  std::vector<QueueServer> decode = pool_of(pools.decode, pools.decode_servers);
  run_pool(decode, moved, pools.decode.stop);
  const std::vector<ServedJob> decoded = records_of(decode, requests.size());

  DisaggregatedResult out;
  std::vector<RequestTimes> first;
  std::vector<RequestTimes> rest;
  double in_transfer_s = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const ServedJob& p = prefilled[i];
    first.push_back({requests[i].arrival_s, p.admitted_s, p.first_token_s, p.finished_s, 1});
    const double finished = requests[i].generate > 1 ? decoded[i].finished_s : p.finished_s;
    out.both.requests.push_back({requests[i].arrival_s, p.admitted_s, p.first_token_s, finished, requests[i].generate});
  }
  for (const QueueJob& job : moved) {
    const ServedJob& d = decoded[job.id];
    rest.push_back({job.arrival_s, d.admitted_s, job.last_token_s, d.finished_s, job.generate});
    in_transfer_s += job.arrival_s - job.last_token_s;
  }
  const PoolTotals prefill_totals = totals_of(prefill);
  const PoolTotals decode_totals = totals_of(decode);
  PoolTotals all = decode_totals;
  all.sum.busy_s += prefill_totals.sum.busy_s;
  all.sum.in_system_s += prefill_totals.sum.in_system_s + in_transfer_s;
  all.sum.steps += prefill_totals.sum.steps;
  all.sum.evictions += prefill_totals.sum.evictions;
  all.sum.recomputed_tokens += prefill_totals.sum.recomputed_tokens;
  out.both.figures = figures_of(out.both.requests, all, pools.prefill_servers + pools.decode_servers);
  out.prefill = figures_of(first, prefill_totals, pools.prefill_servers);
  if (!rest.empty()) out.decode = figures_of(rest, decode_totals, pools.decode_servers);
  return out;
}

}  // namespace scalecalc
