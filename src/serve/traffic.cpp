#include "serve/traffic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "base/check.h"
#include "base/diagnostic.h"
#include "serve/queueing.h"
#include "serve/serving_cost.h"

namespace scalecalc {
namespace {

double at_share(const Percentiles& p, double share) {
  if (share <= 0.5) return p.p50;
  return share <= 0.95 ? p.p95 : p.p99;
}

QueueFigures replica_at(const FleetDemand& demand, const ReplicaKind& kind, std::int64_t replicas) {
  if (demand.routing == RequestRouting::kRandom)
    return simulate_queue(requests_of_one(demand, replicas), kind.server).figures;
  return simulate_queue(requests_of_one(demand, 1), kind.server, replicas, demand.routing).figures;
}

/// No rate is larger: with the most that any cache of prefixes could find.
double largest_rate_of(const RequestMix& mix, const ServerKind& server) {
  QueueRules rules = server.rules;
  rules.prefix_hit = std::max(rules.prefix_hit, mix.most_found());
  return largest_rate(server.seconds, rules, mix);
}

/// Replicas below which the queue grows whatever the limits: [RATE-MAX].
std::int64_t fewest_stable(const FleetDemand& demand, const ReplicaKind& kind) {
  const double largest = largest_rate_of(demand.mix, kind.server);
  return std::max<std::int64_t>(static_cast<std::int64_t>(std::ceil(demand.rate / largest)), 1);
}

double price(const Fleet& fleet, FleetGoal goal) {
  return goal == FleetGoal::kChips ? fleet.chips : fleet.usd_per_hour;
}

Fleet fleet_of(const ReplicaKind& kind, std::int64_t replicas) {
  const auto count = static_cast<double>(replicas);
  return {.replicas = replicas, .chips = count * kind.chips, .usd_per_hour = count * kind.usd_per_hour};
}

}  // namespace

bool meets(const QueueFigures& figures, const LatencyLimits& limits) {
  const auto within = [&](const Percentiles& p, const std::optional<double>& limit) {
    return !limit || at_share(p, limits.share) <= *limit;
  };
  return figures.stable && within(figures.ttft_s, limits.ttft_s) && within(figures.latency_s, limits.latency_s) &&
         (!figures.tpot_s || within(*figures.tpot_s, limits.tpot_s));
}

std::optional<std::int64_t> smallest_count(std::int64_t first, std::int64_t last,
                                           const std::function<bool(std::int64_t)>& holds) {
  // Doubling steps find an end close to the answer: a small count is the more work to try.
  std::int64_t fails = first - 1;
  std::int64_t works = first;
  for (std::int64_t stride = 1; !holds(works); stride *= 2) {
    if (works == last) return std::nullopt;
    fails = works;
    works = std::min(works + stride, last);
  }
  while (works - fails > 1) {
    const std::int64_t tried = fails + (works - fails) / 2;
    (holds(tried) ? works : fails) = tried;
  }
  return works;
}

std::vector<ServedRequest> requests_of_one(const FleetDemand& demand, std::int64_t replicas) {
  const auto share = static_cast<double>(replicas);
  if (!demand.mix.has_arrivals) return poisson_requests(demand.mix, demand.rate / share, demand.requests, demand.seed);
  const std::vector<ServedRequest> all = replayed_requests(demand.mix, demand.requests, demand.rate);
  std::vector<ServedRequest> out;
  for (std::size_t i = 0; i < all.size(); i += static_cast<std::size_t>(replicas)) out.push_back(all[i]);
  return out;
}

std::optional<Fleet> fewest_replicas(const FleetDemand& demand, const ReplicaKind& kind) {
  if (demand.mix.largest_cached() > cache_tokens(kind.server.rules)) return std::nullopt;
  // A sample ends before a queue that grows slowly shows it: the closed form says where it would.
  const std::int64_t first = fewest_stable(demand, kind);
  if (first > demand.most_replicas) return std::nullopt;
  std::int64_t last = demand.most_replicas;
  if (demand.routing != RequestRouting::kRandom) {
    // Of replicas that are simulated together only counts near those that do without a router are worth the time.
    FleetDemand alone = demand;
    alone.routing = RequestRouting::kRandom;
    const std::optional<Fleet> without = fewest_replicas(alone, kind);
    if (!without) return std::nullopt;
    last = 2 * without->replicas;
  }
  QueueFigures last_met;
  const auto found = smallest_count(first, last, [&](std::int64_t replicas) {
    QueueFigures figures = replica_at(demand, kind, replicas);
    const bool met = meets(figures, demand.limits);
    if (met) last_met = figures;
    return met;
  });
  if (!found) return std::nullopt;
  Fleet out = fleet_of(kind, *found);
  out.replica = last_met;
  return out;
}

std::optional<Fleet> best_fleet(const FleetDemand& demand, std::span<const ReplicaKind> kinds, FleetGoal goal) {
  struct Bounded {
    std::size_t kind;
    double least;
  };
  std::vector<Bounded> order;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    check(goal == FleetGoal::kChips || kinds[i].usd_per_hour > 0, "a cost is known");
    order.push_back({i, price(fleet_of(kinds[i], fewest_stable(demand, kinds[i])), goal)});
  }
  std::stable_sort(order.begin(), order.end(), [](const Bounded& a, const Bounded& b) { return a.least < b.least; });
  std::optional<Fleet> best;
  for (const Bounded& next : order) {
    if (best && next.least > price(*best, goal)) break;
    std::optional<Fleet> fleet = fewest_replicas(demand, kinds[next.kind]);
    if (!fleet) continue;
    fleet->kind = next.kind;
    const bool better = !best || price(*fleet, goal) < price(*best, goal) ||
                        (price(*fleet, goal) == price(*best, goal) && fleet->kind < best->kind);
    if (better) best = fleet;
  }
  return best;
}

