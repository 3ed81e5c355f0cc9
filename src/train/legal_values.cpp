#include "train/legal_values.h"

#include "plan/enumerate.h"

namespace scalecalc {

std::set<std::int64_t> legal_values(const PlanRequest& request, const LayoutDimension& dimension) {
  PlanRequest open = request;
  dimension.set_pin(open.fix, std::nullopt);
  // What is computed again decides no divisibility.
  const bool asks_remat = &dimension == find_dimension("remat");
  if (!asks_remat && !open.fix.remat) open.fix.remat = Remat::kNone;
  std::set<std::int64_t> out;
  SearchStats stats;
  const Space space(open, stats);
  for (const Family& family : space.families()) {
    space.members(family, stats, [&](const Branch& branch) {
      for (const StateSharding& sharding : shardings(open, branch.layout, stats)) {
        out.insert(dimension.value(sharded(branch.layout, sharding)));
      }
    });
  }
  return out;
}

}  // namespace scalecalc
