// Simulates arriving requests on the layouts of a serving answer and sizes the fleet they need.
#include "serve/traffic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "base/check.h"
#include "base/diagnostic.h"
#include "serve/over_seeds.h"
#include "serve/queueing.h"
#include "serve/requests.h"
#include "serve/serving_cost.h"

namespace scalecalc {
namespace {

double at_share(const Percentiles& p, double share) {
  if (share <= 0.5) return p.p50;
  return share <= 0.95 ? p.p95 : p.p99;
}

/// What is seen of a simulation, by all and by each tenant, and whether the demand's limits are kept.
struct Judged {
  QueueFigures figures;
  std::vector<TenantFigures> tenants;
  std::optional<MeanErrors> errors;
  bool met = false;
};

Judged judged(const FleetDemand& demand, const QueueResult& result) {
  Judged out{.figures = result.figures};
  if (demand.rate > 0) out.errors = errors_of(result);
  if (!demand.mix.tenants.empty()) {
    const auto count = static_cast<std::int64_t>(result.requests.size());
    out.tenants = tenant_figures(demand.mix, result.requests, drawn_tenants(demand.mix, count, demand.seed));
  }
  out.met = meets(out.figures, demand.limits) && all_meet(out.tenants);
  return out;
}

Judged replica_at(const FleetDemand& demand, const ReplicaKind& kind, std::int64_t replicas) {
  if (demand.routing == RequestRouting::kRandom)
    return judged(demand, simulate_queue(requests_of_one(demand, replicas), kind.server));
  return judged(demand, simulate_queue(requests_of_one(demand, 1), kind.server, replicas, demand.routing));
}

/// The same demand, of which only the first token matters.
FleetDemand of_first_tokens(const FleetDemand& demand) {
  FleetDemand out = demand;
  out.limits.latency_s = out.limits.tpot_s = std::nullopt;
  for (Tenant& tenant : out.mix.tenants) tenant.limits.latency_s = tenant.limits.tpot_s = std::nullopt;
  return out;
}

/// No server decodes more requests a second: between x and 2x sequences no more leave than 2x would in a step of x.
double most_decoded(const RequestMix& mix, const ServerKind& server) {
  const double steps = mix.decode_steps();
  const auto most = static_cast<double>(server.rules.most_sequences);
  double out = 0;
  for (double x = 1; x <= most; x *= 2) {
    const double step = server.seconds({.sequences = x, .context_tokens = x * mix.decode_context()});
    out = std::max(out, std::min(2 * x, most) / step);
  }
  return steps > 0 ? out / steps : std::numeric_limits<double>::infinity();
}

/// The same requests, which end with their first token.
RequestMix prompts_of(const RequestMix& mix) {
  RequestMix out = mix;
  out.generate = Lengths::fixed(1);
  for (ServedRequest& row : out.rows) row.generate = 1;
  return out;
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
  Judged last_met;
  const auto found = smallest_count(first, last, [&](std::int64_t replicas) {
    Judged now = replica_at(demand, kind, replicas);
    const bool met = now.met;
    if (met) last_met = std::move(now);
    return met;
  });
  if (!found) return std::nullopt;
  Fleet out = fleet_of(kind, *found);
  out.replica = last_met.figures;
  out.tenants = std::move(last_met.tenants);
  out.errors = last_met.errors;
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
  const FleetDemand first_token = of_first_tokens(demand);
  const auto prefill = smallest_count(1, most_servers, [&](std::int64_t servers) {
    DisaggregatedResult result = with(servers, most_servers);
    result.both.figures = result.prefill;
    return judged(first_token, result.both).met;
  });
  if (!prefill) return std::nullopt;
  const auto decode = smallest_count(1, most_servers, [&](std::int64_t servers) {
    const DisaggregatedResult result = with(*prefill, servers);
    return result.decode.stable && judged(demand, result.both).met;
  });
  if (!decode) return std::nullopt;
  return DisaggregatedFleet{.prefill_servers = *prefill, .decode_servers = *decode, .result = with(*prefill, *decode)};
}

namespace {

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
    if (q_.chips) return on_the_chips();
    return a_.best->pools ? on_pools(*a_.best) : fleet();
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

  /// Of all replicas, where one was simulated for the others.
  static QueueFigures of_all(QueueFigures figures, std::int64_t replicas) {
    const double times = static_cast<double>(replicas) / static_cast<double>(figures.servers);
    for (double* each :
         {&figures.requests_per_s, &figures.output_tokens_per_s, &figures.mean_decoding, &figures.mean_in_system}) {
      *each *= times;
    }
    return figures;
  }

  /// `met`: the simulated requests keep the limits.
  void add_replica(TrafficAnswer& out, const ReplicaKind& kind, const QueueFigures& figures, bool met) const {
    out.rules = kind.server.rules;
    out.figures = of_all(figures, out.layout.dp);
    if (asked_.rate > 0) {
      out.steady = steady_of(kind, figures, out.layout.dp);
      add_front_end(*out.steady, kind.server.front_end);
    }
    out.carries = (!out.steady || out.steady->stable) && met;
  }

