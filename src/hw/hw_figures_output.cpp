// Makes the figures of a chip's memory, links, prices and sources that the outputs of `hw` share.
#include "hw/hw_figures_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "network/tier_rates.h"

namespace scalecalc {
namespace {

std::string_view word_of(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kHbm: return "hbm";
    case MemoryKind::kGddr: return "gddr";
    case MemoryKind::kLpddr: return "lpddr";
    case MemoryKind::kSram: return "sram";
  }
  return "";
}

std::string_view word_of(TierKind kind) {
  switch (kind) {
    case TierKind::kTorus: return "torus";
    case TierKind::kSwitched: return "switched";
    case TierKind::kMesh: return "mesh";
  }
  return "";
}

std::string_view word_of(Wraparound rule) {
  switch (rule) {
    case Wraparound::kUnitMultiple: return "all axes of a slice of whole units";
    case Wraparound::kFullAxis: return "an axis as long as the pod's";
    case Wraparound::kNone: return "none";
  }
  return "";
}

std::string slice_shape_text(const Shape& shape) {
  std::string out;
  for (const std::int64_t axis : shape) out += fmt::format("{}{}", out.empty() ? "" : "x", axis);
  return out;
}

std::optional<double> published(double value) { return value > 0 ? std::optional(value) : std::nullopt; }

/// A figure that is 0 where the file does not give it.
void given(Figures& out, std::string_view key, std::string_view label, Format format, double value) {
  if (value > 0) out.number(key, label, format, value);
}

void given(Figures& out, std::string_view key, std::string_view label, std::int64_t value) {
  given(out, key, label, Format::kInteger, static_cast<double>(value));
}

void torus_facts(const Tier& tier, Figures& out) {
  const TorusTier& torus = tier.torus;
  given(out, "link_bandwidth_bytes_per_s", "link, one way", Format::kBytesPerSecond, port_bandwidth(tier).value());
  given(out, "hop_latency_s", "latency of a hop", Format::kSeconds, link_latency(tier).value());
  given(out, "axes", "axes", torus.dimensions());
  if (!torus.pod.empty()) out.text("pod", "pod", slice_shape_text(torus.pod));
  given(out, "max_chips", "chips of the pod", torus.max_chips);
  given(out, "largest_job", "largest slice rented", torus.largest_job);
  out.text("wraparound", "wraparound", std::string(word_of(torus.wraparound)));
  if (!torus.unit.empty()) out.text("unit", "unit", slice_shape_text(torus.unit));
  out.flag("twisted", "twisted tori", torus.twisted);
}

void switched_facts(const Tier& described, Figures& out) {
  const SwitchedTier& tier = described.switched;
  const bool mesh = described.kind == TierKind::kMesh;
  given(out, "chips", "chips of a domain", tier.chips);
  given(out, mesh ? "link_bandwidth_bytes_per_s" : "bandwidth_per_chip_bytes_per_s",
        mesh ? "link to one peer, one way" : "egress of a chip", Format::kBytesPerSecond,
        port_bandwidth(described).value());
  given(out, "latency_s", "latency", Format::kSeconds, link_latency(described).value());
  const bool waits = link_latency(described).value() > 0;
  if (waits) out.text("latency_per", "latency of", std::string(name_of(tier.latency_per)));
  if (waits && tier.latency_per == LatencyPer::kMessage)
    out.text("algorithm", "messages in a", std::string(name_of(tier.algorithm)));
  if (tier.oversubscription > 1)
    out.number("oversubscription", "oversubscription", Format::kNumber, tier.oversubscription);
  out.flag("in_network_reduction", "switches reduce", tier.in_network_reduction);
  const Cabling& c = tier.cabling;
  given(out, "ports", "ports of a chip", c.ports);
  given(out, "ports_per_host", "ports of a host", c.ports_per_host);
  given(out, "port_bandwidth_bytes_per_s", "a port, one way", Format::kBytesPerSecond, c.port_bandwidth.value());
  given(out, "switch_ports", "ports of a switch", c.switch_ports);
}

void level_figures(const HwLevel& l, Figures& out) {
  out.add("children", "children of a domain", Format::kInteger, l.children);
  out.add("child_bandwidth_bytes_per_s", "egress of a child", Format::kBytesPerSecond, l.child_bandwidth);
  out.add("children_bandwidth_bytes_per_s", "egress of all children", Format::kBytesPerSecond, l.children_bandwidth);
  out.add("per_chip_bytes_per_s", "of one chip", Format::kBytesPerSecond, l.per_chip);
  out.add("bisection_one_way_bytes_per_s", "bisection, one way", Format::kBytesPerSecond, l.bisection_one_way);
  out.add("bisection_bytes_per_s", "bisection, both ways", Format::kBytesPerSecond, l.bisection);
  out.add("bisection_share_bytes_per_s", "", Format::kBytesPerSecond, l.bisection_share);
  out.add("domains", "domains", Format::kInteger, l.domains);
  out.add("switches", "switches of a domain", Format::kInteger, l.switches);
  out.add("switches_in_all", "switches in all", Format::kInteger, l.switches_in_all);
  out.add("switch_bandwidth_bytes_per_s", "one switch", Format::kBytesPerSecond, l.switch_bandwidth);
  out.add("capacity_bytes_per_s", "switches of a domain carry", Format::kBytesPerSecond, l.capacity);
  out.add("capacity_per_node_bytes_per_s", "a node's share of them", Format::kBytesPerSecond, l.capacity_per_node);
  out.add("peak_bytes_per_s", "peak: lower of switches and children", Format::kBytesPerSecond, l.peak);
  out.add("cables_down_bytes_per_s", "cables down", Format::kBytesPerSecond, l.cables_down);
  out.add("cable_per_child_bytes_per_s", "a child's share of them", Format::kBytesPerSecond, l.cable_per_child);
  out.add("links_up", "cables to each switch above", Format::kInteger, l.links_up);
  out.add("cables_up_bytes_per_s", "cables up", Format::kBytesPerSecond, l.cables_up);
  out.add("ports_used", "ports of a switch in use", Format::kInteger, l.ports_used);
  if (l.full_bisection) out.flag("full_bisection", "full bisection", *l.full_bisection);
}

void coefficient(const std::string& name, const std::string& label, const Coefficient& c, Format format, Figures& out) {
  const std::string at = "efficiency." + name;
  out.number(at + ".value", label, format, c.value);
  out.number(at + ".relative_error", "", Format::kFraction, c.error);
  out.text(at + ".source", "", c.source);
}

/// Stacks with coefficients of their own on this chip.
std::vector<Record> stack_records(const HardwareSpec& hw) {
  std::vector<Record> out;
  for (const StackCoefficients& stack : hw.stacks) {
    if (stack.basis == StackBasis::kDefault) continue;
    Figures one;
    one.text("name", "", stack.name);
    one.list("frameworks", stack.frameworks);
    one.text("fitted", "", std::string(name_of(stack.basis)));
    one.flag("usual", "", stack.name == hw.efficiency.stack);
    one.text("confidence", "", stack.efficiency.confidence);
    out.push_back(std::move(one.record));
  }
  return out;
}

}  // namespace

