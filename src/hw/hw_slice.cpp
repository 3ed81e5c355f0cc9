// Computes what a slice of a torus or some chips behind switches can do together, for `scalecalc hw`. Scaling book,
// chapter 2 ("TPU Networking", questions 1 and 2), chapter 12.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/diagnostic.h"
#include "base/scalar.h"
#include "base/units.h"
#include "hw/hw.h"
#include "hw/named_rates.h"
#include "network/slice.h"
#include "network/tier_rates.h"

namespace scalecalc {
namespace {

std::int64_t product(const Shape& shape) {
  std::int64_t out = 1;
  for (const std::int64_t axis : shape) out *= axis;
  return out;
}

std::string shape_text(const Shape& shape) {
  std::string out;
  for (const std::int64_t axis : shape) out += fmt::format("{}{}", out.empty() ? "" : "x", axis);
  return out;
}

class Slicer {
 public:
  Slicer(const HardwareSpec& hw, const HwQuestion& question, std::vector<Assumption>& assumptions)
      : hw_(hw), q_(question), assumptions_(assumptions) {}

  std::optional<HwSlice> run() {
    const bool asked = q_.chips || !q_.topology.empty();
    if (!asked && !hw_.publishes("network")) return std::nullopt;
    if (hw_.is_torus()) {
      torus();
    } else {
      switched();
    }
    together();
    return std::move(out_);
  }

 private:
  void torus() {
    if (!q_.topology.empty() || q_.chips) require_pod(hw_);
    const TorusTier& torus = hw_.network.front().torus;
    if (!q_.topology.empty()) {
      given(torus);
    } else if (q_.chips && *q_.chips != torus.max_chips) {
      chosen();
    } else {
      shape_ = torus.pod;
      chips_ = torus.max_chips;
      out_.whole_pod = true;
      source_ = hw_.network.front().source;
    }
    out_.chips = kReader.input(static_cast<double>(chips_), "chips", source_);
    if (shape_.empty()) {
      out_.shape = chips_text();
      return;
    }
    out_.wraps = wraparounds(torus, shape_);
    out_.shape = shape_text(shape_);
    if (whole_units(torus)) {
      const Traced unit =
          kReader.input(static_cast<double>(product(torus.unit)), "chips of a unit", hw_.network.front().source);
      out_.units = named(out_.chips / unit, "units", "book ch. 2: cubes");
    }
    bisect();
  }

  std::string chips_text() const { return fmt::format("{} chip{}", group_thousands(chips_), chips_ == 1 ? "" : "s"); }

  bool whole_units(const TorusTier& torus) const {
    Shape have = shape_;
    Shape unit = torus.unit;
    std::sort(have.begin(), have.end());
    std::sort(unit.begin(), unit.end());
    for (std::size_t i = 0; i < unit.size(); ++i) {
      if (have[i] % unit[i] != 0) return false;
    }
    return !unit.empty();
  }

  void given(const TorusTier& torus) {
    shape_ = q_.topology;
    chips_ = product(shape_);
    source_ = "--topology";
    if (static_cast<std::int64_t>(shape_.size()) != torus.dimensions()) {
      throw UserError(fmt::format("--topology {} has {} axes, {} has {}", shape_text(shape_), shape_.size(), hw_.name,
                                  torus.dimensions()),
                      fmt::format("its pod is {}", shape_text(torus.pod)));
    }
    if (q_.chips && *q_.chips != chips_) {
      throw UserError(fmt::format("--topology {} has {} chips, --chips says {}", shape_text(shape_),
                                  group_thousands(chips_), group_thousands(*q_.chips)),
                      "leave one of them out");
    }
    if (slice_of_shape(hw_, shape_, 1).empty()) {
      assumptions_.push_back({fmt::format("the vendor builds no {} slice of {}; wraparound as its rule would have it",
                                          shape_text(shape_), hw_.name),
                              "--topology", hw_.network.front().source, true});
    }
  }