  QueueRules steady_rules(const ReplicaKind& kind, const QueueFigures& figures) const {
    QueueRules out = kind.server.rules;
    if (asked_.mix.blocks) out.prefix_hit = figures.found_share();
    return out;
  }

  /// Why requests are not the closed form's: random arrivals of its share of the rate at a replica that no other
  /// request makes a difference to.
  OnlyNear near_by_requests(std::int64_t replicas) const {
    if (asked_.mix.has_arrivals) return OnlyNear::kTrace;
    if (asked_.mix.blocks) return OnlyNear::kPrefixes;
    if (demand_.routing != RequestRouting::kRandom && replicas > 1) return OnlyNear::kRouting;
    return OnlyNear::kNothing;
  }

  /// Its means, where they are proven; elsewhere what the simulation has in their place.
  SteadyState steady_of(const ReplicaKind& kind, const QueueFigures& figures, std::int64_t replicas) const {
    const QueueRules rules = steady_rules(kind, figures);
    const double rate = asked_.rate / static_cast<double>(replicas);
    SteadyState out = steady_rates(kind.server.seconds, rules, asked_.mix, rate);
    if (const OnlyNear near = near_by_requests(replicas); near != OnlyNear::kNothing) out.only_near = near;
    if (out.proven()) out = steady_state(kind.server.seconds, rules, asked_.mix, rate);
    if (out.proven() || asked_.mix.decode_steps() <= 0) return out;
    out.gap_s = figures.mean_decoding / (figures.requests_per_s * asked_.mix.decode_steps());
    add_per_step(out, asked_.mix);
    return out;
  }

  /// The requests in flight that make it longer are those of Little's law with it.
  static void add_front_end(SteadyState& steady, const FrontEnd& front) {
    const double share = steady.rate * front.per_client_s;
    if (!steady.proven() || share >= 1) return;
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
    std::vector<RequestTimes> times;  // of all seeds, where tenants share them
    std::vector<std::uint16_t> tenants;
    for (std::int64_t i = 0; i < out.seeds; ++i) {
      const std::int64_t count = asked_.client_requests.value_or(asked_.usual_client_requests());
      const std::uint64_t seed = asked_.seed + static_cast<std::uint64_t>(i);
      const std::vector<ServedRequest> requests = drawn_requests(asked_.mix, count, seed);
      const QueueResult run = pools ? simulate_disaggregated(requests, *pools, asked_.clients).both
                                    : simulate_clients(requests, *asked_.clients, server, p.layout.dp, routing);
      runs.push_back(run.figures);
      if (asked_.mix.tenants.empty()) continue;
      times.insert(times.end(), run.requests.begin(), run.requests.end());
      const std::vector<std::uint16_t> whose = drawn_tenants(asked_.mix, count, seed);
      tenants.insert(tenants.end(), whose.begin(), whose.end());
    }
    out.figures = mean_of(runs);
    out.errors = errors_of(runs);
    if (!tenants.empty()) out.tenants = tenant_figures(asked_.mix, times, tenants);
    out.carries = meets(out.figures, demand_.limits) && all_meet(out.tenants);
    return out;
  }

  /// A point as it might carry requests, and a rate that it certainly does not exceed.
  struct Carrier {
    ServePoint point;
    double most = 0;
  };

  /// Every layout of the points once; of two pools with every split of the chips between them.
  std::vector<Carrier> carriers() const {
    std::vector<Carrier> out;
    std::set<std::tuple<std::size_t, ServeLayout, std::optional<ServeLayout>>> known;
    const auto add = [&](const ServePoint& p) {
      const std::optional<ServeLayout> prompts = p.pools ? std::optional(p.pools->prefill_layout) : std::nullopt;
      if (!known.emplace(p.system, p.layout, prompts).second) return;
      if (p.pools) return add_splits(p, out);
      out.push_back({p, largest_rate_of(asked_.mix, kind_of(p).server) * static_cast<double>(p.layout.dp)});
    };
    add(*a_.best);
    for (const ServePoint& p : a_.points) add(p);
    std::stable_sort(out.begin(), out.end(), [](const Carrier& a, const Carrier& b) { return a.most > b.most; });
    return out;
  }

