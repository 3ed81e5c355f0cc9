// Computes how long a run waits for repairs with a number of spare hosts.
#include "economics/spares.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace scalecalc {
namespace {

double short_of(const HostPool& pool, std::size_t in_repair) {
  return std::max(0.0, static_cast<double>(in_repair) - static_cast<double>(pool.spares));
}

/// Data ranks that `in_repair` hosts leave whole, once the others are regrouped.
double replicas_left(const HostPool& pool, std::size_t in_repair) {
  constexpr double kRounding = 1e-9;
  const double hosts = pool.hosts - short_of(pool, in_repair);
  return std::floor(pool.replicas * hosts / pool.hosts + kRounding);
}

/// Share of the time with k hosts in repair. Summed in logarithms: a load of thousands would overflow.
std::vector<double> shares_in_repair(const HostPool& pool) {
  constexpr double kNegligible = -45;  // e^-45 of the largest
  std::vector<double> logs{0};
  double largest = 0;
  while (true) {
    const std::size_t k = logs.size() - 1;
    const double working = (pool.hosts - short_of(pool, k)) / pool.hosts;
    if (working <= 0) break;
    const double next = logs.back() + std::log(working * pool.repair_s / (pool.mtbf_s * static_cast<double>(k + 1)));
    largest = std::max(largest, next);
    if (next < largest + kNegligible && next < logs.back()) break;
    logs.push_back(next);
  }
  double sum = 0;
  for (double& share : logs) sum += share = std::exp(share - largest);
  for (double& share : logs) share /= sum;
  return logs;
}

}  // namespace

double erlang_b(std::int64_t servers, double load) {
  double blocked = 1;
  for (std::int64_t k = 1; k <= servers; ++k) {
    blocked = load * blocked / (static_cast<double>(k) + load * blocked);
    if (blocked == 0) break;
  }
  return blocked;
}

Shortage wait_for_repair(const HostPool& pool) {
  const double load = pool.repair_s / pool.mtbf_s;
  const double chance = erlang_b(pool.spares, load);
  return {.chance = chance, .lost = load * chance / (static_cast<double>(pool.spares) + 1)};
}

Shortage run_on_fewer(const HostPool& pool) {
  const std::vector<double> shares = shares_in_repair(pool);
  double speed = 0;
  double regrowing = 0;  // work missed by restarts in which ranks come back
  double failures = 0;   // relative to those of the full job
  double found_none = 0;
  for (std::size_t k = 0; k < shares.size(); ++k) {
    const double replicas = replicas_left(pool, k);
    const double rate = shares[k] * (pool.hosts - short_of(pool, k));
    const double running = shares[k] * replicas / pool.replicas;
    speed += running;
    failures += rate;
    if (static_cast<std::int64_t>(k) >= pool.spares) found_none += rate;
    if (k > 0 && replicas_left(pool, k - 1) > replicas) {
      regrowing += running * static_cast<double>(k) / pool.repair_s * pool.restart_s;
    }
  }
  const double useful = speed - regrowing;
  return {.chance = found_none / failures,
          .lost = useful > 0 ? std::max(0.0, 1 / useful - 1) : std::numeric_limits<double>::infinity()};
}

}  // namespace scalecalc
