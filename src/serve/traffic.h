// What requests that arrive one by one see of a serving answer's layouts: `serve --rate`, `--trace`, `--simulate`.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "serve/queueing.h"
#include "serve/serve_question.h"
#include "serve/serve_work.h"
#include "serve/serving_cost.h"
#include "serve/serving_system.h"
#include "serve/tenants.h"

namespace scalecalc {

// Fleets that carry a rate of requests under limits of what users see: the fewest replicas, the cheapest kind of
// replica, prefill and decode servers in proportion.
//
// Without a routing of their own requests are dealt to replicas at random, so that each sees Poisson arrivals of its
// share of the rate (thinning: Kleinrock, Queueing Systems I, section 2.4). A router that looks at the queues does
// better.

/// The smallest count in first..last that `holds`, which stays true for every larger one; nothing if none does.
std::optional<std::int64_t> smallest_count(std::int64_t first, std::int64_t last,
                                           const std::function<bool(std::int64_t)>& holds);

/// The highest rate below `most` that `holds`, to a part in 500; what holds does so at every lower one too. 0 if none
/// does.
double highest_rate(double most, const std::function<bool(double)>& holds);

/// Half widths of the 95 % confidence intervals of means, over seeds or over parts of one simulation; 0 where requests
/// are all alike.
struct MeanErrors {
  double ttft_s = 0, tpot_s = 0, inter_token_s = 0, latency_s = 0, wait_s = 0, output_tokens_per_s = 0;
};

/// What a fleet is asked to carry.
struct FleetDemand {
  RequestMix mix;
  double rate = 1;  ///< requests a second; 0: all at once
  LatencyLimits limits;
  std::int64_t requests = 2000;  ///< simulated for every count of replicas that is tried
  std::uint64_t seed = 1;
  std::int64_t most_replicas = 100'000;
  RequestRouting routing = RequestRouting::kRandom;
};

/// A kind of replica: a layout on its chips.
struct ReplicaKind {
  std::string name;
  ServerKind server;
  double chips = 1;
  double usd_per_hour = 0;  ///< of the whole replica; 0 = not known
};

struct Fleet {
  std::size_t kind = 0;  ///< index into the kinds asked about
  std::int64_t replicas = 0;
  double chips = 0;
  double usd_per_hour = 0;
  QueueFigures replica;  ///< of one replica at its share of the rate; of all of them where a router looks at them
  std::vector<TenantFigures> tenants;  ///< the same of each
  std::optional<MeanErrors> errors;
};

/// The requests that one of so many replicas sees: Poisson arrivals of its share of the rate; of a trace with arrivals,
/// stretched to the rate, every so-manieth.
std::vector<ServedRequest> requests_of_one(const FleetDemand& demand, std::int64_t replicas);

/// The fewest replicas of a kind that carry the demand; nothing if even a replica with hardly a request misses a limit,
/// or the longest request does not fit one.
std::optional<Fleet> fewest_replicas(const FleetDemand& demand, const ReplicaKind& kind);

enum class FleetGoal { kChips, kCost };

/// The best fleet over all kinds; ties go to the kind named first. A kind whose fewest replicas by its largest rate
/// alone are more than the best found is not simulated.
std::optional<Fleet> best_fleet(const FleetDemand& demand, std::span<const ReplicaKind> kinds, FleetGoal goal);

/// Prefill and decode servers for a demand: each pool the smallest that keeps its limit (TTFT, TPOT). The limit on the
/// whole latency then holds too or nothing is found.
struct DisaggregatedFleet {
  std::int64_t prefill_servers = 0;
  std::int64_t decode_servers = 0;
  double ratio() const { return static_cast<double>(prefill_servers) / static_cast<double>(decode_servers); }
  DisaggregatedResult result;
};

std::optional<DisaggregatedFleet> fewest_servers(const FleetDemand& demand, const DisaggregatedPools& pools,
                                                 std::int64_t most_servers = 256);

/// Memory beside the chips' that keeps prefixes, of each replica.
struct PrefixStoreAsked {
  double host_bytes = 0, disk_bytes = 0;
  std::optional<double> disk_rate;  ///< bytes a second
};

struct TrafficAsked {
  RequestMix mix;
  double rate = 1;    ///< requests a second, over all replicas; 0: all at once, or clients
  bool most = false;  ///< the highest rate within the limits
  std::int64_t requests = 10'000;
  std::uint64_t seed = 1;
  std::optional<std::int64_t> clients;          ///< over all replicas, in the place of a rate
  std::optional<std::int64_t> client_requests;  ///< of all clients together; absent: usual_client_requests
  std::optional<RequestRouting> routing;        ///< absent: random at a rate, to the fewest for clients
  std::optional<PrefixStoreAsked> store;

  /// Ten each, as benchmarks do.
  std::int64_t usual_client_requests() const { return 10 * clients.value_or(0); }
};

struct TrafficAnswer {
  TrafficAsked asked;
  LatencyLimits limits;
  std::size_t system = 0;
  ServeLayout layout;  ///< of a decode replica where there are two pools; dp is the replicas
  std::int64_t chips = 0;
  std::optional<double> usd_per_hour;
  bool carries = false;         ///< within the limits
  bool fleet_searched = false;  ///< replicas were counted, not given by --chips
  std::size_t kinds = 0;        ///< layouts among which the fleet was chosen
  QueueRules rules;             ///< of a (decode) replica
  /// Of both pools together; over all seeds for clients. Without a router one replica at its share of the rate is
  /// simulated, and its throughput and requests are counted for all.
  QueueFigures figures;
  std::int64_t seeds = 1;
  std::optional<MeanErrors> errors;    ///< nothing of a burst, of a queue that grows, of few requests
  std::vector<TenantFigures> tenants;  ///< of the mix's tenants, in their order
  std::optional<SteadyState> steady;   ///< of one replica that does both
  std::optional<DisaggregatedFleet> pools;
  ServeLayout prefill_layout;
};

/// With chips given, the answer's best layout on them, or where tenants have limits that it misses another of the
/// points that keeps them; otherwise the fewest chips, or the least dollars, over the layouts of the answer's points;
/// with clients the answer's best layout. Nothing if no number of replicas of any keeps the limits, at the 95th
/// percentile. Stopped if asked to end before.
std::optional<TrafficAnswer> answer_traffic(const ServeAnswer& answer, const TrafficAsked& asked,
                                            const Stop& stop = {});

// A layout's replica as a server of the queueing model: the engine's step as its time, the engine's rules as its
// scheduler.
struct ReplicaQuestion {
  RequestMix mix;
  double prefix_hit = 0;
  double chunk = 8192;  ///< most tokens of one prompt in a step
  std::optional<PrefixStoreAsked> store{};
};

FrontEnd front_end_of(const EngineRules& engine);

/// Attention-data ranks and pipeline stages each take sequences, and chunks of prompts, of their own: the scheduler's
/// limits are theirs together. The cache's tokens are those of sequences of the mix's mean context.
ServerKind replica_server(const ServeBasis<double>& basis, const ServeLayout& layout, const Slice& slice,
                          const Placement& placement, const ReplicaQuestion& question);

}  // namespace scalecalc