  /// The most cubic of the boxes that the vendor builds for a count. A count that is none has totals and no shape.
  void chosen() {
    const std::vector<Slice> found = slices_of(hw_, *q_.chips, 1);
    chips_ = *q_.chips;
    source_ = "--chips";
    if (found.empty()) {
      unbuilt();
      return;
    }
    shape_ = std::min_element(found.begin(), found.end(), [](const Slice& a, const Slice& b) {
               return a.shape.back() < b.shape.back();
             })->shape;
    if (found.size() > 1) {
      assumptions_.push_back({fmt::format("{} chips as {}, the most cubic of {} shapes", group_thousands(chips_),
                                          shape_text(shape_), found.size()),
                              "--topology", "scalecalc"});
    }
  }

  void unbuilt() {
    const SliceError error = no_single_slice(hw_, chips_);
    assumptions_.push_back(
        {error.message + (error.hint.empty() ? "" : "; " + error.hint), "--chips", "hardware file", true});
  }

  void switched() {
    if (!q_.topology.empty()) {
      throw UserError(fmt::format("--topology {}: {} is no torus", shape_text(q_.topology), hw_.name), "give --chips");
    }
    const std::int64_t node = hw_.network.empty() ? 1 : hw_.network.front().switched.chips;
    chips_ = q_.chips.value_or(node > 0 ? node : hw_.chips_per_host);
    source_ = q_.chips ? "--chips" : "the innermost domain";
    if (hw_.publishes("host") && slices_of(hw_, chips_, 1).empty()) unbuilt();
    out_.shape = chips_text();
    out_.chips = kReader.input(static_cast<double>(chips_), "chips", source_);
  }

  /// Half of the chips on each side of a cut through the longest axis; a ring is cut at two links.
  void bisect() {
    const auto longest = std::max_element(shape_.begin(), shape_.end());
    if (*longest < 2 || !publishes_bandwidth(hw_, 0)) return;
    const std::size_t axis = static_cast<std::size_t>(longest - shape_.begin());
    const Traced across = kReader.input(static_cast<double>(chips_) / static_cast<double>(*longest),
                                        "lines along the longest axis", source_);
    const Traced cut = kReader.input(out_.wraps[axis] ? 2 : 1, "links cut on each", "wraparound");
    out_.bisection_one_way = named(NamedRates(hw_).link() * (across * cut), "bisection bandwidth, one way",
                                   "book ch. 3: links across a cut through the longest axis");
    out_.bisection = named(*out_.bisection_one_way * Traced(2.0), "bisection bandwidth, both ways", "x 2");
  }

  void together() {
    const NamedRates rates(hw_);
    if (hw_.publishes("host")) {
      const Traced each = kReader.input(static_cast<double>(hw_.chips_per_host), "hw.host.chips", hw_.host_source);
      out_.hosts = named(ceil(out_.chips / each), "hosts", "chips over chips of a host");
    }
    if (hw_.units.cores > 0) {
      out_.cores =
          named(out_.chips * kReader.input(static_cast<double>(hw_.units.cores), "hw.units.cores", hw_.units.source),
                "cores", "chips x cores of a chip");
    }
    for (std::size_t i = 0; i < kDTypeCount; ++i) {
      if (!hw_.matmul_peak[i]) continue;
      const DType dtype = static_cast<DType>(i);
      out_.matmul.emplace_back(
          dtype, named(rates.matmul(dtype) * out_.chips, fmt::format("{} of all chips", name_of(dtype)), "x chips"));
    }
    if (hw_.publishes("hbm.capacity"))
      out_.memory = named(rates.hbm_capacity() * out_.chips, "memory of all chips", "x chips");
    if (hw_.publishes("hbm.bandwidth")) {
      out_.memory_bandwidth = named(rates.hbm() * out_.chips, "memory bandwidth of all chips", "x chips");
    }
    egress(rates);
    if (const Price* price = hw_.default_price()) {
      out_.usd_per_hour =
          named(out_.chips * kReader.input(price->usd_per_chip_hour, "hw.prices.0.usd_per_chip_hour", price->source),
                "dollars per hour", "x chips");
    }
    if (hw_.tdp) {
      out_.power = named(read(kReader, *hw_.tdp, "hw.power.tdp", hw_.tdp_source) * out_.chips, "power of all chips",
                         "x chips, without hosts and cooling");
    }
  }

