// Shows every figure of one or more chips, for `scalecalc hw`.
#include "hw/hw_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "base/scalar.h"
#include "base/text.h"
#include "base/units.h"
#include "hw/hw_figures_output.h"
#include "report/roof_plots.h"

namespace scalecalc {
namespace {

constexpr std::string_view kAxisNames[] = {"x", "y", "z"};

class ChipRecord {
 public:
  explicit ChipRecord(const HwChip& chip) : chip_(chip), hw_(chip.hw) {}

  Record run() {
    labels();
    moved();
    rates();
    intensities();
    units();
    onchip();
    topology();
    network();
    provenance();
    return std::move(out_.record);
  }

 private:
  void labels() { out_.append(hw_labels(hw_)); }

  void rates() {
    out_.heading("Rates");
    for (const auto& [d, rate] : chip_.rates.matmul)
      out_.add(key("matmul_flops_per_s", d), label("matmul", d), Format::kFlopsPerSecond, rate);
    for (const auto& [d, rate] : chip_.rates.matmul_per_core)
      out_.add(key("matmul_flops_per_s_per_core", d), label("of one core, matmul", d), Format::kFlopsPerSecond, rate);
    for (const auto& [d, rate] : chip_.rates.vector)
      out_.add(key("vector_flops_per_s", d), label("vector", d), Format::kFlopsPerSecond, rate);
    for (const auto& [d, rate] : chip_.rates.vector_without_fma)
      out_.add(key("vector_without_fma_flops_per_s", d), label("vector, adds alone,", d), Format::kFlopsPerSecond,
               rate);
    if (chip_.rates.matmul_over_vector)
      out_.add("matmul_over_vector", fmt::format("matmul in {} over vector", name_of(*chip_.rates.dtype)),
               Format::kNumber, *chip_.rates.matmul_over_vector);
    out_.append(hw_memory(hw_));
    out_.heading("Bandwidth");
    for (const HwChannel& channel : chip_.rates.channels)
      out_.add("bandwidth_bytes_per_s." + channel.name, channel.label, Format::kBytesPerSecond, channel.rate);
    out_.heading("Power and price");
    out_.append(hw_power_and_price(hw_));
    for (const auto& [d, flops] : chip_.rates.flops_per_usd)
      out_.add(key("flops_per_usd", d), label("FLOPs per dollar,", d), Format::kNumber, flops);
  }

  void intensities() {
    const HwRates& r = chip_.rates;
    if (r.dtype) {
      out_.heading("Critical intensity (FLOPs per byte)");
      out_.text("critical_intensity_dtype", "format", std::string(name_of(*r.dtype)));
    }
    for (std::size_t i = 0; i < r.intensities.size(); ++i) {
      const auto& [channel, value] = r.intensities[i];
      out_.add("critical_intensity_flops_per_byte." + channel, r.channels[i].label, Format::kNumber, value);
    }
    for (const auto& [d, value] : r.hbm_intensities)
      out_.add(key("critical_intensity_hbm_flops_per_byte", d), label("memory, matmul in", d), Format::kNumber, value);
    out_.heading("Memory bandwidth over");
    for (const auto& [channel, value] : r.hbm_over)
      out_.add("hbm_over." + channel, label_of(channel), Format::kNumber, value);
    for (const auto& [channel, value] : r.over_hbm)
      out_.add("over_hbm." + channel, label_of(channel) + " over memory", Format::kNumber, value);
  }

  const std::string& label_of(const std::string& channel) const {
    for (const HwChannel& known : chip_.rates.channels) {
      if (known.name == channel) return known.label;
    }
    return channel;
  }

