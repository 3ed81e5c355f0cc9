// Computes the time of one collective with its working, for `collective`, `matmul` and `bounds`.
#include "network/collective_time.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/diagnostic.h"
#include "base/scalar.h"
#include "base/text.h"
#include "base/units.h"
#include "network/collective.h"
#include "network/latency.h"

namespace scalecalc {
namespace {

// --- Where a group lies: members, domains and chips at each switched tier ---

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

std::int64_t CollectiveGroup::nodes() const {
  std::int64_t innermost = 1;
  for (const CollectiveAxis& axis : axes) innermost *= axis.size;
  for (const CollectiveLevel& level : levels) innermost *= level.tier == 0 ? level.members : 1;
  return size() / innermost;
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

namespace {

// --- What it takes ---

constexpr const char* kAsked = "the group asked for";

Traced count(std::int64_t value, std::string_view name) {
  return kReader.input(static_cast<double>(value), name, kAsked);
}

/// One collective in one convention. Each tier's part is a time of its own; the slowest is the whole.
class Timing {
 public:
  Timing(const CollectiveNetwork& network, const CollectiveGroup& group, const CollectiveRequest& request)
      : network_(network), group_(group), request_(request), members_(count(group.size(), "N")) {}

  CollectiveTime run() {
    require_rates();
    if (!group_.axes.empty()) add_torus();
    for (const CollectiveLevel& level : group_.levels) add_level(level);
    finish();
    return std::move(out_);
  }

 private:
  /// A bandwidth that is not published is zero here.
  void require_rates() const {
    if (hw().unpublished.empty() || group_.size() < 2) return;
    if (!group_.axes.empty()) require_bandwidth(hw(), 0);
    for (const CollectiveLevel& level : group_.levels) require_bandwidth(hw(), level.tier);
  }

  bool exact() const { return request_.convention == CollectiveConvention::kExact; }
  bool first_order() const { return request_.convention == CollectiveConvention::kFirstOrder; }
  bool is(CollectiveOp op) const { return request_.op == op; }
  const HardwareSpec& hw() const { return *network_.hw; }
  /// Each member gets all of V, or the root a sum of it, rather than the parts that it has not.
  bool moves_all() const { return is(CollectiveOp::kBroadcast) || is(CollectiveOp::kReduce); }

  /// v: what one member of an all-to-all holds, of which top_k of N slots are filled (book, ch. 12, appendix B).
  BytesOf<Traced> held() const {
    BytesOf<Traced> v = request_.bytes / members_;
    if (request_.top_k > 0) {
      v = v * min(kReader.input(request_.top_k, "top_k", "asked") / members_, Traced(1.0));
    }
    return named(v, "v", "book ch. 3 and 12: the part of V a member holds and sends on");
  }

  /// A reduction and a gather take twice a gather.
  template <class X>
  X both_ways(const X& gather) const {
    return is(CollectiveOp::kAllReduce) ? collective::twice(gather) : gather;
  }

  void add_torus() {
    const TierRates<Traced>& rates = network_.rates.tiers.front();
    const bool rings = std::all_of(group_.axes.begin(), group_.axes.end(), [](const auto& axis) { return axis.wraps; });
    collective::Axes<Traced> axes;
    Traced members(1.0);
    for (const CollectiveAxis& axis : group_.axes) {
      const Traced size = count(axis.size, axis.name);
      members = members * size;
      axes.add(rates, size, 1, axis.wraps);
      out_.hops += axis.wraps ? axis.size / 2 : axis.size - 1;
    }
    latency_.hops(named(axes.way, "hops' latency", "book ch. 3: half round a ring or along a line"), rates.latency);
    const auto bandwidth = named(axes.bandwidth, "W", "book ch. 3: both directions of each ring, one of each line");
    if (exact() && group_.twist_gain > 1) {
      axes.all_to_all = axes.all_to_all / kReader.input(group_.twist_gain, "twist gain", "arXiv:2304.01433 s. 2.8");
    }
    // A root receives over its own links what each member of an all-gather receives over its own; a broadcast in pieces
    // goes round the same rings.
    const bool drops = first_order() || (!exact() && rings) || moves_all();
    const Traced share = drops ? Traced(1.0) : collective::received_share(members);
    const SecondsOf<Traced> time =
        is(CollectiveOp::kAllToAll) ? held() * axes.all_to_all : both_ways(request_.bytes * share / bandwidth);
    if (is(CollectiveOp::kAllReduce)) out_.hops *= 2;
    out_.latency_rule = LatencyRule::kLarger;
    take(hw().network.front().name, time, "book ch. 3: V over the bandwidth of the group's axes");
  }

  /// Egress of one chip at this tier. A mesh chip sends over its links to all other members at once.
  BytesPerSecondOf<Traced> per_chip(const CollectiveLevel& level) const {
    BytesPerSecondOf<Traced> rate = network_.rates.tiers[level.tier].bandwidth;
    if (hw().network[level.tier].kind != TierKind::kMesh) return rate;
    const std::int64_t peers = (exact() ? children(level) : level.degree) - 1;
    return rate * count(std::max<std::int64_t>(peers, 1), "peers");
  }

  /// Of the group, at this level and beyond.
  static std::int64_t children(const CollectiveLevel& level) { return level.tier == 0 ? level.members : level.beyond; }

  /// Part of V that comes through the uplinks of one child. The book counts each level's own D_i children; in fact all
  /// that lies outside a node enters it through its uplinks, also from other leaves.
  Traced share(const CollectiveLevel& level) const {
    const std::string& tier = hw().network[level.tier].name;
    if (first_order() || moves_all()) return Traced(1.0);
    // The root's own link carries what comes from other nodes too.
    if (has_root(request_.op) && level.tier == 0) {
      const std::int64_t counted = exact() ? group_.size() : std::max(group_.size(), level.degree);
      return collective::received_share(count(counted, "members"));
    }
    if (!exact()) return collective::received_share(count(level.degree, "D_" + tier));
    if (network_.rates.kernels.rings()) return collective::received_share(members_);
    return collective::received_share(level.tier == 0 ? count(level.members, "members of a " + tier)
                                                      : count(level.beyond, "domains below " + tier));
  }

  /// Part of v that leaves through the uplink of one child.
  Traced leaving(const CollectiveLevel& level) const {
    if (first_order()) return Traced(1.0);
    const bool inner = level.tier == 0;
    if (!exact() || request_.top_k == 0) {
      return collective::received_share(count(children(level), inner ? "members" : "domains"));
    }
    // The planner's: a token crosses once to each chip, beyond a node to each node, that holds any of its experts.
    const double top_k = std::min(request_.top_k, static_cast<double>(group_.size()));
    const double sent =
        copies_beyond(inner ? level.members : level.beyond, inner ? group_.size() : group_.nodes(), {.top_k = top_k});
    const Traced copies = kReader.input(sent, inner ? "copies to other chips" : "copies to other domains",
                                        inner ? "N (1 - (1 - 1/N)^top_k) (m-1)/m of N chips, m of them in a domain"
                                              : "M (1 - (1 - 1/M)^top_k) (D-1)/D of M nodes in D domains");
    return copies / kReader.input(top_k, "top_k", "asked");
  }

  /// The planner's part of a channel, with the shares that the convention counts.
  SecondsOf<Traced> time_at(const CollectiveLevel& level, bool reduces) const {
    const collective::Tiered<Traced> part =
        collective::switched(per_chip(level), share(level), count(level.below, "members below one child"),
                             leaving(level), reduces ? &network_.rates.in_network_gain : nullptr);
    if (is(CollectiveOp::kAllToAll)) return held() * part.all_to_all;
    const SecondsOf<Traced> time = request_.bytes * (is(CollectiveOp::kAllReduce) ? part.reduce : part.gather);
    // Book, ch. 12, sharded reductions, first order: V / (W_gpu min(Y, D_node)), so more than D_node inner ranks no
    // longer shorten the node's part.
    const std::int64_t degree = group_.levels.front().degree;
    if (!first_order() || level.tier > 0 || group_.inner <= degree) return time;
    return time * (count(group_.inner, "Y") / count(degree, "D_node"));
  }

  void add_level(const CollectiveLevel& level) {
    const Tier& tier = hw().network[level.tier];
    const bool reduces = is(CollectiveOp::kAllReduce) &&
                         (request_.in_network == InNetwork::kOn ||
                          (request_.in_network == InNetwork::kAsBuilt && tier.switched.in_network_reduction));
    const auto time = exact() && level.members == 1 ? SecondsOf<Traced>() : time_at(level, reduces);
    if (level.members > 1) {
      latency_.tier(tier.switched, network_.rates.tiers[level.tier].latency,
                    count(level.members, "members at " + tier.name), reduces);
    }
    if (group_.axes.empty()) out_.latency_rule = exact() ? LatencyRule::kAdded : LatencyRule::kNotCounted;
    take(tier.name, time, "book ch. 12: what the uplinks of one child carry");
    const BytesPerSecondOf<Traced> link = per_chip(level) * count(level.chips_below, "chips below one child");
    out_.levels.push_back({.level = level,
                           .name = tier.name,
                           .link = named(link, "W_" + tier.name, "book ch. 12: the uplinks of one child together"),
                           .time = last_,
                           .reduces = reduces && level.members > 1});
  }

  void take(const std::string& tier, const SecondsOf<Traced>& time, std::string_view source) {
    const bool alone = group_.levels.size() + (group_.axes.empty() ? 0 : 1) == 1;
    last_ = named(time, alone ? "bandwidth time" : tier + " time", source, request_.label);
    const bool first = out_.bound_tier.empty();
    if (first || out_.bandwidth_time < last_) out_.bound_tier = tier;
    out_.bandwidth_time = first ? last_ : max(out_.bandwidth_time, last_);
  }

  /// The planner's reading counts what the stack's kernels add; the book's forms know no kernels.
  void add_waits() {
    const KernelRates<Traced> kernels = exact() ? network_.rates.kernels : KernelRates<Traced>{};
    const Waits<Traced> waits = latency_.waits(kernels, group_.size(), group_.nodes());
    out_.latency = is(CollectiveOp::kAllReduce)  ? waits.reduce
                   : is(CollectiveOp::kAllToAll) ? waits.all_to_all
                                                 : waits.gather;
    out_.latency = named(out_.latency, "latency",
                         group_.axes.empty() ? "[COLL-LATENCY]: operations or messages; or measured kernels"
                                             : "book ch. 3: hops, half round a ring or along a line",
                         request_.label);
    if (value_of(kernels.factor) != 1) out_.bandwidth_time = out_.bandwidth_time * kernels.factor;
    if (value_of(waits.ramp) > 0) {
      const BytesOf<Traced> bytes = is(CollectiveOp::kAllToAll) ? held() : request_.bytes;
      out_.bandwidth_time += ramp_time(waits.ramp, bytes);
    }
  }

  void finish() {
    add_waits();
    out_.bandwidth_time =
        named(out_.bandwidth_time, "bandwidth time", "book ch. 12: the slowest tier binds", request_.label);
    const char* source = "";
    switch (out_.latency_rule) {
      case LatencyRule::kLarger:
        out_.time = max(out_.latency, out_.bandwidth_time);
        source = "book ch. 3: the larger of latency and bandwidth time";
        break;
      case LatencyRule::kAdded:
        out_.time = out_.latency + out_.bandwidth_time;
        source = "messages first, then bytes";
        break;
      case LatencyRule::kNotCounted: out_.time = out_.bandwidth_time; break;
    }
    if (out_.latency_rule != LatencyRule::kNotCounted) out_.time = named(out_.time, "time", source, request_.label);
    out_.latency_bound = out_.latency_rule != LatencyRule::kNotCounted && out_.bandwidth_time < out_.latency;
    if (value_of(out_.bandwidth_time) == 0) out_.bound_tier.clear();
    out_.algorithm = algorithm();
  }

  std::string algorithm() const {
    std::vector<std::string> parts;
    if (!group_.axes.empty()) parts.push_back(torus_algorithm());
    std::vector<std::string> tiers;
    for (const LevelTime& level : out_.levels) tiers.push_back(level.name + (level.reduces ? " (in network)" : ""));
    if (!tiers.empty()) parts.push_back((tiers.size() > 1 ? "tree: " : "switch: ") + join(tiers, ", "));
    if (parts.empty()) return "none";
    const bool network_adds =
        std::any_of(out_.levels.begin(), out_.levels.end(), [](const LevelTime& level) { return level.reduces; });
    const bool two_phases = is(CollectiveOp::kAllReduce) && !network_adds;
    const char* how = two_phases ? "two-phase " : is(CollectiveOp::kAllToAll) ? "direct, " : "";
    return how + join(parts, ", ");
  }

  std::string torus_algorithm() const {
    const auto rings =
        std::count_if(group_.axes.begin(), group_.axes.end(), [](const auto& axis) { return axis.wraps; });
    const std::size_t axes = group_.axes.size();
    const bool all = static_cast<std::size_t>(rings) == axes;
    if (axes == 1) return all ? "ring" : "line";
    return fmt::format("{} on {} axes", all ? "rings" : rings == 0 ? "lines" : "rings and lines", axes);
  }

  const CollectiveNetwork& network_;
  const CollectiveGroup& group_;
  const CollectiveRequest& request_;
  Traced members_;
  Latency<Traced> latency_;
  CollectiveTime out_;
  SecondsOf<Traced> last_;
};

void check(const CollectiveRequest& request) {
  const std::string_view op = kCollectiveOpNames[static_cast<std::size_t>(request.op)];
  if (request.in_network == InNetwork::kOn && request.op != CollectiveOp::kAllReduce) {
    throw UserError(fmt::format("switches reduce in no {}", op), "in-network reduction is for all-reduce");
  }
  if (request.top_k != 0 && request.op != CollectiveOp::kAllToAll) {
    throw UserError(fmt::format("no {} has a top_k", op), "a ragged collective is an all-to-all");
  }
}

}  // namespace

CollectiveNetwork collective_network(const HardwareSpec& hw, const Efficiency& efficiency, bool serving) {
  return {.hw = &hw, .rates = read_network(kReader, hw, efficiency, serving)};
}

CollectiveTime collective_time(const CollectiveNetwork& network, const CollectiveGroup& group,
                               const CollectiveRequest& request) {
  check(request);
  const bool knows_size = request.convention != CollectiveConvention::kFirstOrder;
  if (group.size() == 1 && (knows_size || group.levels.empty())) return {.algorithm = "none"};
  return Timing(network, group, request).run();
}

}  // namespace scalecalc
