// The space of layouts, branch by branch. A branch fixes everything that decides a step's work (degrees, microbatch,
// schedule, remat); what remains inside it is how weights are sharded over data ranks and where groups are placed.
#pragma once

#include <functional>
#include <vector>

#include "plan/request.h"

namespace scalecalc {

struct Branch {
  std::size_t slice = 0;  ///< index into PlanRequest::slices
  Layout layout;          ///< dp holds all data ways; fsdp and zero are still open
};

/// Calls `visit` once for every legal branch of the request, in a fixed order, and counts what it cut.
void enumerate(const PlanRequest& request, SearchStats& stats, const std::function<void(const Branch&)>& visit);

/// The ways to shard a branch's state over its data ranks: ZeRO 0, 1, 2, and ZeRO-3 over every divisor of the ranks
/// (hybrid sharding). Without data or context ranks there is nothing to shard.
std::vector<Layout> shardings(const PlanRequest& request, const Layout& branch, SearchStats& stats);

}  // namespace scalecalc
