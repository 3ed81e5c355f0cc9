#include "primitives/collective_figures.h"

#include <algorithm>
#include <cmath>

#include "base/scalar.h"
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
    if (!is(CollectiveOp::kAllToAll)) {
      const SecondsOf<Traced> transfer =
          named(shard / rates.bandwidth, "transfer of a hop", "book ch. 3: V/A over one link, 2 V / (A W_ici)");
      const SecondsOf<Traced> time =
          named(max(rates.latency, transfer), "time of a hop", "book ch. 3: max(t_hop, transfer)");
      out_.hop = HopFigures{transfer, time, time * count(time_.hops, "hops")};
    }
    if (group_.axes.front().wraps) add_one_way(rates.bandwidth);
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

}  // namespace

CollectiveFigures collective_figures(const CollectiveNetwork& network, const CollectiveGroup& group,
                                     const CollectiveRequest& request, const CollectiveTime& time) {
  return Figures(network, group, request, time).run();
}

BytesOf<Traced> bus_bytes(CollectiveOp op, const BytesOf<Traced>& bytes, std::int64_t members) {
  const Traced n = count(members, "N");
  const BytesOf<Traced> gathered = bytes * collective::received_share(n);
  if (op == CollectiveOp::kAllReduce) return collective::twice(gathered);
  return op == CollectiveOp::kAllToAll ? gathered / n : gathered;
}

}  // namespace scalecalc