  void egress(const NamedRates& rates) {
    if (hw_.network.size() < 2 || !publishes_tier(hw_, 1) || !hw_.publishes("host")) return;
    const Traced each = kReader.input(static_cast<double>(hw_.chips_per_host), "hw.host.chips", hw_.host_source);
    out_.host_egress =
        named(rates.scale_out() * each, "egress of a host", "book ch. 2: a chip's share x chips of a host");
  }

  const HardwareSpec& hw_;
  const HwQuestion& q_;
  std::vector<Assumption>& assumptions_;
  Shape shape_;
  std::int64_t chips_ = 0;
  std::string source_;
  HwSlice out_;
};

}  // namespace

std::optional<HwSlice> slice_of(const HardwareSpec& hw, const HwQuestion& question,
                                std::vector<Assumption>& assumptions) {
  return Slicer(hw, question, assumptions).run();
}

// What the domains and switches of a switched network can carry, and how many switches a machine takes. Scaling book,
// chapter 12 ("Networking", quizzes 2 and 3, appendix B).

namespace {

class Switches {
 public:
  Switches(const HwQuestion& question, HwChip& chip) : q_(question), chip_(chip), hw_(chip.hw) {}

  void run() {
    if (hw_.network.empty() || hw_.is_torus() || !hw_.publishes("network")) return;
    for (std::size_t t = 0; t < hw_.network.size(); ++t) {
      if (!below(t)) break;
      chip_.levels.push_back({.tier = hw_.network[t].name});
      bandwidths(t, chip_.levels.back());
    }
    count_nodes();
    for (std::size_t t = 0; t < chip_.levels.size(); ++t) cables(t, chip_.levels[t]);
    add_up();
  }

 private:
  const SwitchedTier& tier(std::size_t t) const { return hw_.network[t].switched; }
  std::string path(std::size_t t, const char* key) const {
    return fmt::format("hw.network.{}.{}", hw_.network[t].name, key);
  }
  Traced count(std::size_t t, std::int64_t value, const char* key) const {
    return kReader.input(static_cast<double>(value), path(t, key), hw_.network[t].source);
  }

  /// Chips below one child of tier t; nothing if an inner tier has no limit.
  std::optional<std::int64_t> below(std::size_t t) const {
    if (t == 0) return 1;
    return tier(t - 1).chips > 0 ? std::optional(tier(t - 1).chips) : std::nullopt;
  }

  /// Chips of one domain of tier t: its limit, or all that were asked for.
  std::optional<Traced> domain(std::size_t t) const {
    if (tier(t).chips > 0) return count(t, tier(t).chips, "chips");
    if (!q_.chips) return std::nullopt;
    return kReader.input(static_cast<double>(*q_.chips), "chips", "--chips");
  }

  /// One direction of the cables of one switch port of the tier; 0 if not given.
  bool has_ports(std::size_t t) const { return tier(t).cabling.port_bandwidth.value() > 0; }
  TracedBandwidth port(std::size_t t) const {
    return read(kReader, tier(t).cabling.port_bandwidth, path(t, "port_bandwidth"), hw_.network[t].source);
  }

  void bandwidths(std::size_t t, HwLevel& level) {
    const TracedBandwidth egress = chip_egress(hw_, t);
    const Traced inside =
        kReader.input(static_cast<double>(*below(t)), t == 0 ? "a chip" : path(t - 1, "chips"), hw_.network[t].source);
    level.child_bandwidth = named(egress * inside, level.tier + ": W, egress of a child",
                                  "book ch. 12: a chip's egress x chips of a child");
    const auto chips = domain(t);
    if (!chips) return;
    level.children =
        named(ceil(*chips / inside), level.tier + ": D, children", "chips of the domain over those of a child");
    level.children_bandwidth =
        named(*level.child_bandwidth * *level.children, level.tier + ": all children", "book ch. 12: D x W");
    level.per_chip = named(*level.children_bandwidth / (*level.children * inside), level.tier + ": of one chip",
                           "its share of D x W");
    level.bisection_one_way =
        named(*level.child_bandwidth * (*level.children / Traced(2.0)), level.tier + ": bisection, one way",
              "book ch. 12, quiz 2: half of the children send");
    level.bisection = named(*level.bisection_one_way * Traced(2.0), level.tier + ": bisection, both ways", "x 2");
    level.bisection_share = named(*level.bisection * Traced(2.0) / *level.children, level.tier + ": bisection x 2 / D",
                                  "book ch. 12: what a collective gets of it");
  }

