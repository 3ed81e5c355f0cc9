// Answers `scalecalc collective`: the time and the bandwidths of each group size and array size.
#include "collective/collective_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/diagnostic.h"
#include "base/progress.h"
#include "base/scalar.h"
#include "base/text.h"
#include "base/units.h"
#include "network/collective.h"

namespace scalecalc {
namespace {

Traced count(std::int64_t value, std::string_view name) {
  return kReader.input(static_cast<double>(value), name, "the group asked for");
}

class Figures {
 public:
  Figures(const CollectiveNetwork& network, const CollectiveGroup& group, const CollectiveRequest& request,
          const CollectiveTime& time)
      : network_(network), group_(group), request_(request), time_(time) {}

  CollectiveFigures run() {
    if (value_of(time_.bandwidth_time) == 0) return std::move(out_);
    if (value_of(time_.latency) > 0 && time_.latency_rule != LatencyRule::kNotCounted) {
      out_.latency_bound_below = named(time_.latency / (time_.bandwidth_time / request_.bytes), "latency-bound below",
                                       "V at which latency and bandwidth time are equal");
    }
    if (!is(CollectiveOp::kAllGather)) {
      CollectiveRequest gather = request_;
      gather.op = CollectiveOp::kAllGather;
      gather.in_network = InNetwork::kAsBuilt;
      gather.top_k = 0;
      gather.label = "all-gather's";
      out_.ratio_to_all_gather = time_.bandwidth_time / bandwidth_time(group_, gather);
    }
    if (!group_.axes.empty() && group_.levels.empty()) add_torus();
    if (is(CollectiveOp::kAllToAll) && request_.top_k > 0) add_ragged();
    if (is(CollectiveOp::kAllReduce) && !group_.levels.empty()) add_in_network();
    if (has_root(request_.op)) return std::move(out_);
    add_tree();
    for (const LevelTime& level : time_.levels) out_.switches.push_back(switch_bytes(level));
    return std::move(out_);
  }

 private:
  bool is(CollectiveOp op) const { return request_.op == op; }

  SecondsOf<Traced> bandwidth_time(const CollectiveGroup& group, const CollectiveRequest& request) const {
    return collective_time(network_, group, request).bandwidth_time;
  }

  void add_torus() {
    const TierRates<Traced>& rates = network_.rates.tiers.front();
    const BytesOf<Traced> shard = request_.bytes / count(group_.size(), "N");
    out_.link = rates.bandwidth;
    out_.link_bytes = time_.bandwidth_time * rates.bandwidth;
    const BytesOf<Traced> smallest =
        named(rates.bandwidth * rates.latency, "latency-bound shard", "book ch. 3: a hop takes t_hop at least");
    out_.latency = LatencyFigures{smallest, request_.bytes / smallest};
    add_wraparound();
    if (is(CollectiveOp::kAllToAll)) add_bisection();
    if (group_.axes.size() != 1) return;
    if (!is(CollectiveOp::kAllToAll) && !has_root(request_.op)) {
      const SecondsOf<Traced> transfer =
          named(shard / rates.bandwidth, "transfer of a hop", "book ch. 3: V/A over one link, 2 V / (A W_ici)");
      const SecondsOf<Traced> time =
          named(max(rates.latency, transfer), "time of a hop", "book ch. 3: max(t_hop, transfer)");
      out_.hop = HopFigures{transfer, time, time * count(time_.hops, "hops")};
    }
    if (group_.axes.front().wraps && !has_root(request_.op)) add_one_way(rates.bandwidth);
    if (is(CollectiveOp::kAllToAll)) add_chunks();
  }

  void add_wraparound() {
    CollectiveGroup rings = group_;
    CollectiveGroup lines = group_;
    for (CollectiveAxis& axis : rings.axes) axis.wraps = true;
    for (CollectiveAxis& axis : lines.axes) axis.wraps = false;
    CollectiveRequest request = request_;
    request.label = "with wraparound";
    const SecondsOf<Traced> with = bandwidth_time(rings, request);
    request.label = "without wraparound";
    out_.no_wraparound_ratio = bandwidth_time(lines, request) / with;
  }

