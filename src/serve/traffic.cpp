#include "serve/traffic.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

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

namespace {

class TrafficSizing {
 public:
  TrafficSizing(const ServeAnswer& answer, const TrafficAsked& asked, const Stop& stop)
      : a_(answer), q_(answer.question), asked_(asked), stop_(stop) {
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
    out.server.stop = stop_;
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
    pools.prefill.stop = stop_;
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
  const Stop& stop_;
  FleetDemand demand_;
  std::vector<std::unique_ptr<ServeBasis<double>>> bases_;
};

}  // namespace

std::optional<TrafficAnswer> answer_traffic(const ServeAnswer& answer, const TrafficAsked& asked, const Stop& stop) {
  return TrafficSizing(answer, asked, stop).run();
}

namespace {

ServeStep step_of(const StepLoad& load) {
  ServeStep step{.decode_sequences = load.sequences};
  if (load.sequences > 0) step.context = load.context_tokens / load.sequences;
  if (load.prefill_tokens > 0) {
    step.prefill_sequences = std::max(load.prompts, 1.0);
    step.prefill_tokens = load.prefill_tokens / step.prefill_sequences;
    step.cached = std::max(load.prefill_context - (step.prefill_tokens + 1) / 2, 0.0);
  }
  return step;
}

double tokens_that_fit(const ServeMemory& memory, double context) {
  constexpr double kMost = 1e15;  // caches that do not grow
  const double sequences = std::max(memory.max_batch(context), 1.0);
  return std::min(memory.max_context(sequences) * sequences, kMost);
}

}  // namespace

ServerKind replica_server(const ServeBasis<double>& basis, const ServeLayout& layout, const Slice& slice,
                          const Placement& placement, const ReplicaQuestion& question) {
  const auto lanes = static_cast<double>(layout.attention_dp * layout.pp) *
                     (layout.scheme == ServeScheme::kGathered ? static_cast<double>(layout.tp) : 1);
  const ServeMemory memory(basis, layout);
  const EngineRules& engine = basis.system.engine;
  constexpr std::int64_t kNoLimit = 1 << 20;
  const RequestMix& mix = question.mix;
  const double context = mix.decode_steps() > 0 ? mix.decode_context() : mix.prompt.mean();
  ServerKind out;
  out.rules.admission = engine.reserves_whole ? Admission::kRequestFits : Admission::kPromptFits;
  out.rules.prompt_chunk = static_cast<std::int64_t>(question.chunk);
  out.rules.most_sequences =
      engine.most_sequences > 0 ? static_cast<std::int64_t>(lanes) * engine.most_sequences : kNoLimit;
  out.rules.kv_tokens = tokens_that_fit(memory, context);
  // The cache never holds more sequences than this, so the budget keeps room for all to decode.
  const auto decoding = static_cast<std::int64_t>(
      std::min(std::ceil(out.rules.kv_tokens / context), static_cast<double>(out.rules.most_sequences)));
  out.rules.token_budget = std::max(static_cast<std::int64_t>(lanes * question.chunk), decoding + 1);
  out.rules.prefix_hit = question.prefix_hit;
  const auto cost = std::make_shared<const ServingCost<double>>(basis, layout, slice, placement);
  out.seconds = [cost](const StepLoad& load) { return cost->step(step_of(load)).total().value(); };
  return out;
}

}  // namespace scalecalc