  /// Domains of every tier in the machine asked for.
  void count_nodes() {
    if (!q_.chips) return;
    const Traced all = kReader.input(static_cast<double>(*q_.chips), "chips", "--chips");
    for (std::size_t t = 0; t < chip_.levels.size(); ++t) {
      if (const auto chips = domain(t)) {
        chip_.levels[t].domains =
            named(ceil(all / *chips), chip_.levels[t].tier + ": domains", "chips over those of one");
      }
    }
    if (!chip_.levels.empty()) chip_.nodes = chip_.levels.front().domains;
  }

  void cables(std::size_t t, HwLevel& level) {
    count_switches(t, level);
    if (tier(t).cabling.switch_ports > 0 && has_ports(t)) {
      level.switch_bandwidth = named(port(t) * count(t, tier(t).cabling.switch_ports, "switch_ports"),
                                     level.tier + ": one switch", "book ch. 12: ports x bandwidth of a port");
      if (level.switches) capacity(level);
    }
    if (level.switches && level.children && tier(t).cabling.links_down > 0 && has_ports(t)) {
      const Traced down = *level.switches * count(t, tier(t).cabling.links_down, "links_down");
      level.cable_per_child = named(port(t) * down, level.tier + ": cables of a child",
                                    "switches x cables from each x bandwidth of a port");
      level.cables_down = named(*level.cable_per_child * *level.children, level.tier + ": cables down", "x children");
    }
    if (t > 0) full_bisection(t, level);
  }

  void capacity(HwLevel& level) {
    level.capacity = named(*level.switch_bandwidth * *level.switches, level.tier + ": all switches of a domain",
                           "book ch. 12: switches x one switch");
    if (level.children_bandwidth) {
      level.peak = named(min(*level.capacity, *level.children_bandwidth), level.tier + ": peak",
                         "book ch. 12, quiz 2: the lower of switches and children");
    }
    if (const auto chips = level.children ? nodes_in(level) : std::nullopt) {
      level.capacity_per_node =
          named(*level.capacity / *chips, level.tier + ": switches' share of a node", "book ch. 12, quiz 3");
    }
  }

  /// Nodes of the innermost tier below one domain of this level.
  std::optional<Traced> nodes_in(const HwLevel& level) const {
    const std::size_t t = static_cast<std::size_t>(&level - chip_.levels.data());
    if (t == 0) return std::nullopt;
    const auto chips = domain(t);
    if (!chips) return std::nullopt;
    return ceil(*chips / count(0, tier(0).chips, "chips"));
  }

  /// As the file says; on the outermost tier otherwise as many as the leaves' free ports ask for.
  void count_switches(std::size_t t, HwLevel& level) {
    const std::int64_t given = tier(t).cabling.switches;
    if (given > 0) {
      level.switches = count(t, given, "switches");
    } else if (tier(t).chips == 0 && t > 0) {
      spines(t, level);
    }
    if (!level.switches || !level.domains) return;
    level.switches_in_all = named(*level.switches * *level.domains, level.tier + ": switches in all", "x domains");
    if (t > 0) links_up(t - 1);
  }

  /// Ports of one switch of tier t that its children leave free; nothing if the file does not say.
  std::optional<std::int64_t> free_ports(std::size_t t) const {
    const Cabling& c = tier(t).cabling;
    if (c.switch_ports == 0 || c.links_down == 0 || !chip_.levels[t].children) return std::nullopt;
    const auto used = static_cast<std::int64_t>(chip_.levels[t].children->value()) * c.links_down;
    return used < c.switch_ports ? std::optional(c.switch_ports - used) : std::nullopt;
  }