  /// Book, ch. 3, question 10: with one direction every shard goes all the way round; an all-to-all's chunks go half
  /// of it in the mean, with two directions a quarter over twice the links.
  void add_one_way(const BytesPerSecondOf<Traced>& link) {
    const Traced size = count(group_.axes.front().size, group_.axes.front().name);
    const bool exact = request_.convention == CollectiveConvention::kExact;
    SecondsOf<Traced> one_way = request_.bytes / link;
    if (exact) one_way = one_way * collective::received_share(size);
    if (is(CollectiveOp::kAllReduce)) one_way = collective::twice(one_way);
    if (is(CollectiveOp::kAllToAll)) {
      one_way = one_way / Traced(2.0);
      if (request_.top_k > 0) one_way = one_way * filled(size);
    }
    out_.bidirectional_gain = one_way / time_.bandwidth_time;
  }

  /// min(k/N, 1)
  Traced filled(const Traced& members) const {
    return min(kReader.input(request_.top_k, "top_k", "asked") / members, Traced(1.0));
  }

  /// The axis that binds: the longest, counted double if it does not wrap.
  void add_bisection() {
    const auto slow = [](const CollectiveAxis& axis) { return axis.size * (axis.wraps ? 1 : 2); };
    const CollectiveAxis& longest =
        *std::max_element(group_.axes.begin(), group_.axes.end(),
                          [&](const CollectiveAxis& a, const CollectiveAxis& b) { return slow(a) < slow(b); });
    const Traced members = count(group_.size(), "N");
    const Traced links = named(Traced(longest.wraps ? 2.0 : 1.0) * members / count(longest.size, longest.name),
                               "links across the bisection", "book ch. 3: two cuts of a ring, one of a line");
    BytesOf<Traced> crossing = request_.bytes / Traced(4.0);
    if (request_.top_k > 0) crossing = crossing * filled(members);
    out_.bisection = BisectionFigures{links, crossing / (links * network_.rates.tiers.front().bandwidth)};
  }

  /// Book, ch. 3, footnote on all-to-all: N^2/4 on a ring (one less over 4 if N is odd).
  void add_chunks() {
    const CollectiveAxis& axis = group_.axes.front();
    const Traced n = count(axis.size, axis.name);
    const Traced odd(axis.size % 2 == 0 ? 0.0 : 1.0);
    const Traced hops = axis.wraps ? (n * n - odd) / Traced(4.0) : (n * n - Traced(1.0)) / Traced(3.0);
    const Traced named_hops =
        named(hops, "chunk-hops of a chip", "book ch. 3: 1 + 2 + ... chunks to each side, over the chips");
    out_.chunks = ChunkFigures{named_hops, named_hops * (request_.bytes / (n * n))};
  }

  void add_ragged() {
    const Traced members = count(group_.size(), "N");
    const Traced others = collective::received_share(members);
    const double n = static_cast<double>(group_.size());
    const Traced hit = kReader.input(1 - std::pow((n - 1) / n, request_.top_k), "share of members chosen",
                                     "1 - ((N-1)/N)^k: a given member is among k chosen at random");
    CollectiveRequest dense = request_;
    dense.top_k = 0;
    dense.label = "dense";
    out_.ragged = RaggedFigures{filled(members) * others, hit * others, collective_time(network_, group_, dense).time};
  }

  void add_in_network() {
    CollectiveRequest request = request_;
    request.in_network = InNetwork::kOff;
    request.label = "without in-network reduction";
    const SecondsOf<Traced> without = collective_time(network_, group_, request).time;
    request.in_network = InNetwork::kOn;
    request.label = "with in-network reduction";
    out_.in_network = InNetworkFigures{without, collective_time(network_, group_, request).time};
  }