void Figures::text(std::string_view key, std::string_view label, std::string value) {
  if (!value.empty()) record.figures.push_back(figure(key, label, Format::kText, Cell(std::move(value))));
}

void Figures::number(std::string_view key, std::string_view label, Format format, const std::optional<double>& value) {
  record.figures.push_back(number_figure(key, label, format, value));
}

void Figures::flag(std::string_view key, std::string_view label, bool value) {
  number(key, label, Format::kFlag, value ? 1 : 0);
}

void Figures::list(std::string_view key, const std::vector<std::string>& items) {
  std::vector<Cell> cells(items.begin(), items.end());
  record.figures.push_back(list_figure(key, "", std::move(cells)));
}

void Figures::records(std::string_view key, std::string_view label, std::vector<Record> items) {
  std::string shown;
  for (const Record& item : items) {
    const std::string* name = std::get_if<std::string>(&item.figures.front().value);
    if (name != nullptr) shown += (shown.empty() ? "" : ", ") + *name;
  }
  record.figures.push_back(records_figure(key, label, std::move(shown), std::move(items)));
}

void Figures::append(std::vector<Figure> figures) {
  for (Figure& f : figures) record.figures.push_back(std::move(f));
}

std::vector<Figure> hw_labels(const HardwareSpec& hw) {
  Figures out;
  out.text("name", "name", hw.name);
  out.text("title", "", hw.title);
  out.text("vendor", "vendor", hw.vendor);
  out.text("family", "family", hw.family);
  if (hw.year > 0) out.number("year", "year", Format::kText, static_cast<double>(hw.year));
  out.flag("announced", "", hw.announced);
  out.list("aliases", hw.aliases);
  return std::move(out.record.figures);
}