  /// Full bisection: every port that a leaf does not use downwards goes up. A spine must reach every leaf; if it has
  /// too few ports for that, half of each spine's ports go on to a layer of core switches.
  void spines(std::size_t t, HwLevel& level) {
    const auto free = free_ports(t - 1);
    const std::int64_t ports = tier(t).cabling.switch_ports;
    const Maybe<Traced>& leaves = chip_.levels[t - 1].switches_in_all;
    if (!free || ports == 0 || !leaves) return;
    const Traced cables =
        *leaves * kReader.input(static_cast<double>(*free), "free ports of a leaf", hw_.network[t - 1].source);
    const Traced per_switch = count(t, ports, "switch_ports");
    if (leaves->value() <= static_cast<double>(ports)) {
      level.switches = named(ceil(cables / per_switch), level.tier + ": switches",
                             "full bisection: a port for every free port of the leaves");
      return;
    }
    level.switches = named(ceil(cables / (per_switch / Traced(2.0))), level.tier + ": switches",
                           "book ch. 12, quiz 3: half of the ports down, half up to a layer of cores");
    chip_.core_switches = named(ceil(*level.switches * (per_switch / Traced(2.0)) / per_switch), "core switches",
                                "a port for every spine port that goes up");
  }

  /// Cables from one leaf switch to each spine switch, and what a leaf domain sends up over them.
  void links_up(std::size_t t) {
    HwLevel& leaf = chip_.levels[t];
    const HwLevel& above = chip_.levels[t + 1];
    const Cabling& c = tier(t).cabling;
    if (c.links_up > 0) {
      leaf.links_up = count(t, c.links_up, "links_up");
    } else if (const auto free = free_ports(t); free && !chip_.core_switches && tier(t + 1).chips == 0) {
      const double each = static_cast<double>(*free) / above.switches->value();
      if (each < 1 || each != std::floor(each)) return;
      const Traced ports = kReader.input(static_cast<double>(*free), "free ports of a leaf", hw_.network[t].source);
      leaf.links_up =
          named(ports / *above.switches, leaf.tier + ": cables to each switch above", "free ports over them");
    }
    if (!leaf.links_up || !leaf.switches || !has_ports(t)) return;
    const Traced up = *leaf.links_up * *above.switches;
    leaf.cables_up = named(port(t) * (*leaf.switches * up), leaf.tier + ": cables up",
                           "book ch. 12, quiz 3: switches x "
                           "switches above x cables between two x bandwidth of a port");
    if (leaf.children && c.links_down > 0) {
      leaf.ports_used = named(*leaf.children * count(t, c.links_down, "links_down") + up,
                              leaf.tier + ": ports of a switch in use", "book ch. 12, quiz 3");
    }
  }

  /// Every node's share of this tier's cables and switches is at least what a node sends.
  void full_bisection(std::size_t t, HwLevel& level) {
    constexpr double kRounding = 1e-9;
    const double node = port_bandwidth(hw_.network[t]).value() * static_cast<double>(tier(0).chips);
    std::optional<double> share;
    if (level.cable_per_child && t == 1) share = level.cable_per_child->value().value();
    if (level.capacity_per_node) {
      const double switches = level.capacity_per_node->value().value();
      share = share ? std::min(*share, switches) : switches;
    }
    if (share) level.full_bisection = *share >= node * (1 - kRounding);
  }

  void add_up() {
    Maybe<Traced> sum = chip_.core_switches;
    for (const HwLevel& level : chip_.levels) {
      if (!level.switches_in_all) return;  // a sum with a gap would pass for the whole
      sum = sum ? *sum + *level.switches_in_all : *level.switches_in_all;
    }
    if (sum) chip_.switches_in_all = named(*sum, "switches in all", "book ch. 12: of every tier");
  }

  const HwQuestion& q_;
  HwChip& chip_;
  const HardwareSpec& hw_;
};

}  // namespace

void switches_of(const HwQuestion& question, HwChip& chip) { Switches(question, chip).run(); }

}  // namespace scalecalc