double highest_rate(double most, const std::function<bool(double)>& holds) {
  constexpr double kClose = 1.002;
  double works = 0;
  double fails = most;
  for (int i = 0; !holds(fails / 2); ++i) {
    fails /= 2;
    constexpr int kGivenUp = 30;
    if (i == kGivenUp) return 0;
  }
  works = fails / 2;
  while (fails / works > kClose) {
    const double tried = std::sqrt(works * fails);
    (holds(tried) ? works : fails) = tried;
  }
  return works;
}

std::optional<DisaggregatedFleet> fewest_servers(const FleetDemand& demand, const DisaggregatedPools& pools,
                                                 std::int64_t most_servers) {
  const std::vector<ServedRequest> requests = requests_of_one(demand, 1);
  const auto with = [&](std::int64_t prefill, std::int64_t decode) {
    DisaggregatedPools tried = pools;
    tried.prefill_servers = prefill;
    tried.decode_servers = decode;
    return simulate_disaggregated(requests, tried);
  };
  // TTFT knows nothing of the decode pool; TPOT hardly of the prefill pool.
  LatencyLimits first_token = demand.limits;
  first_token.latency_s = first_token.tpot_s = std::nullopt;
  const auto prefill = smallest_count(
      1, most_servers, [&](std::int64_t servers) { return meets(with(servers, most_servers).prefill, first_token); });
  if (!prefill) return std::nullopt;
  const auto decode = smallest_count(1, most_servers, [&](std::int64_t servers) {
    const DisaggregatedResult result = with(*prefill, servers);
    return result.decode.stable && meets(result.both.figures, demand.limits);
  });
  if (!decode) return std::nullopt;
  return DisaggregatedFleet{.prefill_servers = *prefill, .decode_servers = *decode, .result = with(*prefill, *decode)};
}