  /// Every number of decode servers, with as many prefill servers as the chips leave; on other chips, of which there
  /// are always enough, as many as the decode servers can keep busy.
  void add_splits(const ServePoint& p, std::vector<Carrier>& out) const {
    const ServePins prefill_fix = q_.prefill_fix.or_else(q_.fix), prefill_max = q_.prefill_max.or_else(q_.max);
    const ServePins decode_fix = q_.decode_fix.or_else(q_.fix), decode_max = q_.decode_max.or_else(q_.max);
    const DisaggregatedPools pools = pools_of(p);
    const double prompts = largest_rate_of(prompts_of(asked_.mix), pools.prefill);
    const double answers = most_decoded(asked_.mix, pools.decode);
    const std::int64_t chips = *q_.chips;
    const std::int64_t decode_chips = p.layout.replica_chips();
    const std::int64_t prefill_chips = p.pools->prefill_layout.replica_chips();
    const std::int64_t last = std::min(chips / decode_chips, decode_fix.dp.value_or(decode_max.dp.value_or(chips)));
    for (std::int64_t decoders = decode_fix.dp.value_or(1); decoders <= last; ++decoders) {
      const double busy = std::ceil(static_cast<double>(decoders) * answers / prompts);
      std::int64_t room = a_.prefill_system ? static_cast<std::int64_t>(std::clamp(busy, 1.0, 1e4))
                                            : (chips - decoders * decode_chips) / prefill_chips;
      room = std::min(room, prefill_fix.dp.value_or(prefill_max.dp.value_or(room)));
      if (room < prefill_fix.dp.value_or(1)) continue;
      Carrier carrier{p, std::min(prompts * static_cast<double>(room), answers * static_cast<double>(decoders))};
      PoolSplit& split = *carrier.point.pools;
      split.prefill_replicas = room;
      split.decode_replicas = decoders;
      split.prefill_chips = room * prefill_chips;
      split.decode_chips = decoders * decode_chips;
      out.push_back(std::move(carrier));
    }
  }

  /// The highest rate that any layout of the points carries, and any split; those that could carry most come first.
  std::optional<TrafficAnswer> most_carried() {
    const std::vector<Carrier> all = carriers();
    std::optional<TrafficAnswer> best;
    for (const Carrier& next : all) {
      if (best && next.most <= best->asked.rate) break;
      const auto carried = [&](double rate) { return carries(next.point, rate); };
      // One simulation tells whether it is better by what is told apart.
      constexpr double kTold = 1.002;
      if (best && (next.most <= kTold * best->asked.rate || !carried(kTold * best->asked.rate))) continue;
      const double found = highest_rate(next.most, carried);
      if (found <= 0 || (best && found <= best->asked.rate)) continue;
      best = at_rate(next.point, found);
      best->kinds = all.size();
    }
    return best;
  }

  /// The best layout on the chips; where tenants have limits that it misses, the first of the others that keeps them.
  std::optional<TrafficAnswer> on_the_chips() const {
    const auto on = [&](const ServePoint& p) { return p.pools ? on_pools(p) : std::optional(on_given_chips(p)); };
    std::optional<TrafficAnswer> best = on(*a_.best);
    if (!best || best->carries || asked_.mix.tenants.empty()) return best;
    std::set<std::tuple<std::size_t, ServeLayout, std::optional<ServeLayout>>> known;
    for (const ServePoint& p : a_.points) {
      const std::optional<ServeLayout> prompts = p.pools ? std::optional(p.pools->prefill_layout) : std::nullopt;
      if (!known.emplace(p.system, p.layout, prompts).second) continue;
      std::optional<TrafficAnswer> other = on(p);
      if (other && other->carries) return other;
    }
    return best;
  }

  std::optional<TrafficAnswer> at_rate(const ServePoint& p, double rate) {
    asked_.rate = demand_.rate = rate;
    return p.pools ? on_pools(p) : on_given_chips(p);
  }

  /// As `at_rate` has it, without what is told of a rate that is the answer.
  bool carries(const ServePoint& p, double rate) {
    if (p.pools) return at_rate(p, rate)->carries;
    asked_.rate = demand_.rate = rate;
    const ReplicaKind kind = kind_of(p);
    const Judged found = replica_at(demand_, kind, p.layout.dp);
    return found.met && keeps_up(kind.server.seconds, steady_rules(kind, found.figures), asked_.mix,
                                 rate / static_cast<double>(p.layout.dp));
  }

  TrafficAnswer on_given_chips(const ServePoint& p) const {
    TrafficAnswer out = start(p, p.layout.dp);
    const ReplicaKind kind = kind_of(p);
    Judged found = replica_at(demand_, kind, p.layout.dp);
    add_replica(out, kind, found.figures, found.met);
    out.errors = found.errors;
    out.tenants = std::move(found.tenants);
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
    const auto priced = [&](const auto& each) { return a_.systems[each.second->system].usd_per_chip_hour.has_value(); };
    const bool by_cost = q_.objective == ServeObjective::kCost && std::any_of(distinct.begin(), distinct.end(), priced);
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
    add_replica(out, kinds[found->kind], found->replica, true);
    out.tenants = found->tenants;
    out.errors = found->errors;
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
    Judged seen = judged(demand_, found->result.both);
    out.figures = seen.figures;
    out.tenants = std::move(seen.tenants);
    out.errors = seen.errors;
    out.carries = found->result.decode.stable && seen.met;
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
  if (!continues_prompts(answer)) {
    throw UserError(fmt::format("requests that come by chance are not modelled of {}: {}", answer.model->name,
                                one_pass(answer) ? "it generates nothing" : "an encoder reads its prompts"),
                    "leave out --rate and --concurrency; --batch says how many are in flight");
  }
  return TrafficSizing(answer, asked, stop).run();
}

}  // namespace scalecalc
