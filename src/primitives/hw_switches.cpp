// What the domains and switches of a switched network can carry, and how many switches a machine takes. Scaling book,
// chapter 12 ("Networking", quizzes 2 and 3, appendix B).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/scalar.h"
#include "base/units.h"
#include "network/tier_rates.h"
#include "primitives/hw.h"

namespace scalecalc {
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