namespace {

template <class Of>
double mean_over(const std::vector<QueueFigures>& runs, Of of) {
  double sum = 0;
  for (const QueueFigures& run : runs) sum += of(run);
  return sum / static_cast<double>(runs.size());
}

/// Every figure's mean over runs of as many requests on as many servers; counts are added up.
QueueFigures mean_of(const std::vector<QueueFigures>& runs) {
  QueueFigures out = runs.front();
  const auto percentiles = [&](auto of) {
    const auto each = [&](double Percentiles::*member) {
      return mean_over(runs, [&](const QueueFigures& run) { return of(run).*member; });
    };
    return Percentiles{each(&Percentiles::mean), each(&Percentiles::p50), each(&Percentiles::p90),
                       each(&Percentiles::p95), each(&Percentiles::p99)};
  };
  out.ttft_s = percentiles([](const QueueFigures& f) { return f.ttft_s; });
  out.latency_s = percentiles([](const QueueFigures& f) { return f.latency_s; });
  out.wait_s = percentiles([](const QueueFigures& f) { return f.wait_s; });
  const auto all_have = [&](auto member) {
    return std::all_of(runs.begin(), runs.end(), [&](const QueueFigures& f) { return (f.*member).has_value(); });
  };
  if (all_have(&QueueFigures::tpot_s)) out.tpot_s = percentiles([](const QueueFigures& f) { return *f.tpot_s; });
  if (all_have(&QueueFigures::inter_token_s)) {
    out.inter_token_s = percentiles([](const QueueFigures& f) { return *f.inter_token_s; });
  }
  for (double QueueFigures::*member :
       {&QueueFigures::span_s, &QueueFigures::requests_per_s, &QueueFigures::output_tokens_per_s,
        &QueueFigures::mean_batch, &QueueFigures::mean_decoding, &QueueFigures::mean_in_system,
        &QueueFigures::utilisation}) {
    out.*member = mean_over(runs, [&](const QueueFigures& f) { return f.*member; });
  }
  for (std::size_t i = 0; i < out.found_shares.size(); ++i) {
    out.found_shares[i] = mean_over(runs, [&](const QueueFigures& f) { return f.found_shares[i]; });
  }
  for (std::int64_t QueueFigures::*member :
       {&QueueFigures::requests, &QueueFigures::steps, &QueueFigures::evictions, &QueueFigures::recomputed_tokens}) {
    out.*member = 0;
    for (const QueueFigures& f : runs) out.*member += f.*member;
  }
  return out;
}

SeedErrors errors_of(const std::vector<QueueFigures>& runs) {
  // Student's t of 97.5 % by degrees of freedom, one less than the runs.
  constexpr std::array<double, 5> kStudent{0, 12.706, 4.303, 3.182, 2.776};
  const auto runs_count = static_cast<double>(runs.size());
  check(runs.size() <= kStudent.size(), "Student's t is known for so many runs");
  const auto half_width = [&](auto of) {
    const double mean = mean_over(runs, of);
    const double square = mean_over(runs, [&](const QueueFigures& f) { return (of(f) - mean) * (of(f) - mean); });
    return runs.size() > 1 ? kStudent[runs.size() - 1] * std::sqrt(square / (runs_count - 1)) : 0.0;
  };
  return {
      .ttft_s = half_width([](const QueueFigures& f) { return f.ttft_s.mean; }),
      .tpot_s = half_width([](const QueueFigures& f) { return f.tpot_s.value_or(Percentiles{}).mean; }),
      .inter_token_s = half_width([](const QueueFigures& f) { return f.inter_token_s.value_or(Percentiles{}).mean; }),
      .latency_s = half_width([](const QueueFigures& f) { return f.latency_s.mean; }),
      .wait_s = half_width([](const QueueFigures& f) { return f.wait_s.mean; }),
      .output_tokens_per_s = half_width([](const QueueFigures& f) { return f.output_tokens_per_s; })};
}

class TrafficSizing {
 public:
  TrafficSizing(const ServeAnswer& answer, TrafficAsked asked, const Stop& stop)
      : a_(answer), q_(answer.question), asked_(std::move(asked)), stop_(stop) {
    demand_.mix = asked_.mix;
    demand_.rate = asked_.rate;
    demand_.requests = asked_.requests;
    demand_.seed = asked_.seed;
    demand_.routing = asked_.routing.value_or(RequestRouting::kRandom);
    demand_.limits = {.ttft_s = q_.slo_ttft, .tpot_s = q_.slo_tpot, .latency_s = q_.slo_request};
    for (const ServeSystem& system : a_.systems) {
      bases_.push_back(std::make_unique<ServeBasis<double>>(Reader<double>{}, system.serving));
    }
  }

