// Simulates requests through replicas or prefill and decode pools, and computes what users see.
#include "serve/queueing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <compare>
#include <functional>
#include <limits>
#include <queue>

#include "base/check.h"
#include "base/diagnostic.h"
#include "base/units.h"

namespace scalecalc {
namespace {

/// Percentiles of what requests are asked, one figure after the other in the same memory.
class Sample {
 public:
  explicit Sample(const std::vector<RequestTimes>& requests) : requests_(requests) { values_.reserve(requests.size()); }

  template <class Of>
  Percentiles all(Of of) {
    return some([](const RequestTimes&) { return true; }, of).value_or(Percentiles{});
  }
  /// Of those that count; nothing if none does.
  template <class Counts, class Of>
  std::optional<Percentiles> some(Counts counts, Of of) {
    values_.clear();
    double sum = 0;
    for (const RequestTimes& r : requests_) {
      if (!counts(r)) continue;
      values_.push_back(of(r));
      sum += values_.back();
    }
    if (values_.empty()) return std::nullopt;
    Percentiles out{.mean = sum / static_cast<double>(values_.size())};
    auto end = values_.end();
    out.p99 = nearest_rank(0.99, end);
    out.p95 = nearest_rank(0.95, end);
    out.p90 = nearest_rank(0.90, end);
    out.p50 = nearest_rank(0.50, end);
    return out;
  }

 private:
  /// What lies at `end` and behind it is no smaller.
  double nearest_rank(double p, std::vector<double>::iterator& end) {
    const auto rank = static_cast<std::ptrdiff_t>(std::ceil(p * static_cast<double>(values_.size())));
    const auto at = values_.begin() + std::max<std::ptrdiff_t>(rank, 1) - 1;
    if (at != end) std::nth_element(values_.begin(), at, end);
    end = at;
    return *at;
  }