  /// Book, ch. 12, sharded reductions: V max_i (D_i-1) / (D_i max(Y, S_{i-1}) W_i), with V the whole array. It divides
  /// by the chips below twice, since W_i holds them already, and so contradicts the unsharded form at Y = 1.
  void add_tree() {
    if (group_.levels.size() < 2 || !group_.axes.empty() || is(CollectiveOp::kAllToAll)) return;
    const BytesOf<Traced> whole = request_.bytes * count(group_.inner, "Y");
    SecondsOf<Traced> slowest;
    for (const LevelTime& level : time_.levels) {
      const Traced degree = count(level.level.degree, "D_" + level.name);
      const Traced ranks = count(std::max(group_.inner, level.level.chips_below), "max(Y, S below " + level.name + ")");
      const SecondsOf<Traced> own = whole * collective::received_share(degree) / (ranks * level.link);
      slowest = value_of(slowest) == 0 ? own : max(slowest, own);
    }
    out_.printed_tree_time = is(CollectiveOp::kAllReduce) ? collective::twice(slowest) : slowest;
  }

  /// All groups that share a domain's switch: as many as its chips over the group's members there.
  Traced groups_through(const CollectiveLevel& level) const {
    return count(level.chips_below * level.degree / (level.below * level.members), "groups through the switch");
  }

  SwitchBytes switch_bytes(const LevelTime& time) const {
    const CollectiveLevel& level = time.level;
    // With one member below it, the innermost switch sees nothing: the chip has a port of its own beyond.
    if (level.members == 1 && level.tier == 0) return {};
    const Traced groups = groups_through(level);
    SwitchBytes one = is(CollectiveOp::kAllToAll) ? exchanged(level) : time.reduces ? reduced(level) : gathered(level);
    if (is(CollectiveOp::kReduceScatter)) std::swap(one.ingress, one.egress);
    return {named(groups * one.ingress, "into the " + time.name + " switch", "book ch. 12, quiz 4"),
            named(groups * one.egress, "out of the " + time.name + " switch", "book ch. 12, quiz 4")};
  }

  bool goes_beyond(const CollectiveLevel& level) const { return level.beyond > level.members; }

  /// An all-gather: each child brings its share, the rest comes from beyond; each child gets what it lacks, and the
  /// domain's own share goes up. A reduce-scatter is its transpose, an all-reduce both.
  SwitchBytes gathered(const CollectiveLevel& level) const {
    const BytesOf<Traced>& v = request_.bytes;
    const Traced children = count(level.members, "children");
    const BytesOf<Traced> share = v / count(level.beyond, "children of all domains");
    const BytesOf<Traced> own = children * share;
    SwitchBytes out{own, children * (v - share)};
    if (goes_beyond(level)) {
      out.ingress += v - own;
      out.egress += own;
    }
    if (!is(CollectiveOp::kAllReduce)) return out;
    const BytesOf<Traced> both = out.ingress + out.egress;
    return {both, both};
  }

  /// Reduced in the switch: each child sends its array and receives the sum; beyond, the domain is one child.
  SwitchBytes reduced(const CollectiveLevel& level) const {
    const BytesOf<Traced> bytes =
        request_.bytes * count(level.members + (goes_beyond(level) ? 1 : 0), "children, and the uplink");
    return {bytes, bytes};
  }

  /// Each chip sends to every member outside its child, part of it beyond the domain; as much comes back.
  SwitchBytes exchanged(const CollectiveLevel& level) const {
    const Traced n = count(group_.size(), "N");
    BytesOf<Traced> held = request_.bytes / n;
    if (request_.top_k > 0) held = held * filled(n);
    const Traced below = count(level.below, "members below one child");
    const Traced inside = count(level.below * level.members, "members in the domain");
    BytesOf<Traced> bytes = held * inside * ((n - below) / n);
    if (goes_beyond(level)) bytes += held * inside * ((n - inside) / n);
    return {bytes, bytes};
  }

