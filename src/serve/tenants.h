// What each tenant of a service sees of it.
#pragma once

#include <cstdint>
#include <vector>

#include "serve/queueing.h"
#include "serve/request_mix.h"

namespace scalecalc {

/// Whether the share of requests keeps every limit, and the queue does not grow.
bool meets(const QueueFigures& figures, const LatencyLimits& limits);

struct TenantFigures {
  QueueFigures seen;  ///< see seen_by_users
  bool met = true;    ///< its limits are kept
};

/// `tenants` says whose each request is; nothing for a mix without tenants.
std::vector<TenantFigures> tenant_figures(const RequestMix& mix, const std::vector<RequestTimes>& requests,
                                          const std::vector<std::uint16_t>& tenants);
bool all_meet(const std::vector<TenantFigures>& tenants);

}  // namespace scalecalc