  void units() {
    const HwUnits& u = chip_.units;
    out_.heading("Units");
    out_.append(hw_unit_facts(hw_));
    out_.add("units.mxu_alus", "multiply-accumulators of a matrix unit", Format::kInteger, u.mxu_alus);
    out_.add("units.mxu_flops_per_cycle", "FLOPs of a matrix unit and cycle", Format::kInteger, u.mxu_flops);
    out_.add("units.mxu_flops_per_s", "rate of a matrix unit", Format::kFlopsPerSecond, u.mxu_rate);
    out_.add("units.mxu_chip_flops_per_s", "rate of all matrix units", Format::kFlopsPerSecond, u.mxu_chip_rate);
    out_.add("units.mxu_over_sheet", "matrix units over data sheet", Format::kNumber, u.mxu_over_sheet);
    out_.add("units.vpu_flops_per_cycle", "vector FLOPs of a core and cycle", Format::kInteger, u.vpu_flops);
    out_.add("units.vpu_flops_per_s", "vector rate of a core", Format::kFlopsPerSecond, u.vpu_rate);
    out_.add("units.vpu_chip_flops_per_s", "vector rate of all cores", Format::kFlopsPerSecond, u.vpu_chip_rate);
    out_.add("units.matmul_over_vector", "matmul over vector rate of a core", Format::kNumber, u.matmul_over_vpu);
    out_.add("units.simd_units", "SIMD units", Format::kInteger, u.simd_units);
    out_.add("units.fp32_lanes", "fp32 lanes", Format::kInteger, u.fp32_lanes);
    out_.add("units.fp32_flops_per_cycle", "fp32 FLOPs of a cycle", Format::kInteger, u.fp32_flops);
    out_.add("units.fp32_flops_per_s", "fp32 rate of all lanes", Format::kFlopsPerSecond, u.fp32_rate);
    out_.add("units.implied_vector_clock_hz", "clock behind the published fp32 rate", Format::kHertz, u.implied_clock);
    out_.add("units.implied_tensor_flops_per_cycle", "FLOPs of a tensor core and cycle, implied", Format::kNumber,
             u.implied_tensor_flops);
    out_.add("units.tensor_flops_per_s", "rate of all tensor cores", Format::kFlopsPerSecond, u.tensor_rate);
    out_.add("units.tensor_over_sheet", "tensor cores over data sheet", Format::kNumber, u.tensor_over_sheet);
    out_.add("units.warps_per_sm", "warps resident in an SM", Format::kNumber, u.warps_per_sm);
  }

  void onchip() {
    out_.heading("On the chip");
    for (const HwMemoryLevel& level : chip_.onchip) {
      const std::string at = "onchip." + level.name;
      out_.add(at + ".one_bytes", level.name + ", one", Format::kBytes, level.one);
      out_.add(at + ".total_bytes", level.name + " of the chip", Format::kBytes, level.total);
      out_.add(at + ".bandwidth_bytes_per_s", level.name + " bandwidth", Format::kBytesPerSecond, level.bandwidth);
    }
    out_.add("onchip.registers_and_smem_bytes", "registers and smem", Format::kBytes, chip_.registers_and_smem);
  }

  void topology() {
    if (!chip_.slice) return;
    const HwSlice& s = *chip_.slice;
    out_.heading(s.whole_pod ? "Whole pod" : hw_.is_torus() ? "Slice" : "Machine");
    out_.text("topology.shape", "shape", s.shape);
    out_.add("topology.chips", "chips", Format::kInteger, s.chips);
    for (std::size_t a = 0; a < s.wraps.size(); ++a) {
      out_.flag(fmt::format("topology.wraps.{}", kAxisNames[a]), fmt::format("{} wraps", kAxisNames[a]), s.wraps[a]);
    }
    out_.add("topology.hosts", "hosts", Format::kInteger, s.hosts);
    out_.add("topology.units", "whole units", Format::kInteger, s.units);
    out_.add("topology.cores", "cores", Format::kInteger, s.cores);
    for (const auto& [d, rate] : s.matmul)
      out_.add(key("topology.matmul_flops_per_s", d), label("matmul", d), Format::kFlopsPerSecond, rate);
    out_.add("topology.memory_bytes", "memory", Format::kBytes, s.memory);
    out_.add("topology.memory_bandwidth_bytes_per_s", "memory bandwidth", Format::kBytesPerSecond, s.memory_bandwidth);
    out_.add("topology.bisection_one_way_bytes_per_s", "bisection, one way", Format::kBytesPerSecond,
             s.bisection_one_way);
    out_.add("topology.bisection_bytes_per_s", "bisection, both ways", Format::kBytesPerSecond, s.bisection);
    out_.add("topology.host_egress_bytes_per_s", "egress of a host", Format::kBytesPerSecond, s.host_egress);
    out_.add("topology.usd_per_hour", "price per hour", Format::kUsd, s.usd_per_hour);
    out_.add("topology.power_w", "power", Format::kWatts, s.power);
    out_.add("topology.nodes", "nodes", Format::kInteger, chip_.nodes);
    out_.add("topology.core_switches", "core switches", Format::kInteger, chip_.core_switches);
    out_.add("topology.switches_in_all", "switches in all", Format::kInteger, chip_.switches_in_all);
  }