  const std::vector<RequestTimes>& requests_;
  std::vector<double> values_;
};

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

PoolTotals totals_of(std::span<const QueueServer> servers) {
  PoolTotals out;
  for (const QueueServer& server : servers) {
    const ServerTotals& t = server.totals();
    out.sum.busy_s += t.busy_s;
    out.sum.in_system_s += t.in_system_s;
    out.sum.decode_steps += t.decode_steps;
    out.sum.decode_tokens += t.decode_tokens;
    out.sum.evictions += t.evictions;
    out.sum.recomputed_tokens += t.recomputed_tokens;
    out.sum.steps += t.steps;
    out.sum.prompt_tokens += t.prompt_tokens;
    for (std::size_t i = 0; i < t.found_tokens.size(); ++i) out.sum.found_tokens[i] += t.found_tokens[i];
    out.gaps.add_all(server.gaps());
  }
  return out;
}

/// Of requests that get so many tokens at a time, evenly over their generation: the last chunk is what is left.
GapLog chunk_gaps(const std::vector<RequestTimes>& requests, std::int64_t interval) {
  GapLog out;
  for (const RequestTimes& r : requests) {
    if (r.generate == 1) continue;
    const std::int64_t rest = (r.generate - 1) % interval;
    out.add(r.tpot_s() * static_cast<double>(interval), (r.generate - 1) / interval);
    if (rest > 0) out.add(r.tpot_s() * static_cast<double>(rest));
  }
  return out;
}

QueueFigures figures_of(const std::vector<RequestTimes>& requests, const PoolTotals& totals, std::int64_t servers) {
  QueueFigures out = seen_by_users(requests);
  out.servers = servers;
  double end = 0;
  double tokens = 0;
  double decoding_s = 0;
  for (const RequestTimes& r : requests) {
    end = std::max(end, r.finished_s);
    tokens += static_cast<double>(r.generate);
    decoding_s += r.finished_s - r.first_token_s;
  }
  out.span_s = end - requests.front().arrival_s;
  if (totals.gaps.count() > 0) {
    out.inter_token_s = Percentiles{.mean = totals.gaps.mean(),
                                    .p50 = totals.gaps.quantile(0.50),
                                    .p90 = totals.gaps.quantile(0.90),
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
  for (std::size_t i = 0; i < t.found_tokens.size() && t.prompt_tokens > 0; ++i) {
    out.found_shares[i] = static_cast<double>(t.found_tokens[i]) / static_cast<double>(t.prompt_tokens);
  }
  out.stable = queue_is_stable(requests);
  return out;
}

void require_room(std::span<const ServedRequest> requests, const QueueRules& rules, bool prompts_alone = false) {
  const std::int64_t room = cache_tokens(rules);
  for (const ServedRequest& r : requests) {
    const std::int64_t needed = prompts_alone ? r.prompt : r.prompt + r.generate - 1;
    if (needed <= room) continue;
    throw UserError(
        fmt::format("a request of {} prompt and {} generated tokens needs a cache of {} tokens: there is room for {}",
                    group_thousands(r.prompt), group_thousands(r.generate), group_thousands(needed),
                    group_thousands(room)),
        "more chips a replica, a smaller format of the cache, or shorter requests");
  }
}

std::vector<QueueServer> servers_of(const DisaggregatedPools& pools) {
  check(pools.prefill_servers > 0 && pools.decode_servers >= 0, "there are servers");
  std::vector<QueueServer> out;
  for (std::int64_t i = 0; i < pools.prefill_servers; ++i) out.emplace_back(pools.prefill.seconds, pools.prefill.rules);
  for (std::int64_t i = 0; i < pools.decode_servers; ++i) out.emplace_back(pools.decode.seconds, pools.decode.rules);
  return out;
}

/// Requests on their way from clients through the front-end to a server, in pools of their own to another, and back,
/// event by event. Without a number of clients each is sent when it says it arrives; without decode servers those that
/// take prompts decode too.
class Simulation {
 public:
  Simulation(std::span<const ServedRequest> requests, std::optional<std::int64_t> clients,
             const DisaggregatedPools& pools)
      : requests_(requests),
        clients_(clients),
        pools_(pools),
        servers_(servers_of(pools)),
        prefill_(static_cast<std::size_t>(pools.prefill_servers)),
        at_server_(servers_.size()),
        times_(requests.size()) {
    if (servers_.size() > 1) server_of_.resize(requests.size());
    if (!apart()) return;
    moved_s_.resize(requests.size());
    decode_admitted_s_.resize(requests.size());
  }

  DisaggregatedResult run() {
    for (std::int64_t first = 0; first < clients_.value_or(1); ++first) send_next(0);
    for (;;) {
      if (should_stop(pools_.prefill.stop)) throw Stopped();
      double next = kNever;
      if (!events_.empty()) next = events_.top().time_s;
      if (const std::optional<std::size_t> server = furthest_behind(next)) {
        advance(*server, next);
      } else if (!events_.empty()) {
        const Event event = events_.top();
        events_.pop();
        handle(event);
      } else {
        return result();
      }
    }
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  enum class What : std::uint8_t { kPrefilled, kFinished, kSent, kReceived, kMoved };
  struct Event {
    double time_s;
    What what;  ///< at one time an answer makes room for the next request
    std::size_t id;
    auto operator<=>(const Event&) const = default;
  };

  bool apart() const { return prefill_ < servers_.size(); }

  /// Requests in flight that one front-end sees: clients have one before all replicas, as one engine's data ranks do;
  /// at a rate every replica has its own.
  std::int64_t in_front_of_one() const {
    const auto fronts = clients_ ? 1 : static_cast<std::int64_t>(prefill_);
    return (in_flight_ + fronts - 1) / fronts;
  }

  void send_next(double now_s) {
    if (next_ == requests_.size()) return;
    events_.push({clients_ ? now_s : requests_[next_].arrival_s, What::kSent, next_});
    ++next_;
  }

  void handle(const Event& event) {
    const std::size_t id = event.id;
    switch (event.what) {
      case What::kPrefilled: --at_server_[server_of(id)]; break;
      case What::kFinished:
        --in_flight_;
        --at_server_[server_of(id)];
        if (clients_) send_next(event.time_s);
        break;
      case What::kSent: {
        times_[id].arrival_s = event.time_s;
        times_[id].generate = requests_[id].generate;
        ++in_flight_;
        const double through = pools_.prefill.front_end.seconds(in_front_of_one());
        in_between_s_ += through;
        events_.push({event.time_s + through, What::kReceived, id});
        if (!clients_) send_next(event.time_s);
        break;
      }
      case What::kReceived: {
        const ServedRequest& r = requests_[id];
        QueueJob job{.id = id, .arrival_s = event.time_s, .prompt = r.prompt, .generate = apart() ? 1 : r.generate};
        if (r.blocks != nullptr) job.blocks = *r.blocks;
        submit(job, routed(job));
        break;
      }
      case What::kMoved:
        moved_s_[id] = event.time_s;
        submit({.id = id,
                .arrival_s = event.time_s,
                .prompt = requests_[id].prompt,
                .generate = requests_[id].generate,
                .generated = 1,
                .last_token_s = times_[id].first_token_s},
               fewest(prefill_, servers_.size()));
        break;
    }
  }

  std::size_t server_of(std::size_t id) const { return server_of_.empty() ? 0 : server_of_[id]; }

  void submit(const QueueJob& job, std::size_t server) {
    ++at_server_[server];
    if (!server_of_.empty()) server_of_[job.id] = static_cast<std::uint32_t>(server);
    servers_[server].submit(job);
  }

  std::size_t fewest(std::size_t first, std::size_t last) const {
    const auto begin = at_server_.begin();
    const auto at =
        std::min_element(begin + static_cast<std::ptrdiff_t>(first), begin + static_cast<std::ptrdiff_t>(last));
    return static_cast<std::size_t>(at - begin);
  }

  std::size_t routed(const QueueJob& job) {
    switch (pools_.routing) {
      case RequestRouting::kRandom: return static_cast<std::size_t>(chance_.uniform() * static_cast<double>(prefill_));
      case RequestRouting::kRoundRobin: return turn_++ % prefill_;
      case RequestRouting::kPrefixAware: return by_prefix(job);
      case RequestRouting::kLeastLoaded: break;
    }
    return fewest(0, prefill_);
  }

  /// Thresholds of sgl-router: --cache-threshold, --balance-abs-threshold, --balance-rel-threshold.
  std::size_t by_prefix(const QueueJob& job) const {
    constexpr double kShare = 0.5, kMoreThan = 32, kTimesMore = 1.1;
    const std::size_t idlest = fewest(0, prefill_);
    const auto least = static_cast<double>(at_server_[idlest]);
    const auto most = static_cast<double>(
        *std::max_element(at_server_.begin(), at_server_.begin() + static_cast<std::ptrdiff_t>(prefill_)));
    if (most - least > kMoreThan && most > kTimesMore * least) return idlest;
    std::size_t best = idlest;
    std::int64_t kept = servers_[idlest].kept_tokens(job.blocks, job.prompt);
    for (std::size_t i = 0; i < prefill_; ++i) {
      const std::int64_t here = servers_[i].kept_tokens(job.blocks, job.prompt);
      if (here > kept) {
        best = i;
        kept = here;
      }
    }
    return static_cast<double>(kept) > kShare * static_cast<double>(job.prompt) ? best : idlest;
  }

  /// The busy server with the earliest clock, if that is before `next_s`.
  std::optional<std::size_t> furthest_behind(double next_s) const {
    std::optional<std::size_t> out;
    for (std::size_t i = 0; i < servers_.size(); ++i) {
      if (servers_[i].in_system() == 0 || servers_[i].clock_s() >= next_s) continue;
      if (!out || servers_[i].clock_s() < servers_[*out].clock_s()) out = i;
    }
    return out;
  }

  /// What ends at one server sends another something: the next request of a client, or a cache.
  bool feeds(std::size_t from, std::size_t to) const {
    return clients_.has_value() || (apart() && from < prefill_ && to >= prefill_);
  }

  /// No further than to where another may finish something that comes here.
  void advance(std::size_t at, double until_s) {
    for (std::size_t i = 0; i < servers_.size(); ++i) {
      if (i != at && feeds(i, at) && servers_[i].in_system() > 0) until_s = std::min(until_s, servers_[i].clock_s());
    }
    QueueServer& server = servers_[at];
    server.step(until_s);
    for (const ServedJob& served : server.take_served()) {
      RequestTimes& times = times_[served.id];
      const ServedRequest& request = requests_[served.id];
      if (at < prefill_) {
        times.admitted_s = served.admitted_s;
        times.first_token_s = served.first_token_s;
      } else {
        decode_admitted_s_[served.id] = served.admitted_s;
      }
      if (at >= prefill_ || !apart() || request.generate == 1) {
        times.finished_s = served.finished_s;
        events_.push({served.finished_s, What::kFinished, served.id});
        continue;
      }
      const double moves = pools_.transfer_s ? pools_.transfer_s(static_cast<double>(request.prompt)) : 0;
      in_between_s_ += moves;
      events_.push({served.finished_s, What::kPrefilled, served.id});
      events_.push({served.finished_s + moves, What::kMoved, served.id});
    }
  }

  DisaggregatedResult result() {
    DisaggregatedResult out;
    const std::span<const QueueServer> all(servers_);
    PoolTotals totals = totals_of(all);
    const bool two = apart();
    const PoolTotals prefill = two ? totals_of(all.first(prefill_)) : PoolTotals{};
    const PoolTotals decode = two ? totals_of(all.subspan(prefill_)) : PoolTotals{};
    servers_.clear();
    servers_.shrink_to_fit();
    totals.sum.in_system_s += in_between_s_;
    const std::int64_t interval = pools_.prefill.front_end.stream_interval;
    if (interval > 1) totals.gaps = chunk_gaps(times_, interval);
    const std::int64_t decoders = pools_.decode_servers;
    if (two) pool_figures(prefill, decode, out);
    out.both.figures = figures_of(times_, totals, pools_.prefill_servers + decoders);
    out.both.requests = std::move(times_);
    for (QueueFigures* figures : {&out.both.figures, &out.prefill, &out.decode}) {
      if (clients_) figures->stable = true;  // nobody sends more than is answered
    }
    return out;
  }

  /// Of each pool alone.
  void pool_figures(const PoolTotals& prefill, const PoolTotals& decode, DisaggregatedResult& out) const {
    std::vector<RequestTimes> first;
    std::vector<RequestTimes> rest;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      const RequestTimes& r = times_[i];
      first.push_back({r.arrival_s, r.admitted_s, r.first_token_s, r.first_token_s, 1});
      if (r.generate > 1)
        rest.push_back({moved_s_[i], decode_admitted_s_[i], r.first_token_s, r.finished_s, r.generate});
    }
    std::stable_sort(rest.begin(), rest.end(),
                     [](const RequestTimes& a, const RequestTimes& b) { return a.arrival_s < b.arrival_s; });
    out.prefill = figures_of(first, prefill, pools_.prefill_servers);
    if (!rest.empty()) out.decode = figures_of(rest, decode, pools_.decode_servers);
  }

  std::span<const ServedRequest> requests_;
  std::optional<std::int64_t> clients_;
  const DisaggregatedPools& pools_;
  std::vector<QueueServer> servers_;      ///< those that take prompts first
  std::size_t prefill_;                   ///< so many
  std::vector<std::int64_t> at_server_;   ///< requests, by what their clients know: a server's clock may be ahead
  std::vector<std::uint32_t> server_of_;  ///< of several
  std::vector<RequestTimes> times_;
  std::vector<double> moved_s_, decode_admitted_s_;  ///< of pools
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  RandomStream chance_{1};
  std::size_t turn_ = 0;
  std::size_t next_ = 0;
  std::int64_t in_flight_ = 0;
  double in_between_s_ = 0;  ///< requests in the front-end or on their way, times seconds
};

QueueResult simulate(std::span<const ServedRequest> requests, std::optional<std::int64_t> clients,
                     const ServerKind& server, std::int64_t servers, RequestRouting routing) {
  check(!requests.empty() && servers > 0 && clients.value_or(1) > 0,
        "there are requests, and who sends and takes them");
  require_room(requests, server.rules);
  const DisaggregatedPools pools{
      .prefill = server, .prefill_servers = servers, .decode_servers = 0, .routing = routing};
  return Simulation(requests, clients, pools).run().both;
}

}  // namespace

QueueFigures seen_by_users(const std::vector<RequestTimes>& requests) {
  QueueFigures out{.requests = static_cast<std::int64_t>(requests.size())};
  Sample sample(requests);
  out.ttft_s = sample.all([](const RequestTimes& r) { return r.ttft_s(); });
  out.latency_s = sample.all([](const RequestTimes& r) { return r.latency_s(); });
  out.wait_s = sample.all([](const RequestTimes& r) { return r.admitted_s - r.arrival_s; });
  out.tpot_s = sample.some([](const RequestTimes& r) { return r.generate > 1; },
                           [](const RequestTimes& r) { return r.tpot_s(); });
  return out;
}

QueueResult simulate_queue(std::span<const ServedRequest> requests, const ServerKind& server, std::int64_t servers,
                           RequestRouting routing) {
  return simulate(requests, std::nullopt, server, servers, routing);
}

QueueResult simulate_clients(std::span<const ServedRequest> requests, std::int64_t clients, const ServerKind& server,
                             std::int64_t servers, RequestRouting routing) {
  return simulate(requests, clients, server, servers, routing);
}

DisaggregatedResult simulate_disaggregated(std::span<const ServedRequest> requests, const DisaggregatedPools& pools,
                                           std::optional<std::int64_t> clients) {
  check(!requests.empty() && pools.decode_servers > 0, "there are requests, and servers that decode");
  require_room(requests, pools.decode.rules);
  require_room(requests, pools.prefill.rules, true);
  return Simulation(requests, clients, pools).run();
}

}  // namespace scalecalc
