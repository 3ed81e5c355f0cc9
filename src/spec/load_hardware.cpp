#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "config/fields.h"
#include "spec/load.h"
#include "spec/load_efficiency.h"

namespace scalecalc {
namespace {

using TagMap = std::map<std::string, std::string>;

/// The `sources:` section, so that an answer can cite the reference and not only our tag for it.
TagMap load_sources(const ConfigNode* node, Problems& problems) {
  TagMap tags;
  if (node == nullptr) return tags;
  if (node->kind != ConfigNode::Kind::kMap) {
    problems.add(node->span, "sources must map a tag to a reference");
    return tags;
  }
  for (const ConfigNode::Entry& entry : node->entries) tags[entry.key] = entry.value.text;
  return tags;
}

/// Every block of figures must say where they come from.
std::string load_source(Fields& fields, const TagMap& tags) {
  const std::vector<std::string> listed = fields.text_list("source");
  if (listed.empty() && fields.span().file == "<command line>") return "--set";
  if (listed.empty()) {
    fields.problems().add(fields.span(), fmt::format("{} has no source: every figure needs one", fields.what()));
  }
  std::vector<std::string> out;
  for (const std::string& tag : listed) {
    const auto it = tags.find(tag);
    out.push_back(it == tags.end() ? tag : it->second);
  }
  return join(out, "; ");
}

void load_compute(const ConfigNode& node, const TagMap& tags, HardwareSpec& hw, Problems& problems) {
  Fields fields(node, "compute", problems);
  Fields rates(fields.required_node("matmul"), "compute.matmul", problems);
  bool any = false;
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    if (const auto rate = rates.optional_quantity(kDTypeNames[i], UnitKind::kFlopsPerSecond)) {
      hw.matmul_peak[i] = FlopsPerSecond(*rate);
      any = true;
    }
  }
  if (!any) problems.add(rates.span(), "compute.matmul must give at least one rate, such as bf16: 459TFLOP/s");
  rates.finish();
  if (const auto vector = fields.optional_quantity("vector", UnitKind::kFlopsPerSecond)) {
    hw.vector_peak = FlopsPerSecond(*vector);
  }
  hw.compute_source = load_source(fields, tags);
  fields.optional_text("note");
  fields.finish();
}

void load_hbm(const ConfigNode& node, const TagMap& tags, HardwareSpec& hw, Problems& problems) {
  Fields fields(node, "hbm", problems);
  const double capacity = fields.quantity("capacity", UnitKind::kBytes);
  hw.hbm_capacity = Bytes(fields.optional_quantity("usable", UnitKind::kBytes).value_or(capacity));
  hw.hbm_bandwidth = BytesPerSecond(fields.quantity("bandwidth", UnitKind::kBytesPerSecond));
  hw.hbm_source = load_source(fields, tags);
  fields.optional_text("note");
  fields.finish();
}

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

void check_axes(const Shape& shape, std::size_t axes, const char* what, Fields& fields) {
  if (!shape.empty() && shape.size() != axes) {
    fields.problems().add(fields.span(), fmt::format("{} has {} axes, the pod has {}", what, shape.size(), axes));
  }
}

TorusTier load_torus(Fields& fields) {
  TorusTier out;
  out.link_bandwidth = BytesPerSecond(fields.quantity("link_bandwidth", UnitKind::kBytesPerSecond));
  out.hop_latency = Seconds(fields.quantity("hop_latency", UnitKind::kSeconds));
  out.pod = fields.count_list("pod");
  constexpr Wraparound kRules[] = {Wraparound::kUnitMultiple, Wraparound::kFullAxis, Wraparound::kNone};
  out.wraparound = kRules[fields.word("wraparound", {"unit_multiple", "full_axis", "none"})];
  out.unit = fields.count_list("unit");
  out.small_slices = load_shapes(fields.node("small_slices"), fields.problems());
  out.shapes = load_shapes(fields.node("shapes"), fields.problems());
  out.max_chips = fields.count("max_chips");
  out.largest_job = fields.optional_count("largest_job").value_or(0);
  out.twisted = fields.flag("twisted", false);
  if (out.pod.empty() || out.pod.size() > 3) {
    fields.problems().add(fields.span(), "pod must list 1 to 3 axis sizes, such as [16, 20, 28]");
  }
  check_axes(out.unit, out.pod.size(), "unit", fields);
  for (const Shape& shape : out.shapes) check_axes(shape, out.pod.size(), "a shape", fields);
  for (const Shape& shape : out.small_slices) check_axes(shape, out.pod.size(), "a small slice", fields);
  return out;
}

SwitchedTier load_switched(Fields& fields, TierKind kind) {
  SwitchedTier out;
  out.chips = fields.optional_count("chips", {2, 1e9}).value_or(0);
  const char* rate = kind == TierKind::kMesh ? "link_bandwidth" : "bandwidth_per_chip";
  out.bandwidth_per_chip = BytesPerSecond(fields.quantity(rate, UnitKind::kBytesPerSecond));
  out.latency = Seconds(fields.quantity("latency", UnitKind::kSeconds, {0, 1}));
  out.oversubscription = fields.optional_quantity("oversubscription", UnitKind::kNumber, {1, 1000}).value_or(1);
  out.in_network_reduction = fields.flag("in_network_reduction", false);
  if (kind == TierKind::kMesh && out.chips == 0) {
    fields.problems().add(fields.span(), "a mesh tier needs chips: how many are fully connected");
  }
  return out;
}

Tier load_tier(const ConfigNode& node, const TagMap& tags, Problems& problems) {
  Fields fields(node, "network tier", problems);
  Tier tier;
  tier.name = fields.text("tier");
  constexpr TierKind kKinds[] = {TierKind::kTorus, TierKind::kSwitched, TierKind::kMesh};
  tier.kind = kKinds[fields.word("kind", {"torus", "switched", "mesh"})];
  if (tier.kind == TierKind::kTorus) {
    tier.torus = load_torus(fields);
  } else {
    tier.switched = load_switched(fields, tier.kind);
  }
  tier.source = load_source(fields, tags);
  fields.optional_text("technology");
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

void load_network(const ConfigNode& node, const TagMap& tags, HardwareSpec& hw, Problems& problems) {
  if (node.kind != ConfigNode::Kind::kSequence || node.items.empty()) {
    problems.add(node.span, "network must list at least one tier, from the inside out");
    return;
  }
  for (const ConfigNode& item : node.items) hw.network.push_back(load_tier(item, tags, problems));
  check_nesting(hw.network, node.span, problems);
}

void load_host(const ConfigNode& node, const TagMap& tags, HardwareSpec& hw, Problems& problems) {
  Fields fields(node, "host", problems);
  hw.chips_per_host = fields.count("chips", {1, 1024});
  hw.host_ram = Bytes(fields.optional_quantity("ram", UnitKind::kBytes).value_or(0));
  if (const auto rate = fields.optional_quantity("pcie_bandwidth", UnitKind::kBytesPerSecond)) {
    hw.pcie_bandwidth = BytesPerSecond(*rate);
  }
  if (const auto rate = fields.optional_quantity("storage_bandwidth", UnitKind::kBytesPerSecond)) {
    hw.storage_bandwidth = BytesPerSecond(*rate);
  }
  hw.host_source = load_source(fields, tags);
  fields.optional_text("note");
  fields.finish();
}

void load_power(const ConfigNode* node, const TagMap& tags, HardwareSpec& hw, Problems& problems) {
  if (node == nullptr) return;
  Fields fields(*node, "power", problems);
  hw.tdp = Watts(fields.quantity("tdp", UnitKind::kWatts));
  hw.tdp_source = load_source(fields, tags);
  fields.optional_text("note");
  fields.finish();
}

void load_prices(const ConfigNode* node, const TagMap& tags, HardwareSpec& hw, Problems& problems) {
  if (node == nullptr) return;
  for (const ConfigNode& item : node->items) {
    Fields fields(item, "price", problems);
    Price price;
    price.usd_per_chip_hour = fields.quantity("usd_per_chip_hour", UnitKind::kUsdPerHour);
    price.cloud = fields.text("cloud");
    price.region = fields.optional_text("region").value_or("");
    price.terms = fields.text("terms");
    price.date = fields.text("date");
    price.source = load_source(fields, tags);
    fields.optional_text("note");
    fields.finish();
    hw.prices.push_back(std::move(price));
  }
}

void load_disagreements(const ConfigNode* node, HardwareSpec& hw, Problems& problems) {
  if (node == nullptr) return;
  for (const ConfigNode& item : node->items) {
    Fields fields(item, "disagreement", problems);
    hw.disagreements.push_back(fmt::format("{}: picked {} ({}); others: {}", fields.text("field"),
                                           fields.text("picked"), fields.text("why"), fields.text("others")));
    fields.finish();
  }
}

}  // namespace

HardwareSpec load_hardware(const ConfigNode& document, const Catalog& catalog) {
  Problems problems;
  Fields fields(document, "hardware", problems);
  HardwareSpec hw;
  fields.word("schema", {"scalecalc-hardware/1"});
  hw.name = fields.text("name");
  hw.title = fields.text("title");
  fields.text_list("aliases");
  fields.optional_text("vendor");
  fields.optional_text("note");
  fields.optional_count("year", {1990, 2100});
  hw.family = fields.text("family");
  const TagMap tags = load_sources(fields.node("sources"), problems);
  load_compute(fields.required_node("compute"), tags, hw, problems);
  load_hbm(fields.required_node("hbm"), tags, hw, problems);
  load_network(fields.required_node("network"), tags, hw, problems);
  load_host(fields.required_node("host"), tags, hw, problems);
  load_power(fields.node("power"), tags, hw, problems);
  load_prices(fields.node("prices"), tags, hw, problems);
  load_disagreements(fields.node("disagreements"), hw, problems);
  const ConfigNode* own = fields.node("efficiency");
  fields.finish();
  problems.throw_if_any();
  hw.efficiency = load_efficiency(catalog.load(CatalogKind::kEfficiency, hw.family), own, problems);
  problems.throw_if_any();
  return hw;
}

}  // namespace scalecalc
