// Where a group lies: members, domains and chips at each switched tier.
#include <fmt/format.h>

#include <algorithm>

#include "base/diagnostic.h"
#include "base/units.h"
#include "network/collective_time.h"

namespace scalecalc {
namespace {

using PerTier = std::array<std::int64_t, kMaxTiers>;

[[noreturn]] void uneven(const HardwareSpec& hw, const Tier& tier, const RankRange& ranks) {
  throw UserError(fmt::format("{} ranks {} apart cut a {} of {} {} unevenly", group_thousands(ranks.size),
                              group_thousands(ranks.stride), tier.name, group_thousands(tier.switched.chips), hw.name),
                  fmt::format("sizes that divide {} or are multiples of it", group_thousands(tier.switched.chips)));
}

/// Members of `ranks` that lie in different children of one domain, for every tier from `first` on.
PerTier members_at_tiers(const HardwareSpec& hw, const RankRange& ranks, std::size_t first) {
  PerTier out{1, 1, 1, 1};
  std::int64_t left = ranks.size;
  std::int64_t reach = ranks.stride;
  for (std::size_t t = first; t < hw.network.size() && left > 1; ++t) {
    const Tier& tier = hw.network[t];
    const std::int64_t domain = tier.switched.chips;
    if (domain == 0 || left <= domain / reach) {
      out[t] = left;
      return out;
    }
    if (t + 1 == hw.network.size()) {
      throw UserError(fmt::format("the group spans {} chips, and a {} {} has {}", group_thousands(left * reach),
                                  hw.name, tier.name, group_thousands(domain)),
                      "");
    }
    if (reach >= domain) {
      if (reach % domain != 0) uneven(hw, tier, ranks);
      continue;
    }
    const std::int64_t room = domain / reach;
    if (domain % reach != 0 || left % room != 0) uneven(hw, tier, ranks);
    out[t] = room;
    left /= room;
    reach = domain;
  }
  if (left > 1) throw UserError(fmt::format("{} has no network that joins {} chips", hw.name, left * reach), "");
  return out;
}

/// Chips below one child of a tier, at most those that the group spans.
std::int64_t chips_below(const HardwareSpec& hw, std::size_t tier, std::size_t first, std::int64_t innermost) {
  return tier == first ? innermost : hw.network[tier - 1].switched.chips;
}

void add_levels(const HardwareSpec& hw, const PerTier& members, const PerTier& degrees, std::size_t first,
                std::int64_t innermost, CollectiveGroup& group) {
  std::int64_t size = 1;
  for (const CollectiveAxis& axis : group.axes) size *= axis.size;
  std::int64_t below = size;
  for (const std::int64_t count : members) size *= count;
  for (std::size_t t = first; t < hw.network.size() && t < kMaxTiers; ++t) {
    if (degrees[t] > 1) {
      group.levels.push_back({.tier = t,
                              .degree = degrees[t],
                              .members = members[t],
                              .beyond = size / below,
                              .below = below,
                              .chips_below = chips_below(hw, t, first, innermost)});
    }
    below *= members[t];
  }
}

}  // namespace

std::int64_t CollectiveGroup::size() const {
  std::int64_t out = 1;
  for (const CollectiveAxis& axis : axes) out *= axis.size;
  for (const CollectiveLevel& level : levels) out *= level.members;
  return out;
}

CollectiveGroup torus_group(const HardwareSpec& hw, std::vector<CollectiveAxis> axes, std::int64_t slices,
                            std::int64_t inner) {
  if (!hw.is_torus()) throw UserError(fmt::format("{} has no torus: its chips are joined by switches", hw.name), "");
  CollectiveGroup out{.axes = std::move(axes), .inner = inner};
  std::erase_if(out.axes, [](const CollectiveAxis& axis) { return axis.size == 1; });
  if (slices == 1) return out;
  if (hw.network.size() < 2) {
    throw UserError(fmt::format("{} has no network that joins slices", hw.name),
                    "describe one under network: in a hardware file");
  }
  std::int64_t slice = inner;
  for (const CollectiveAxis& axis : out.axes) slice *= axis.size;
  const PerTier members = members_at_tiers(hw, {slices, slice}, 1);
  add_levels(hw, members, members, 1, slice, out);
  return out;
}

CollectiveGroup switched_group(const HardwareSpec& hw, const std::vector<RankRange>& ranks) {
  if (hw.network.empty() || hw.is_torus()) {
    throw UserError(fmt::format("{} has no switches around its chips: they form a torus", hw.name), "");
  }
  CollectiveGroup out;
  PerTier members{1, 1, 1, 1};
  std::int64_t span = 1;
  std::int64_t size = 1;
  for (const RankRange& range : ranks) {
    const PerTier own = members_at_tiers(hw, range, 0);
    for (std::size_t t = 0; t < kMaxTiers; ++t) members[t] *= own[t];
    span = std::max(span, range.size * range.stride);
    size *= range.size;
  }
  out.inner = span / size;
  add_levels(hw, members, members_at_tiers(hw, {span, 1}, 0), 0, 1, out);
  return out;
}

CollectiveGroup switched_group(const HardwareSpec& hw, std::int64_t size, std::int64_t inner) {
  return switched_group(hw, {{.size = size, .stride = inner}});
}

}  // namespace scalecalc
