// Enumerates the legal values of one dimension when the others are pinned, for suggestions.
#include "train/legal_values.h"

#include "plan/enumerate.h"

namespace scalecalc {

std::set<std::int64_t> legal_values(const PlanRequest& request, const LayoutDimension& dimension) {
  PlanRequest open = request;
  dimension.set_pin(open.fix, std::nullopt);
  std::set<std::int64_t> out;
  if (dimension.name == "remat" || dimension.name == "loss") {  // neither decides divisibility
    for (std::int64_t policy = dimension.least; policy <= dimension.last_word; ++policy) out.insert(policy);
    return out;
  }
  SearchStats stats;
  const Space space(open, stats);
  for (const Family& family : space.families()) {
    space.members(family, stats, [&](const Branch& branch) {
      for (const StateSharding& sharding : space.shardings(branch, stats)) {
        out.insert(dimension.value(sharded(branch.layout, sharding)));
      }
    });
  }
  return out;
}

}  // namespace scalecalc
