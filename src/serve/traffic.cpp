#include "serve/traffic.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "base/check.h"
#include "base/diagnostic.h"
#include "serve/replica_server.h"
#include "serve/serving_cost.h"

namespace scalecalc {
namespace {

class TrafficSizing {
 public:
  TrafficSizing(const ServeAnswer& answer, const TrafficAsked& asked) : a_(answer), q_(answer.question), asked_(asked) {
    demand_.mix = asked.mix;
    demand_.rate = asked.rate;
    demand_.requests = asked.requests;
    demand_.seed = asked.seed;
    demand_.limits = {.ttft_s = q_.slo_ttft, .tpot_s = q_.slo_tpot, .latency_s = q_.slo_request};
    for (const ServeSystem& system : a_.systems) {
      bases_.push_back(std::make_unique<ServeBasis<double>>(Reader<double>{}, system.serving));
    }
  }

  std::optional<TrafficAnswer> run() {
    check(a_.best.has_value(), "traffic needs a layout");
    if (a_.best->pools) return on_pools(*a_.best);
    return q_.chips ? std::optional(on_given_chips(*a_.best)) : fleet();
  }

 private:
  ReplicaQuestion replica_question(std::size_t system) const {
    return {.mix = asked_.mix,
            .prefix_hit = q_.prefix_hit,
            .chunk = q_.chunk.value_or(a_.systems[system].serving.chunk_tokens)};
  }

  ReplicaKind kind_of(const ServePoint& p) const {
    ReplicaKind out{.name = describe(p.layout), .chips = static_cast<double>(p.layout.replica_chips())};
    out.server = replica_server(*bases_[p.system], p.layout, p.slice, p.placement, replica_question(p.system));
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
    out.steady = steady_state(kind.server.seconds, kind.server.rules, asked_.mix,
                              asked_.rate / static_cast<double>(out.layout.dp));
    out.carries = out.steady->stable && meets(figures, demand_.limits);
  }

  TrafficAnswer on_given_chips(const ServePoint& p) const {
    TrafficAnswer out = start(p, p.layout.dp);
    const ReplicaKind kind = kind_of(p);
    add_replica(out, kind, simulate_queue(requests_of_one(demand_, p.layout.dp), kind.server).figures);
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

  std::optional<TrafficAnswer> on_pools(const ServePoint& p) const {
    const PoolSplit& split = *p.pools;
    const std::size_t prompts_on = a_.prefill_system.value_or(p.system);
    const ServeSystem& system = a_.systems[prompts_on];
    const ServeBasis<double>& basis = *bases_[prompts_on];
    const std::vector<Slice> slices = slices_of(*system.hw, split.prefill_layout.replica_chips(), 1);
    ServeLayout prefill_layout = split.prefill_layout;
    prefill_layout.dp = 1;
    const auto slice = std::find_if(slices.begin(), slices.end(),
                                    [&](const Slice& s) { return !placed(*system.hw, s, prefill_layout).empty(); });
    check(slice != slices.end(), "the prefill pool's replica lies on a slice");
    DisaggregatedPools pools;
    pools.prefill = replica_server(basis, prefill_layout, *slice, best_placement(basis, prefill_layout, *slice),
                                   replica_question(prompts_on));
    pools.decode = kind_of(p).server;
    pools.transfer_s = [each = split.transfer_s / q_.prompt](double tokens) { return each * tokens; };
    std::optional<DisaggregatedFleet> found;
    if (q_.chips) {
      pools.prefill_servers = split.prefill_replicas;
      pools.decode_servers = split.decode_replicas;
      found = DisaggregatedFleet{.prefill_servers = split.prefill_replicas,
                                 .decode_servers = split.decode_replicas,
                                 .result = simulate_disaggregated(requests_of_one(demand_, 1), pools)};
    } else {
      found = fewest_servers(demand_, pools);
    }
    if (!found) return std::nullopt;
    TrafficAnswer out = start(p, found->decode_servers);
    out.fleet_searched = !q_.chips;
    out.kinds = 1;
    out.prefill_layout = prefill_layout;
    out.prefill_layout.dp = found->prefill_servers;
    out.chips += out.prefill_layout.chips();
    if (out.usd_per_hour && system.usd_per_chip_hour) {
      *out.usd_per_hour += *system.usd_per_chip_hour * static_cast<double>(out.prefill_layout.chips());
    } else {
      out.usd_per_hour.reset();
    }
    out.rules = pools.decode.rules;
    out.figures = found->result.both.figures;
    out.carries = found->result.decode.stable && meets(out.figures, demand_.limits);
    out.pools = std::move(found);
    return out;
  }

  const ServeAnswer& a_;
  const ServeQuestion& q_;
  const TrafficAsked& asked_;
  FleetDemand demand_;
  std::vector<std::unique_ptr<ServeBasis<double>>> bases_;
};

}  // namespace

std::optional<TrafficAnswer> answer_traffic(const ServeAnswer& answer, const TrafficAsked& asked) {
  return TrafficSizing(answer, asked).run();
}

}  // namespace scalecalc
