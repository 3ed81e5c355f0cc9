// What requests that arrive one by one see of a serving answer's layouts: `serve --rate`, `--trace`, `--simulate`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "serve/fleet.h"
#include "serve/serve_question.h"
#include "serve/steady_state.h"

namespace scalecalc {

struct TrafficAsked {
  RequestMix mix;
  double rate = 1;  ///< requests a second, over all replicas
  std::int64_t requests = 10'000;
  std::uint64_t seed = 1;
};

struct TrafficAnswer {
  TrafficAsked asked;
  LatencyLimits limits;
  std::size_t system = 0;
  ServeLayout layout;  ///< of a decode replica where there are two pools; dp is the replicas
  std::int64_t chips = 0;
  std::optional<double> usd_per_hour;
  bool carries = false;               ///< within the limits
  bool fleet_searched = false;        ///< replicas were counted, not given by --chips
  std::size_t kinds = 0;              ///< layouts among which the fleet was chosen
  QueueRules rules;                   ///< of a (decode) replica
  QueueFigures figures;               ///< of one replica at its share of the rate; of both pools together
  std::optional<SteadyState> steady;  ///< of one replica that does both
  std::optional<DisaggregatedFleet> pools;
  ServeLayout prefill_layout;
};

/// With chips given, the answer's best layout on them; otherwise the fewest chips, or the least dollars, over the
/// layouts of the answer's points. Nothing if no number of replicas of any keeps the limits, at the 95th percentile.
std::optional<TrafficAnswer> answer_traffic(const ServeAnswer& answer, const TrafficAsked& asked);

}  // namespace scalecalc
