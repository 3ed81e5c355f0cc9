// Hosts that fail, are repaired and come back, and spare ones that stand in for them meanwhile. Failures come at a
// constant rate while the job runs, repairs take `repair` in the mean, each on its own.
#pragma once

#include <cstdint>

namespace scalecalc {

struct HostPool {
  double hosts = 1;         ///< that the job needs
  std::int64_t spares = 0;  ///< that wait
  double mtbf_s = 1;        ///< of the job: of all its hosts together
  double repair_s = 0;
  double restart_s = 0;
  double replicas = 1;  ///< data ranks, each of which needs all of its hosts
};

/// What running out of spares costs.
struct Shortage {
  double chance = 0;  ///< that a failure finds no spare
  double lost = 0;    ///< seconds lost for each second that the job runs at full speed
};

/// [ERLANG-B] Share of arrivals that find all of `servers` taken, B(k) = a B(k-1) / (k + a B(k-1)) with a the load:
/// Erlang 1917. Holds for repairs of any distribution with the same mean.
double erlang_b(std::int64_t servers, double load);

/// The job stands until a repair is done: a failure that finds no spare (chance B(spares), load = repair / MTBF) waits
/// repair / (spares + 1) in the mean.
Shortage wait_for_repair(const HostPool& pool);
/// It goes on with the data ranks whose hosts are whole, and takes a restart to grow again. A birth-death chain over
/// the hosts in repair; the losses of failures are those of the full job, so right to first order in the time lost.
Shortage run_on_fewer(const HostPool& pool);

}  // namespace scalecalc