  void network() {
    std::vector<Record> tiers;
    for (std::size_t t = 0; t < hw_.network.size(); ++t) {
      const HwLevel* level = t < chip_.levels.size() ? &chip_.levels[t] : nullptr;
      tiers.push_back(hw_tier(hw_.network[t], level));
    }
    if (!tiers.empty()) out_.records("network", "Network tier", std::move(tiers));
  }

  void moved() {
    if (chip_.send) send(*chip_.send);
    if (chip_.load) load(*chip_.load);
    if (chip_.padding) {
      out_.heading("Padded to the matrix unit");
      out_.add("padding.rows", "rows", Format::kInteger, chip_.padding->rows);
      out_.add("padding.columns", "columns", Format::kInteger, chip_.padding->columns);
      out_.add("padding.useful", "useful share", Format::kFraction, chip_.padding->useful);
    }
  }

  void send(const HwSend& s) {
    out_.heading("From one chip to another");
    out_.add("send.hops", "hops", Format::kInteger, s.hops);
    out_.add("send.ports", "ports", Format::kInteger, s.ports);
    out_.add("send.first_byte_s", "first byte", Format::kSeconds, s.first_byte);
    out_.add("send.transfer_s", "bytes", Format::kSeconds, s.transfer);
    out_.add("send.time_s", "together", Format::kSeconds, s.total);
  }

  void load(const HwLoad& l) {
    out_.heading("An array from the hosts to one chip");
    out_.add("load.bytes", "array", Format::kBytes, l.bytes);
    out_.add("load.shard_bytes", "a chip's shard", Format::kBytes, l.shard);
    out_.add("load.shard_hbm_time_s", "each chip reads its shard", Format::kSeconds, l.shard_memory);
    out_.add("load.pcie_time_s", "hosts to chips", Format::kSeconds, l.host);
    out_.add("load.gather_time_s", "gathered to one chip", Format::kSeconds, l.gather);
    out_.add("load.hbm_time_s", "one chip reads all of it", Format::kSeconds, l.memory);
    out_.add("load.flops", "FLOPs of the multiply", Format::kFlops, l.flops);
    out_.add("load.math_time_s", "multiply on one chip", Format::kSeconds, l.math);
    out_.add("load.pipelined_time_s", "all at once, at best", Format::kSeconds, l.pipelined);
    out_.add("load.serial_time_s", "one after the other", Format::kSeconds, l.serial);
  }

  void provenance() {
    out_.heading("Efficiency, share of the rate");
    out_.append(hw_efficiency(hw_));
    out_.records("prices", "", hw_prices(hw_));
    out_.list("disagreements", hw_.disagreements);
    out_.records("sources", "", hw_source_records(hw_));
  }

  static std::string key(const char* prefix, DType dtype) { return fmt::format("{}.{}", prefix, name_of(dtype)); }
  static std::string label(const char* prefix, DType dtype) { return fmt::format("{} {}", prefix, name_of(dtype)); }

