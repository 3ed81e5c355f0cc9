#include "serve/fleet.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "serve/steady_state.h"

namespace scalecalc {
namespace {

double at_share(const Percentiles& p, double share) {
  if (share <= 0.5) return p.p50;
  return share <= 0.95 ? p.p95 : p.p99;
}

QueueFigures replica_at(const FleetDemand& demand, const ReplicaKind& kind, std::int64_t replicas) {
  return simulate_queue(requests_of_one(demand, replicas), kind.server).figures;
}

/// Replicas below which the queue grows whatever the limits: [RATE-MAX].
std::int64_t fewest_stable(const FleetDemand& demand, const ReplicaKind& kind) {
  const double largest = largest_rate(kind.server.seconds, kind.server.rules, demand.mix);
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
  QueueFigures last_met;
  const auto found = smallest_count(first, demand.most_replicas, [&](std::int64_t replicas) {
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

std::optional<DisaggregatedFleet> fewest_servers(const FleetDemand& demand, const DisaggregatedPools& pools,
                                                 std::int64_t most_servers) {
  const std::vector<ServedRequest> requests = poisson_requests(demand.mix, demand.rate, demand.requests, demand.seed);
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

}  // namespace scalecalc