std::vector<Figure> hw_memory(const HardwareSpec& hw) {
  Figures out;
  out.number("memory_bytes", "memory", Format::kBytes, published(hw.hbm_capacity.value()));
  out.number("memory_label_bytes", "", Format::kBytes, published(hw.hbm_label.value()));
  out.number("memory_bandwidth_bytes_per_s", "memory bandwidth", Format::kBytesPerSecond,
             published(hw.hbm_bandwidth.value()));
  out.text("memory_kind", "", std::string(word_of(hw.memory_kind)));
  out.text("memory_technology", "kind of memory",
           hw.memory_technology.empty() ? std::string(word_of(hw.memory_kind)) : hw.memory_technology);
  if (hw.offload) {
    given(out, "offload_bytes", "memory beside the chip", Format::kBytes, hw.offload->capacity.value());
    out.text("offload_technology", "", hw.offload->technology);
  }
  given(out, "host_memory_bytes", "memory of a host", Format::kBytes, hw.host_ram.value());
  if (hw.publishes("host")) given(out, "chips_per_host", "chips of a host", hw.chips_per_host);
  if (!hw.host_shape.empty()) out.text("host_shape", "", slice_shape_text(hw.host_shape));
  return std::move(out.record.figures);
}

std::vector<Figure> hw_power_and_price(const HardwareSpec& hw) {
  Figures out;
  out.number("tdp_w", "power", Format::kWatts, hw.tdp ? std::optional(hw.tdp->value()) : std::nullopt);
  out.number("usd_per_chip_hour", "price of a chip-hour", Format::kUsd, paid_price(hw, {}).usd_per_chip_hour);
  return std::move(out.record.figures);
}

std::vector<Figure> hw_unit_facts(const HardwareSpec& hw) {
  const ChipUnits& u = hw.units;
  Figures out;
  given(out, "units.cores", "cores", u.cores);
  if (u.clock.base) out.number("units.clock_base_hz", "clock", Format::kHertz, u.clock.base->value());
  if (u.clock.boost) out.number("units.clock_boost_hz", "boost clock", Format::kHertz, u.clock.boost->value());
  if (u.clock.tensor)
    out.number("units.clock_tensor_hz", "clock under matmuls", Format::kHertz, u.clock.tensor->value());
  if (u.mxu) {
    given(out, "units.mxu_dim", "width of a matrix unit", u.mxu->dim);
    given(out, "units.mxus_per_core", "matrix units of a core", u.mxu->per_core);
  }
  if (u.sm) given(out, "units.sms", u.sm->word + "s", u.sm->count);
  return std::move(out.record.figures);
}

Record hw_tier(const Tier& tier, const HwLevel* level) {
  Figures out;
  out.text("name", "tier", tier.name);
  out.text("kind", "kind", std::string(word_of(tier.kind)));
  out.text("technology", "", tier.technology);  // long; people find it in the notes
  if (tier.kind == TierKind::kTorus) {
    torus_facts(tier, out);
  } else {
    switched_facts(tier, out);
  }
  if (level != nullptr) level_figures(*level, out);
  return std::move(out.record);
}