  std::optional<TrafficAnswer> run() {
    check(a_.best.has_value(), "traffic needs a layout");
    if (asked_.clients) return on_clients(*a_.best);
    if (asked_.most) return most_carried();
    if (a_.best->pools) return on_pools(*a_.best);
    return q_.chips ? std::optional(on_given_chips(*a_.best)) : fleet();
  }

 private:
  ReplicaQuestion replica_question(std::size_t system) const {
    return {.mix = asked_.mix,
            .prefix_hit = q_.prefix_hit,
            .chunk = q_.chunk.value_or(a_.systems[system].serving.chunk_tokens),
            .store = asked_.store};
  }

  ReplicaKind kind_of(const ServePoint& p) const {
    ReplicaKind out{.name = describe(p.layout), .chips = static_cast<double>(p.layout.replica_chips())};
    out.server = replica_server(*bases_[p.system], p.layout, p.slice, p.placement, replica_question(p.system));
    out.server.stop = stop_;
    out.server.front_end = front_end_of(a_.systems[p.system].serving.engine);
    out.usd_per_hour = out.chips * a_.systems[p.system].usd_per_chip_hour.value_or(0);
    return out;
  }

  TrafficAnswer start(const ServePoint& p, std::int64_t replicas) const {
    TrafficAnswer out{.asked = asked_, .limits = demand_.limits, .system = p.system, .layout = p.layout};
    out.layout.dp = replicas;
    out.chips = out.layout.chips();
    if (const auto price = a_.systems[p.system].usd_per_chip_hour) {
      out.usd_per_hour = *price * static_cast<double>(out.chips);
    }
    return out;
  }

  void add_replica(TrafficAnswer& out, const ReplicaKind& kind, const QueueFigures& figures) const {
    out.rules = kind.server.rules;
    out.figures = figures;
    if (asked_.rate > 0) {
      QueueRules rules = kind.server.rules;
      if (asked_.mix.blocks) rules.prefix_hit = figures.found_share();
      out.steady =
          steady_state(kind.server.seconds, rules, asked_.mix, asked_.rate / static_cast<double>(out.layout.dp));
      add_front_end(*out.steady, kind.server.front_end);
    }
    out.carries = (!out.steady || out.steady->stable) && meets(figures, demand_.limits);
  }

  /// The requests in flight that make it longer are those of Little's law with it.
  static void add_front_end(SteadyState& steady, const FrontEnd& front) {
    const double share = steady.rate * front.per_client_s;
    if (!steady.stable || share >= 1) return;
    const double through = (front.seconds(1) + share * steady.latency_s) / (1 - share);
    steady.latency_s += through;
    if (steady.ttft_s) *steady.ttft_s += through;
    if (steady.wait_s) *steady.wait_s += through;
  }