  const HwChip& chip_;
  const HardwareSpec& hw_;
  Figures out_;
};

/// The first chip over each other, figure by figure; what one of the two lacks is left out.
Record ratio_record(const Record& first, const Record& other) {
  Figures out;
  out.text("first", "first", std::get<std::string>(first.figures.front().value));
  out.text("over", "over", std::get<std::string>(other.figures.front().value));
  for (const Figure& f : first.figures) {
    if (f.key.empty()) out.record.figures.push_back(f);  // a heading
    const double* a = std::get_if<double>(&f.value);
    if (a == nullptr || f.format == Format::kFlag || !compares(f.key)) continue;
    for (const Figure& g : other.figures) {
      const double* b = std::get_if<double>(&g.value);
      if (g.key == f.key && b != nullptr && *b != 0)
        out.record.figures.push_back(figure(f.key, f.label, Format::kNumber, Cell(*a / *b)));
    }
  }
  return std::move(out.record);
}

/// What a brief answer shows of a chip, and all of what was asked about beside it.
std::vector<std::string> brief_keys(const HwAnswer& answer) {
  const HwQuestion& q = answer.question;
  std::vector<std::string> out{"memory_", "chips_per_host", "tdp_w", "usd_per_chip_hour"};
  for (const std::string_view dtype : kDTypeNames) {
    // Matmuls of models run in these no longer.
    const bool wide = dtype == "fp64" || dtype == "fp32" || dtype == "tf32";
    if (!wide || q.dtype) out.push_back(fmt::format("matmul_flops_per_s.{}", dtype));
  }
  if (q.chips || !q.topology.empty()) {
    out.emplace_back("topology.");  // the machine in the place of a chip's own links
  } else {
    out.emplace_back("bandwidth_bytes_per_s.");
    // Side by side the first, of memory, compares; of one chip all do.
    out.emplace_back(answer.chips.size() > 1 ? "critical_intensity_flops_per_byte.hbm"
                                             : "critical_intensity_flops_per_byte.");
  }
  for (const char* key : {"send.", "load.", "padding."}) out.emplace_back(key);
  if (q.registers_per_thread) out.emplace_back("units.warps_per_sm");
  return out;
}

std::string chip_headline(const HwChip& chip) {
  const HwRates& r = chip.rates;
  const HardwareSpec& hw = chip.hw;
  std::vector<std::string> parts;
  const auto add = [&](double value, UnitKind unit, const std::string& words) {
    if (value > 0) parts.push_back(format_quantity(value, unit) + " " + words);
  };
  for (const auto& [dtype, rate] : r.matmul) {
    if (r.dtype && dtype == *r.dtype) add(rate.value().value(), UnitKind::kFlopsPerSecond, std::string(name_of(dtype)));
  }
  add(hw.hbm_capacity.value(), UnitKind::kBytes, "of memory");
  add(hw.hbm_bandwidth.value(), UnitKind::kBytesPerSecond, "from it");
  if (!r.intensities.empty()) {
    add(value_of(r.intensities.front().second), UnitKind::kNumber, "FLOPs per byte to be compute-bound");
  }
  if (const auto price = paid_price(hw, {}).usd_per_chip_hour) parts.push_back(compact_usd(*price) + " an hour");
  return join(parts, ", ");
}

std::string names_of(const HwAnswer& answer) {
  std::vector<std::string> names;
  for (const HwChip& chip : answer.chips) names.push_back(chip.hw.title);
  return join(names, ", ");
}

/// What stands beside a chip's figures: remarks, networks, prices, disagreements and sources. Of several chips only the
/// remarks, for people; JSON has all of it.
std::vector<std::string> notes_of(const HwAnswer& answer) {
  std::vector<std::string> out;
  const bool alone = answer.chips.size() == 1;
  for (const HwChip& chip : answer.chips) {
    const HardwareSpec& hw = chip.hw;
    if (!hw.note.empty()) out.push_back(alone ? hw.note : hw.name + ": " + hw.note);
    if (!alone) continue;
    for (const Tier& tier : hw.network) {
      if (!tier.technology.empty()) out.push_back(fmt::format("network tier {}: {}", tier.name, tier.technology));
    }
    for (const Price& p : hw.prices) {
      out.push_back(fmt::format("price: {:g} USD, {} {}{}{}, {} [{}]", p.usd_per_chip_hour, p.cloud, p.terms,
                                p.region.empty() ? "" : " ", p.region, p.date, p.source));
    }
    std::vector<std::string> stacks, engines;
    for (const StackCoefficients& stack : hw.stacks) {
      if (stack.basis != StackBasis::kDefault) (stack.serves ? engines : stacks).push_back(stack.name);
    }
    if (!stacks.empty()) {
      out.push_back(fmt::format("train --stack has coefficients fitted to measured runs for {}", join_and(stacks)));
    }
    if (!engines.empty()) {
      out.push_back(fmt::format("serve --engine has coefficients fitted to measured runs for {}", join_and(engines)));
    }
    for (const std::string& text : hw.disagreements) out.push_back("sources differ on " + text);
    for (const auto& [figures, source] : hw_sources(hw)) out.push_back(fmt::format("{}: {}", figures, source));
  }
  return out;
}

}  // namespace

Output hw_output(const HwAnswer& answer) {
  Output out{.command = "hw", .title = names_of(answer)};
  const HwQuestion& q = answer.question;
  out.query.figures = {list_figure("hardware", "", {q.hardware.begin(), q.hardware.end()})};
  if (q.load) out.query.figures.push_back(datum("load_elements", q.load->elements));
  Block chips{.key = "chips", .by_figure = true};
  for (const HwChip& chip : answer.chips) chips.records.push_back(ChipRecord(chip).run());
  Block ratios{
      .key = "ratios", .title = fmt::format("{} over the others", answer.chips.front().hw.name), .by_figure = true};
  for (std::size_t i = 1; i < chips.records.size(); ++i) {
    ratios.records.push_back(ratio_record(chips.records.front(), chips.records[i]));
  }
  chips.brief_keys = brief_keys(answer);
  ratios.shown = Shown::kFull;
  for (const HwChip& chip : answer.chips) {
    const std::string text = chip_headline(chip);
    const bool alone = answer.chips.size() == 1;
    if (!text.empty()) out.headline.push_back({alone ? text : chip.hw.name + ": " + text, Role::kGood});
  }
  out.notes = notes_of(answer);
  out.brief_notes.emplace();
  for (const HwChip& chip : answer.chips) {
    if (!chip.hw.note.empty() && answer.chips.size() == 1) out.brief_notes->push_back(chip.hw.note);
  }
  out.brief_notes->push_back(
      fmt::format("more: --verbose (units, memory on the chip, network tiers, efficiency, prices, sources){}",
                  answer.chips.size() > 1 ? ", --only ratios" : ""));
  out.blocks.push_back(std::move(chips));
  if (!ratios.records.empty()) out.blocks.push_back(std::move(ratios));
  out.plots = {hw_plot(answer)};
  out.assumptions = answer.assumptions;
  return out;
}

Plot hw_plot(const HwAnswer& answer) {
  std::vector<ChipRoof> roofs;
  for (const HwChip& chip : answer.chips) {
    const HwRates& rates = chip.rates;
    const auto hbm = std::find_if(rates.channels.begin(), rates.channels.end(),
                                  [](const HwChannel& channel) { return channel.name == "hbm"; });
    if (hbm == rates.channels.end()) continue;
    std::map<double, std::vector<std::string>, std::greater<>> by_rate;  // formats of one rate share a roof
    for (const auto& [dtype, rate] : rates.matmul) {
      const bool alone = answer.chips.size() == 1 && !answer.question.dtype;
      if (alone || dtype == rates.dtype) by_rate[value_of(rate)].emplace_back(name_of(dtype));
    }
    for (const auto& [rate, formats] : by_rate) {
      const std::string chip_name = answer.chips.size() > 1 ? chip.hw.name + " " : "";
      roofs.push_back({chip_name + join_and(formats), rate, value_of(hbm->rate)});
    }
  }
  return roofs.empty() ? Plot{} : roofs_plot(roofs, {});
}

}  // namespace scalecalc