std::vector<Figure> hw_efficiency(const HardwareSpec& hw) {
  const Efficiency& e = hw.efficiency;
  Figures out;
  out.text("efficiency.family", "family", hw.family);
  out.text("efficiency.stack", "software", e.stack);
  out.text("efficiency.confidence", "", e.confidence);
  out.records("efficiency.stacks", "", stack_records(hw));  // people find them in the notes
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    const std::string_view dtype = kDTypeNames[i];
    if (hw.matmul_peak[i])
      coefficient(fmt::format("matmul.{}", dtype), fmt::format("matmul {}", dtype), e.matmul[i], Format::kFraction,
                  out);
  }
  const auto share = [&](const char* name, const char* label, const Coefficient& c) {
    coefficient(name, label, c, Format::kFraction, out);
  };
  share("attention_forward", "attention, forward", e.attention_forward);
  share("attention_backward", "attention, backward", e.attention_backward);
  coefficient("attention_half_context", "tokens at half its rate", e.attention_half_context, Format::kNumber, out);
  coefficient("attention_half_head_dim", "head size at half its rate", e.attention_half_head_dim, Format::kNumber, out);
  share("hbm", "memory bandwidth", e.hbm);
  share("cast", "casts to 8 bits that show", e.cast);
  share("link.scale_up", "links, innermost tier", e.link_scale_up);
  share("link.scale_out", "links beyond it", e.link_scale_out);
  share("link.host", "link to the host", e.link_host);
  share("overlap.tp", "hidden: tensor parallelism", e.overlap_tp);
  share("overlap.tp_pipelined", "the same in pieces under matmuls", e.overlap_tp_pipelined);
  share("overlap.fsdp", "hidden: gathers of weights", e.overlap_fsdp);
  share("overlap.dp", "hidden: gradient reduction", e.overlap_dp);
  share("overlap.ep", "hidden: expert dispatch", e.overlap_ep);
  share("overlap.ep_paired", "the same under another microbatch", e.overlap_ep_paired);
  coefficient("kernel_overhead_s", "overhead of a kernel", e.kernel_overhead, Format::kSeconds, out);
  coefficient("expert_overhead_s", "overhead of a pass over experts", e.expert_overhead, Format::kSeconds, out);
  coefficient("host_overhead_s", "host, to launch a kernel", e.host_overhead, Format::kSeconds, out);
  share("captured_share", "of the first two, in a captured graph", e.captured_share);
  if (e.collectives.ring_hop_scale_up.value > 0) {
    const CollectiveKernels& k = e.collectives;
    coefficient("ring_hop.scale_up_s", "a ring's hop, innermost tier", k.ring_hop_scale_up, Format::kSeconds, out);
    coefficient("ring_hop.scale_out_s", "a ring's hop beyond it", k.ring_hop_scale_out, Format::kSeconds, out);
  }
  if (e.scale_loss.value > 0) share("scale_loss", "lost with each doubling of hosts or slices", e.scale_loss);
  coefficient("memory_reserve_bytes", "memory kept for the runtime", e.memory_reserve, Format::kBytes, out);
  return std::move(out.record.figures);
}

std::vector<Record> hw_prices(const HardwareSpec& hw) {
  std::vector<Record> out;
  for (const Price& price : hw.prices) {
    Figures record;
    record.text("cloud", "", price.cloud);
    record.number("usd_per_chip_hour", "", Format::kUsd, price.usd_per_chip_hour);
    record.text("region", "", price.region);
    record.text("terms", "", price.terms);
    record.text("date", "", price.date);
    record.text("source", "", price.source);
    out.push_back(std::move(record.record));
  }
  return out;
}

std::vector<Record> hw_source_records(const HardwareSpec& hw) {
  std::vector<Record> out;
  for (const auto& [figures, source] : hw_sources(hw)) {
    Figures one;
    one.text("figures", "", figures);
    one.text("source", "", source);
    out.push_back(std::move(one.record));
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> hw_sources(const HardwareSpec& hw) {
  std::vector<std::pair<std::string, std::string>> out;
  const auto add = [&](const std::string& block, const std::string& source) {
    if (!source.empty()) out.emplace_back(block, source);
  };
  add("compute", hw.compute_source);
  add("units", hw.units.source);
  add("onchip", hw.onchip.source);
  add("hbm", hw.hbm_source);
  for (const Tier& tier : hw.network) add("network." + tier.name, tier.source);
  add("host", hw.host_source);
  if (hw.offload) add("offload", hw.offload->source);
  add("power", hw.tdp_source);
  return out;
}

bool compares(std::string_view key) {
  constexpr std::array<std::string_view, 11> kPrefixes{"matmul_flops_per_s",
                                                       "vector_",
                                                       "memory_bytes",
                                                       "memory_bandwidth",
                                                       "bandwidth_bytes_per_s",
                                                       "tdp_w",
                                                       "usd_per_chip_hour",
                                                       "flops_per_usd",
                                                       "critical_",
                                                       "units.",
                                                       "onchip."};
  return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](std::string_view prefix) { return key.starts_with(prefix); });
}

}  // namespace scalecalc