  TrafficAnswer on_clients(const ServePoint& p) const {
    const std::optional<DisaggregatedPools> pools = p.pools ? std::optional(pools_of(p)) : std::nullopt;
    TrafficAnswer out = pools ? start_pools(p, *pools) : start(p, p.layout.dp);
    const ServerKind server = pools ? pools->decode : kind_of(p).server;
    const RequestRouting routing = asked_.routing.value_or(RequestRouting::kLeastLoaded);
    out.rules = server.rules;
    // Seeds differ in lengths alone.
    constexpr std::uint64_t kSeeds = 5;
    out.seeds = asked_.mix.is_fixed() ? 1 : kSeeds;
    std::vector<QueueFigures> runs;
    for (std::int64_t i = 0; i < out.seeds; ++i) {
      const std::vector<ServedRequest> requests =
          drawn_requests(asked_.mix, asked_.client_requests.value_or(asked_.usual_client_requests()),
                         asked_.seed + static_cast<std::uint64_t>(i));
      runs.push_back(pools ? simulate_disaggregated(requests, *pools, asked_.clients).both.figures
                           : simulate_clients(requests, *asked_.clients, server, p.layout.dp, routing).figures);
    }
    out.figures = mean_of(runs);
    out.errors = errors_of(runs);
    out.carries = meets(out.figures, demand_.limits);
    return out;
  }

  /// The highest rate that any layout of the points carries; those that could carry most come first.
  std::optional<TrafficAnswer> most_carried() {
    struct Bounded {
      const ServePoint* point;
      double most;
    };
    std::vector<Bounded> order;
    std::set<std::pair<std::size_t, ServeLayout>> known;
    const auto add = [&](const ServePoint& p) {
      const bool shared = !p.pools && !a_.best->pools;
      if (shared && !known.emplace(p.system, p.layout).second) return;
      if (shared)
        order.push_back({&p, largest_rate_of(asked_.mix, kind_of(p).server) * static_cast<double>(p.layout.dp)});
    };
    add(*a_.best);
    for (const ServePoint& p : a_.points) add(p);
    // Of two pools the best alone, whose split is made for its batch; no more than its prefill servers take up.
    if (order.empty()) {
      const DisaggregatedPools pools = pools_of(*a_.best);
      RequestMix prompts = asked_.mix;
      prompts.generate = Lengths::fixed(1);
      for (ServedRequest& row : prompts.rows) row.generate = 1;
      order.push_back(
          {&*a_.best, largest_rate_of(prompts, pools.prefill) * static_cast<double>(pools.prefill_servers)});
    }
    std::stable_sort(order.begin(), order.end(), [](const Bounded& a, const Bounded& b) { return a.most > b.most; });
    std::optional<TrafficAnswer> best;
    for (const Bounded& next : order) {
      if (best && next.most <= best->asked.rate) break;
      const double found = highest_rate(next.most, [&](double rate) { return at_rate(*next.point, rate)->carries; });
      if (found <= 0 || (best && found <= best->asked.rate)) continue;
      best = at_rate(*next.point, found);
      best->kinds = order.size();
    }
    return best;
  }

  std::optional<TrafficAnswer> at_rate(const ServePoint& p, double rate) {
    asked_.rate = demand_.rate = rate;
    return p.pools ? on_pools(p) : on_given_chips(p);
  }

  TrafficAnswer on_given_chips(const ServePoint& p) const {
    TrafficAnswer out = start(p, p.layout.dp);
    const ReplicaKind kind = kind_of(p);
    add_replica(out, kind, replica_at(demand_, kind, p.layout.dp));
    return out;
  }

  std::optional<TrafficAnswer> fleet() const {
    // Replicas alike but for their number are one kind.
    std::map<std::pair<std::size_t, ServeLayout>, const ServePoint*> distinct;
    const auto add = [&](const ServePoint& p) {
      ServeLayout one = p.layout;
      one.dp = 1;
      if (!p.pools) distinct.emplace(std::pair(p.system, one), &p);
    };
    add(*a_.best);
    for (const ServePoint& p : a_.points) add(p);
    std::vector<const ServePoint*> points;
    std::vector<ReplicaKind> kinds;
    const bool by_cost = q_.objective == ServeObjective::kCost;
    for (const auto& [key, p] : distinct) {
      if (by_cost && !a_.systems[p->system].usd_per_chip_hour) continue;
      points.push_back(p);
      kinds.push_back(kind_of(*p));
    }
    const std::optional<Fleet> found = best_fleet(demand_, kinds, by_cost ? FleetGoal::kCost : FleetGoal::kChips);
    if (!found) return std::nullopt;
    TrafficAnswer out = start(*points[found->kind], found->replicas);
    out.fleet_searched = true;
    out.kinds = kinds.size();
    add_replica(out, kinds[found->kind], found->replica);
    return out;
  }

