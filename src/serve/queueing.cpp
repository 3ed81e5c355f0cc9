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
void run_pool(std::vector<QueueServer>& servers, const std::vector<QueueJob>& jobs) {
  for (const QueueJob& job : jobs) {
    for (QueueServer& server : servers) server.advance_until(job.arrival_s);
    std::min_element(servers.begin(), servers.end(), [](const QueueServer& a, const QueueServer& b) {
      return a.in_system() < b.in_system();
    })->submit(job);
  }
  for (QueueServer& server : servers) server.drain();
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
  run_pool(servers, jobs);
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
  run_pool(prefill, prompts);
  const std::vector<ServedJob> prefilled = records_of(prefill, requests.size());
  const std::vector<QueueJob> moved = transferred_jobs(requests, prefilled, pools);
  std::vector<QueueServer> decode = pool_of(pools.decode, pools.decode_servers);
  run_pool(decode, moved);
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