  const CollectiveNetwork& network_;
  const CollectiveGroup& group_;
  const CollectiveRequest& request_;
  const CollectiveTime& time_;
  CollectiveFigures out_;
};

CollectiveFigures collective_figures(const CollectiveNetwork& network, const CollectiveGroup& group,
                                     const CollectiveRequest& request, const CollectiveTime& time) {
  return Figures(network, group, request, time).run();
}

std::size_t tier_named(const HardwareSpec& hw, const std::string& name) {
  std::vector<std::string> known;
  for (std::size_t t = 0; t < hw.network.size(); ++t) {
    known.push_back(hw.network[t].name);
    if (known.back().size() == name.size() && edit_distance(known.back(), name) == 0) return t;
  }
  const std::string hint = did_you_mean(nearest(name, known));
  throw UserError(fmt::format("{} has no tier {}", hw.name, in_quotes(name)),
                  fmt::format("{}{}its tiers: {}", hint, hint.empty() ? "" : " ", join(known, ", ")));
}

bool is_in(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The shape of a pod alone may be missing: a forced wraparound needs none.
void require_links(const HardwareSpec& hw) {
  if (hw.network.empty()) require_published(hw, {"network"});
  for (std::size_t t = 0; t < hw.network.size(); ++t) {
    require_bandwidth(hw, t);
    require_latency(hw, t);
    if (hw.network[t].switched.cabling.ports_per_host > 0) require_published(hw, {"host"});
  }
}

class Answering {
 public:
  Answering(const CollectiveQuestion& question, const HardwareSpec& hw, const Stop& stop)
      : q_(question), hw_(hw), stop_(stop), network_(collective_network(hw, efficiency(), question.serving)) {}

  CollectiveAnswer run() {
    out_.question = q_;
    Progress points("points", 0);
    for (CollectiveMesh& mesh : meshes()) {
      mesh.replicated = q_.replicated;
      mesh.sharded = q_.sharded;
      mesh.wraparound = q_.wraparound;
      choose_axes(mesh);
      const CollectivePlace place = place_of(mesh);
      if (out_.points.empty()) add(place.assumptions);
      for (const BytesOf<Traced>& bytes : sizes(mesh)) {
        if (!out_.points.empty() && should_stop(stop_)) break;
        out_.points.push_back(point(mesh, place, bytes));
        points.add();
      }
    }
    compare_with_first();
    say_convention();
    say_hardware();
    return std::move(out_);
  }

 private:
  /// An engine that the chip has no coefficients of its own for gets those of the chip, as in serve.
  Efficiency efficiency() const {
    if (!q_.calibrated) return ideal_efficiency(hw_.efficiency);
    if (q_.stack.empty()) return hw_.efficiency;
    const StackCoefficients* own = coefficients_under(hw_, q_.stack);
    if (own != nullptr && own->serves == q_.serving) return own->efficiency;
    return q_.serving ? hw_.efficiency : efficiency_under(hw_, q_.stack);
  }
  bool is(CollectiveOp op) const { return q_.op == op; }
  bool point_to_point() const { return q_.from.has_value(); }

  void add(const std::vector<Assumption>& assumptions) {
    out_.assumptions.insert(out_.assumptions.end(), assumptions.begin(), assumptions.end());
  }
  Assumption& assume(std::string text, std::string flag, std::string source = "", bool warning = false) {
    return out_.assumptions.emplace_back(Assumption{std::move(text), std::move(flag), std::move(source), warning});
  }

  // --- Which chips ---

  std::vector<CollectiveMesh> meshes() {
    if (!q_.mesh.empty()) return {{.axes = q_.mesh}};
    if (!q_.topology.empty()) return {topology_mesh()};
    return hw_.is_torus() ? torus_groups() : switched_groups();
  }

  CollectiveMesh topology_mesh() const {
    static constexpr const char* kNames[] = {"X", "Y", "Z"};
    if (!hw_.is_torus())
      throw UserError(fmt::format("{} has no torus for --topology", hw_.name), "use --mesh or --group");
    CollectiveMesh out;
    if (q_.topology.size() > std::size(kNames)) throw UserError("a topology has up to three axes", "such as 4x4x4");
    for (std::size_t i = 0; i < q_.topology.size(); ++i) out.axes.push_back({kNames[i], q_.topology[i]});
    return out;
  }

  std::vector<CollectiveMesh> torus_groups() const {
    std::string axis = "X";
    if (q_.tier) {
      const std::size_t tier = tier_named(hw_, *q_.tier);
      if (tier > 0) axis = hw_.network[tier].name;
      if (tier > 0 && q_.groups.empty())
        throw UserError(fmt::format("over how many slices of the {}?", axis), "--group 2");
    }
    if (q_.groups.empty()) {
      throw UserError("over which chips?",
                      "--mesh X=4,Y=4 with --axes X, --topology 4x4x4, or --group 16 for one axis");
    }
    std::vector<CollectiveMesh> out;
    for (const std::int64_t size : q_.groups) out.push_back({.axes = {{axis, size}}});
    return out;
  }

  std::vector<CollectiveMesh> switched_groups() {
    const std::size_t tier = q_.tier ? tier_named(hw_, *q_.tier) : 0;
    const Tier& domain = hw_.network.at(tier);
    const std::int64_t chips = domain.switched.chips;
    std::vector<std::int64_t> sizes = q_.groups;
    if (point_to_point()) {
      sizes = {std::max(q_.from->front(), q_.to->front()) + 1};
    } else if (sizes.empty()) {
      if (chips == 0) {
        throw UserError(fmt::format("a {} {} has no limit", hw_.name, domain.name), "say how many chips: --group 1024");
      }
      sizes = {chips};
      if (!q_.tier)
        assume(fmt::format("all {} chips of a {}", chips, domain.name), "--group", domain.source).is(to_double(chips));
    }
    std::vector<CollectiveMesh> out;
    for (const std::int64_t size : sizes) {
      if (q_.tier && chips != 0 && size > chips) {
        throw UserError(fmt::format("a {} {} has {} chips, not {}", hw_.name, domain.name, group_thousands(chips),
                                    group_thousands(size)),
                        "a wider tier, or a smaller --group");
      }
      out.push_back({.axes = {{"X", size}}});
    }
    return out;
  }

  void choose_axes(CollectiveMesh& mesh) {
    mesh.over = q_.axes;
    if (!mesh.over.empty() || point_to_point()) return;
    for (const NamedAxis& axis : mesh.axes) {
      if (!is_in(q_.replicated, axis.name) && !is_in(q_.sharded, axis.name)) mesh.over.push_back(axis.name);
    }
    if (mesh.over.size() > 1)
      assume(fmt::format("over all axes: {}", join_and(mesh.over)), "--axes").is(join(mesh.over, ","));
  }

  /// From rank to rank behind switches nothing has to fill whole domains.
  CollectivePlace place_of(const CollectiveMesh& mesh) const {
    if (!point_to_point() || hw_.is_torus()) return place_collective(hw_, mesh);
    return {.tiers = std::vector<std::string>(mesh.axes.size())};
  }

  std::vector<BytesOf<Traced>> sizes(const CollectiveMesh& mesh) const {
    if (q_.array) {
      const BytesOf<Traced> bytes = group_bytes(*q_.array, mesh, q_.op);
      if (value_of(bytes) > kMostCollectiveBytes) {
        throw UserError(fmt::format("{} has more than 10^18 bytes", q_.array->text), "smaller dimensions");
      }
      return {bytes};
    }
    std::vector<BytesOf<Traced>> out;
    for (const double bytes : q_.bytes) out.push_back(group_bytes(bytes, mesh));
    return out;
  }

  // --- One point ---

  CollectivePoint point(const CollectiveMesh& mesh, const CollectivePlace& place, const BytesOf<Traced>& bytes) const {
    CollectivePoint out{.mesh = mesh, .group = mesh.members(), .place = place.group, .bytes = bytes, .shard = bytes};
    if (q_.op) {
      const CollectiveRequest request{
          .op = *q_.op, .bytes = bytes, .convention = q_.convention, .in_network = q_.in_network, .top_k = q_.top_k};
      out.shard = bytes / kReader.input(static_cast<double>(out.group), "members", "the group asked for");
      out.time = collective_time(network_, place.group, request);
      out.figures = collective_figures(network_, place.group, request, out.time);
    } else {
      if (point_to_point()) out.group = 2;
      permute(mesh, place, out);
    }
    if (value_of(out.time.time) > 0) out.bytes_per_s = bytes / out.time.time;
    add_measured(out);
    return out;
  }

  void permute(const CollectiveMesh& mesh, const CollectivePlace& place, CollectivePoint& out) const {
    const PermuteTime way =
        permute_time(network_, mesh, place, {.bytes = out.bytes, .from = q_.from, .to = q_.to, .ports = q_.ports});
    out.time = {.time = way.time,
                .bandwidth_time = way.bandwidth_time,
                .latency = way.latency,
                .latency_rule = LatencyRule::kAdded,
                .latency_bound = way.bandwidth_time < way.latency,
                .bound_tier = way.tier,
                .algorithm = way.tier.empty() ? "none" : "direct, " + way.tier,
                .hops = way.hops};
    if (way.hops > 0) out.ports = way.ports;
    if (value_of(way.bandwidth_time) == 0) return;
    out.figures.latency_bound_below = way.latency / (way.bandwidth_time / out.bytes);
    if (way.hops > 0) out.figures.link_bytes = out.bytes / kReader.input(static_cast<double>(way.ports), "links", "");
  }

  void add_measured(CollectivePoint& out) const {
    if (q_.measured.empty()) return;
    const BytesOf<Traced> bus = q_.op ? bus_bytes(*q_.op, out.bytes, out.group) : out.bytes;
    if (value_of(bus) == 0 || value_of(out.time.time) == 0) {
      throw UserError("--measured: this group sends nothing that could be measured", "a group of two at least");
    }
    for (const Measured& given : q_.measured) {
      MeasuredPoint one;
      if (given.is_time) {
        one.time = read(kReader, Seconds(given.value), "measured time", "--measured");
        one.bus = bus / one.time;
      } else {
        one.bus = read(kReader, BytesPerSecond(given.value), "measured bus bandwidth", "--measured");
        one.time = bus / one.bus;
      }
      one.over_model = one.time / out.time.time;
      const BytesPerSecondOf<Traced> first = out.measured.empty() ? one.bus : out.measured.front().bus;
      one.gain_over_first = one.bus / first - Traced(1.0);
      out.measured.push_back(one);
    }
  }

  void compare_with_first() {
    if (out_.points.size() < 2) return;
    const SecondsOf<Traced> first = out_.points.front().time.time;
    if (value_of(first) == 0) return;
    for (CollectivePoint& p : out_.points) p.time_over_first = p.time.time / first;
  }

  // --- What was assumed ---

  void say_convention() {
    if (!q_.op) {
      assume("the latency of the way and the transfer add", "", "book ch. 2, question 5").as("latency").is("added");
      return;
    }
    const bool torus = !out_.points.front().place.axes.empty();
    switch (q_.convention) {
      case CollectiveConvention::kBook:
        assume(torus ? "convention book: rings without the factor (N-1)/N, lines with it; the larger of latency and "
                       "bandwidth time counts (ch. 3)"
                     : "convention book: each tier with its own (D-1)/D, message latencies not counted (ch. 12)",
               "--convention");
        break;
      case CollectiveConvention::kFirstOrder:
        assume("convention first-order: every factor (N-1)/N dropped, as for large groups", "--convention");
        break;
      case CollectiveConvention::kExact:
        assume(torus ? "convention exact: the factor (N-1)/N kept, as in train"
                     : "convention exact: a domain receives all that lies outside it, message latencies added, as in "
                       "train",
               "--convention");
        break;
    }
    warn_of_latency();
    warn_of_single();
    say_twist();
    if (q_.top_k > 0) {
      assume(fmt::format("V counts a slot for each member, of which {:g} are filled", q_.top_k), "--top-k");
    }
    if (!q_.replicated.empty()) {
      assume(fmt::format("the copies along {} are cut for free first, then all axes gather", join_and(q_.replicated)),
             "--replicated", "book ch. 3, question 2");
    }
  }

  void warn_of_latency() {
    const auto hidden = std::count_if(out_.points.begin(), out_.points.end(), [](const CollectivePoint& p) {
      return p.time.latency_rule == LatencyRule::kNotCounted && p.time.bandwidth_time < p.time.latency;
    });
    if (hidden == 0) return;
    const std::string where =
        out_.points.size() == 1 ? "" : fmt::format("{} of {} points: ", hidden, out_.points.size());
    assume(where + "the latency of the messages, not counted here, is longer than the time shown", "--convention exact",
           "", true);
  }

  void say_twist() {
    const double gain = out_.points.front().place.twist_gain;
    if (!is(CollectiveOp::kAllToAll) || gain == 1) return;
    const bool counted = q_.convention == CollectiveConvention::kExact;
    assume(fmt::format("a twisted torus exchanges {:g} times faster: {}", gain,
                       counted ? "counted" : "not counted in this convention"),
           "--convention", "arXiv:2304.01433 s. 2.8");
  }

  void warn_of_single() {
    const bool bound_only = std::any_of(out_.points.begin(), out_.points.end(), [](const CollectivePoint& p) {
      return p.place.size() == 1 && value_of(p.time.time) > 0;
    });
    if (!bound_only) return;
    assume("the group has one member, so nothing is left to send: the first-order form is a bound only", "--convention",
           "", true);
  }

  void say_hardware() {
    if (is(CollectiveOp::kAllReduce)) say_in_network();
    if (q_.calibrated) {
      const Efficiency e = efficiency();
      assume(fmt::format("efficiency calibrated: links reach {:g} of their rate inside the innermost tier, {:g} beyond",
                         e.link_scale_up.value, e.link_scale_out.value),
             "--efficiency", e.link_scale_up.source);
      say_kernels(q_.serving ? e.serving : e.collectives);
    } else {
      assume("efficiency ideal: links at their full rate", "--efficiency");
    }
  }

  void say_kernels(const CollectiveKernels& kernels) {
    if (q_.convention != CollectiveConvention::kExact || kernels.latency_scale_up.value == 0) return;
    const bool rings = kernels.ring_hop_scale_up.value > 0;
    const std::string hops =
        rings
            ? fmt::format("; gathers and scatters pass rings: {} more for each further chip, {} for a domain",
                          seconds_text(kernels.ring_hop_scale_up.value), seconds_text(kernels.ring_hop_scale_out.value))
            : "";
    assume(
        fmt::format("measured kernels{}: a small all-reduce of two takes {} inside the innermost tier, {} beyond, and "
                    "{:.0f} % of it more for each doubling{}",
                    q_.stack.empty() ? "" : " of " + q_.stack, seconds_text(kernels.latency_scale_up.value),
                    seconds_text(kernels.latency_scale_out.value), 100 * kernels.latency_growth.value, hops),
        "--stack", kernels.latency_scale_up.source);
  }

  void say_in_network() {
    std::vector<std::string> tiers;
    for (const CollectivePoint& p : out_.points) {
      for (const LevelTime& level : p.time.levels) {
        const bool known = std::find(tiers.begin(), tiers.end(), level.name) != tiers.end();
        if (level.reduces && !known) tiers.push_back(level.name);
      }
    }
    if (tiers.empty()) return;
    assume(fmt::format("switches reduce in the network: {}", join_and(tiers)), "--in-network",
           q_.in_network == InNetwork::kOn ? "command line" : "hardware file");
  }

  const CollectiveQuestion& q_;
  const HardwareSpec& hw_;
  const Stop& stop_;
  CollectiveNetwork network_;
  CollectiveAnswer out_;
};

}  // namespace

BytesOf<Traced> bus_bytes(CollectiveOp op, const BytesOf<Traced>& bytes, std::int64_t members) {
  const Traced n = count(members, "N");
  const BytesOf<Traced> gathered = bytes * collective::received_share(n);
  if (op == CollectiveOp::kBroadcast || op == CollectiveOp::kReduce) return bytes;
  if (op == CollectiveOp::kAllReduce) return collective::twice(gathered);
  return op == CollectiveOp::kAllToAll ? gathered / n : gathered;
}

CollectiveAnswer answer_collective(const CollectiveQuestion& question, const HardwareSpec& hw, const Stop& stop) {
  require_links(hw);
  return Answering(question, hw, stop).run();
}

}  // namespace scalecalc