  DisaggregatedPools pools_of(const ServePoint& p) const {
    const PoolSplit& split = *p.pools;
    const std::size_t prompts_on = a_.prefill_system.value_or(p.system);
    const ServeSystem& system = a_.systems[prompts_on];
    const ServeBasis<double>& basis = *bases_[prompts_on];
    const std::vector<Slice> slices = slices_of(*system.hw, split.prefill_layout.replica_chips(), 1);
    const auto slice = std::find_if(slices.begin(), slices.end(), [&](const Slice& s) {
      return !placed(*system.hw, s, split.prefill_layout).empty();
    });
    check(slice != slices.end(), "the prefill pool's replica lies on a slice");
    DisaggregatedPools out;
    out.prefill = replica_server(basis, split.prefill_layout, *slice,
                                 best_placement(basis, split.prefill_layout, *slice), replica_question(prompts_on));
    out.prefill.stop = stop_;
    out.prefill.front_end = front_end_of(system.serving.engine);
    out.decode = kind_of(p).server;
    out.prefill_servers = split.prefill_replicas;
    out.decode_servers = split.decode_replicas;
    out.transfer_s = [each = split.transfer_s / q_.prompt](double tokens) { return each * tokens; };
    out.routing = asked_.routing.value_or(RequestRouting::kLeastLoaded);
    return out;
  }

  TrafficAnswer start_pools(const ServePoint& p, const DisaggregatedPools& pools) const {
    const ServeSystem& system = a_.systems[a_.prefill_system.value_or(p.system)];
    TrafficAnswer out = start(p, pools.decode_servers);
    out.kinds = 1;
    out.prefill_layout = p.pools->prefill_layout;
    out.prefill_layout.dp = pools.prefill_servers;
    out.chips += out.prefill_layout.chips();
    if (out.usd_per_hour && system.usd_per_chip_hour) {
      *out.usd_per_hour += *system.usd_per_chip_hour * static_cast<double>(out.prefill_layout.chips());
    } else {
      out.usd_per_hour.reset();
    }
    out.rules = pools.decode.rules;
    out.pools.emplace(
        DisaggregatedFleet{.prefill_servers = pools.prefill_servers, .decode_servers = pools.decode_servers});
    return out;
  }

  std::optional<TrafficAnswer> on_pools(const ServePoint& p) const {
    DisaggregatedPools pools = pools_of(p);
    std::optional<DisaggregatedFleet> found;
    if (q_.chips) {
      found = DisaggregatedFleet{.prefill_servers = pools.prefill_servers,
                                 .decode_servers = pools.decode_servers,
                                 .result = simulate_disaggregated(requests_of_one(demand_, 1), pools)};
    } else {
      found = fewest_servers(demand_, pools);
    }
    if (!found) return std::nullopt;
    pools.prefill_servers = found->prefill_servers;
    pools.decode_servers = found->decode_servers;
    TrafficAnswer out = start_pools(p, pools);
    out.fleet_searched = !q_.chips;
    out.figures = found->result.both.figures;
    out.carries = found->result.decode.stable && meets(out.figures, demand_.limits);
    out.pools = std::move(found);
    return out;
  }

  const ServeAnswer& a_;
  const ServeQuestion& q_;
  TrafficAsked asked_;
  const Stop& stop_;
  FleetDemand demand_;
  std::vector<std::unique_ptr<ServeBasis<double>>> bases_;
};

}  // namespace

std::optional<TrafficAnswer> answer_traffic(const ServeAnswer& answer, const TrafficAsked& asked, const Stop& stop) {
  return TrafficSizing(answer, asked, stop).run();
}

}  // namespace scalecalc
