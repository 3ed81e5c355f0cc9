// Reads the network block of a hardware file: tiers, shapes, latencies and rates.
#include <fmt/format.h>

#include <cmath>
#include <variant>

#include "base/units.h"
#include "spec/hardware_reading.h"

namespace scalecalc {
namespace {

std::vector<Shape> load_shapes(const ConfigNode* node, Problems& problems) {
  std::vector<Shape> shapes;
  if (node == nullptr) return shapes;
  for (const ConfigNode& item : node->items) {
    Shape shape;
    for (const ConfigNode& axis : item.items) {
      const auto parsed = parse_quantity(axis.text, UnitKind::kCount);
      if (const double* value = std::get_if<double>(&parsed); value != nullptr && *value >= 1) {
        shape.push_back(static_cast<std::int64_t>(*value));
      } else {
        problems.add(axis.span, fmt::format("'{}' is not an axis size, expected a whole number such as 4", axis.text));
      }
    }
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

void check_axes(const Shape& shape, std::int64_t axes, const char* what, Fields& fields) {
  if (!shape.empty() && static_cast<std::int64_t>(shape.size()) != axes) {
    fields.problems().add(fields.span(), fmt::format("{} has {} axes, the pod has {}", what, shape.size(), axes));
  }
}

/// The pod's shape, or how many axes it has where the shape is unpublished.
void load_pod(Fields& fields, const std::string& path, const HardwareReading& in, TorusTier& out) {
  constexpr std::int64_t kMostAxes = 3;
  if (in.unpublished(fields, "pod", path + ".pod")) {
    out.axes = fields.count("axes", {1, kMostAxes});
    return;
  }
  out.pod = fields.count_list("pod");
  if (out.dimensions() < 1 || out.dimensions() > kMostAxes) {
    fields.problems().add(fields.span(), "pod must list 1 to 3 axis sizes, such as [16, 20, 28]");
  }
  out.max_chips = fields.count("max_chips");
}

TorusTier load_torus(Fields& fields, const std::string& path, const HardwareReading& in) {
  TorusTier out;
  out.link_bandwidth = BytesPerSecond(
      in.figure(fields, "link_bandwidth", UnitKind::kBytesPerSecond, path + ".link_bandwidth").value_or(0));
  out.hop_latency = Seconds(in.figure(fields, "hop_latency", UnitKind::kSeconds, path + ".hop_latency").value_or(0));
  load_pod(fields, path, in, out);
  constexpr Wraparound kRules[] = {Wraparound::kUnitMultiple, Wraparound::kFullAxis, Wraparound::kNone};
  out.wraparound = kRules[fields.word("wraparound", {"unit_multiple", "full_axis", "none"})];
  out.unit = fields.count_list("unit");
  out.small_slices = load_shapes(fields.node("small_slices"), fields.problems());
  out.shapes = load_shapes(fields.node("shapes"), fields.problems());
  out.largest_job = fields.optional_count("largest_job").value_or(0);
  out.twisted = fields.flag("twisted", false);
  check_axes(out.unit, out.dimensions(), "unit", fields);
  for (const Shape& shape : out.shapes) check_axes(shape, out.dimensions(), "a shape", fields);
  for (const Shape& shape : out.small_slices) check_axes(shape, out.dimensions(), "a small slice", fields);
  return out;
}

Cabling load_cabling(Fields& fields) {
  Cabling out;
  out.ports = fields.optional_count("ports").value_or(0);
  out.ports_per_host = fields.optional_count("ports_per_host").value_or(0);
  out.port_bandwidth =
      BytesPerSecond(fields.optional_quantity("port_bandwidth", UnitKind::kBytesPerSecond).value_or(0));
  out.switches = fields.optional_count("switches").value_or(0);
  out.switch_ports = fields.optional_count("switch_ports").value_or(0);
  out.links_down = fields.optional_count("links_down").value_or(0);
  out.links_up = fields.optional_count("links_up").value_or(0);
  if (out.ports > 0 && out.ports_per_host > 0) {
    fields.problems().add(fields.span(), "give the ports of a chip or those of a host (ports_per_host), not both");
  }
  return out;
}

/// A tier's rate from the ports of its chips; 0 if the file does not give them.
BytesPerSecond rate_of_ports(const Cabling& cabling, const SwitchedTier& tier, bool mesh, std::int64_t host_chips) {
  const double ports = cabling.ports > 0
                           ? static_cast<double>(cabling.ports)
                           : static_cast<double>(cabling.ports_per_host) / static_cast<double>(host_chips);
  const double peers = mesh ? static_cast<double>(tier.chips - 1) : 1;
  return cabling.port_bandwidth * (ports / peers);
}

/// One figure, given once: the rate itself, or the ports behind it. A rate set on the command line moves the ports.
void load_rate(Fields& fields, const char* key, bool mesh, const std::string& path, const HardwareReading& in,
               SwitchedTier& out) {
  constexpr double kAgree = 0.005;
  const double from_ports = rate_of_ports(out.cabling, out, mesh, in.hw.chips_per_host).value();
  if (from_ports == 0) {
    out.bandwidth_per_chip =
        BytesPerSecond(in.figure(fields, key, UnitKind::kBytesPerSecond, fmt::format("{}.{}", path, key)).value_or(0));
    return;
  }
  const double given = fields.optional_quantity(key, UnitKind::kBytesPerSecond).value_or(from_ports);
  out.bandwidth_per_chip = BytesPerSecond(given);
  const ConfigNode* written = fields.node(key);
  if (written == nullptr) return;
  if (written->span.file.str() == "<command line>") {
    out.cabling.port_bandwidth = out.cabling.port_bandwidth * (given / from_ports);
  } else if (std::abs(given - from_ports) > kAgree * from_ports) {
    fields.problems().add(
        written->span,
        fmt::format("'{}' is {}, but the ports carry {}", key, format_quantity(given, UnitKind::kBytesPerSecond, 4),
                    format_quantity(from_ports, UnitKind::kBytesPerSecond, 4)),
        fmt::format("leave '{}' out: it follows from the ports", key));
  }
}

/// What waits for the latency, and in which order messages follow where each of them does.
void load_latency_meaning(Fields& fields, SwitchedTier& out) {
  constexpr LatencyPer kPer[] = {LatencyPer::kOperation, LatencyPer::kMessage};
  constexpr MessageOrder kOrders[] = {MessageOrder::kTree, MessageOrder::kRing};
  if (fields.has("latency_per")) out.latency_per = kPer[fields.word("latency_per", {"operation", "message"})];
  if (!fields.has("algorithm")) return;
  out.algorithm = kOrders[fields.word("algorithm", {"tree", "ring"})];
  if (out.latency_per == LatencyPer::kOperation) {
    fields.problems().add(fields.span(), "'algorithm' orders messages, and this tier's latency is that of an operation",
                          "latency_per: message, or leave 'algorithm' out");
  }
}

SwitchedTier load_switched(Fields& fields, TierKind kind, const std::string& path, const HardwareReading& in) {
  const bool mesh = kind == TierKind::kMesh;
  SwitchedTier out;
  out.chips = fields.optional_count("chips", {2, 1e9}).value_or(0);
  if (mesh && out.chips == 0) {
    fields.problems().add(fields.span(), "a mesh tier needs chips: how many are fully connected");
    out.chips = 2;
  }
  out.cabling = load_cabling(fields);
  load_rate(fields, mesh ? "link_bandwidth" : "bandwidth_per_chip", mesh, path, in, out);
  out.latency = Seconds(in.figure(fields, "latency", UnitKind::kSeconds, path + ".latency", {0, 1}).value_or(0));
  load_latency_meaning(fields, out);
  out.oversubscription = fields.optional_quantity("oversubscription", UnitKind::kNumber, {1, 1000}).value_or(1);
  out.in_network_reduction = fields.flag("in_network_reduction", false);
  return out;
}

Tier load_tier(const ConfigNode& node, const HardwareReading& in) {
  Fields fields(node, "network tier", in.problems);
  Tier tier;
  tier.name = fields.text("tier");
  const std::string path = "network." + tier.name;
  constexpr TierKind kKinds[] = {TierKind::kTorus, TierKind::kSwitched, TierKind::kMesh};
  tier.kind = kKinds[fields.word("kind", {"torus", "switched", "mesh"})];
  if (tier.kind == TierKind::kTorus) {
    tier.torus = load_torus(fields, path, in);
  } else {
    tier.switched = load_switched(fields, tier.kind, path, in);
  }
  tier.source = in.source(fields);
  tier.technology = fields.optional_text("technology").value_or("");
  fields.optional_text("note");
  fields.finish();
  return tier;
}

/// Tiers nest: each domain is a whole multiple of the one below, a torus or mesh can only be innermost, and only the
/// outermost tier may be without limit.
void check_nesting(const std::vector<Tier>& network, const SourceSpan& where, Problems& problems) {
  std::int64_t inner = 1;
  for (std::size_t i = 0; i < network.size(); ++i) {
    const Tier& tier = network[i];
    if (i > 0 && tier.kind != TierKind::kSwitched) {
      problems.add(where, fmt::format("tier '{}' is a {}: only the innermost tier may be one", tier.name,
                                      tier.kind == TierKind::kTorus ? "torus" : "mesh"));
    }
    if (tier.kind == TierKind::kTorus) continue;
    const bool last = i + 1 == network.size();
    if (tier.switched.chips == 0 && !last) {
      problems.add(where, fmt::format("tier '{}' gives no chips: only the outermost tier has no limit", tier.name));
    }
    if (tier.switched.chips != 0 && tier.switched.chips % inner != 0) {
      problems.add(where, fmt::format("tier '{}' has {} chips, not a multiple of the {} below it", tier.name,
                                      tier.switched.chips, inner));
    }
    if (tier.switched.chips != 0) inner = tier.switched.chips;
  }
}

}  // namespace

void load_network(const ConfigNode& node, const HardwareReading& in) {
  if (node.kind == ConfigNode::Kind::kScalar && node.text == "none") return;  // the chip stands alone
  if (node.kind != ConfigNode::Kind::kSequence || node.items.empty()) {
    in.problems.add(node.span, "network must list at least one tier, from the inside out",
                    "'none' says that the chip stands alone, 'unpublished' that its source does not tell");
    return;
  }
  for (const ConfigNode& item : node.items) in.hw.network.push_back(load_tier(item, in));
  if (in.hw.network.size() > kMaxTiers) {
    in.problems.add(node.span,
                    fmt::format("network lists {} tiers, at most {} are modelled", in.hw.network.size(), kMaxTiers));
  }
  check_nesting(in.hw.network, node.span, in.problems);
}

}  // namespace scalecalc
