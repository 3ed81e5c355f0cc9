// Answers `scalecalc hw`: the rates of a chip, its intensities and its memory levels.
#include "hw/hw.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "base/diagnostic.h"
#include "base/scalar.h"
#include "base/text.h"
#include "cost/vector_rate.h"
#include "hw/named_rates.h"
#include "network/tier_rates.h"
#include "spec/load.h"

namespace scalecalc {
namespace {

// Rates and the intensities at which compute and a channel take the same time: C / W, scaling book, chapters 1 and 2.

std::size_t at(DType dtype) { return static_cast<std::size_t>(dtype); }

/// What a user of the chip would train in.
std::optional<DType> usual_dtype(const HardwareSpec& hw) {
  for (const DType dtype : {DType::kBf16, DType::kFp16, DType::kFp8, DType::kInt8, DType::kFp32}) {
    if (hw.matmul_peak[at(dtype)]) return dtype;
  }
  return std::nullopt;
}

constexpr std::string_view kHostLink = "pcie";

/// A tier may be called as the host's link is ("pcie"), whose name the figures of files keep.
std::string channel_name(const Tier& tier) { return tier.name == kHostLink ? tier.name + "_egress" : tier.name; }

/// The channels of the innermost tier.
void add_scale_up(const HardwareSpec& hw, const NamedRates& rates, std::vector<HwChannel>& out) {
  const Tier& tier = hw.network.front();
  if (!publishes_tier(hw, 0)) return;
  if (tier.kind != TierKind::kTorus) {
    out.push_back({channel_name(tier), fmt::format("{}, one chip's egress", tier.name), rates.scale_up()});
    return;
  }
  out.push_back({tier.name, fmt::format("{}, one axis both ways", tier.name), rates.ici()});
  out.push_back({tier.name + "_one_way", fmt::format("{}, one link one way", tier.name), rates.link()});
  const Traced axes = kReader.input(static_cast<double>(rates.axes()), "axes", tier.source);
  out.push_back({tier.name + "_all_axes", fmt::format("{}, all axes", tier.name),
                 named(rates.ici() * axes, "all axes", "book ch. 2: every axis at once")});
}

/// The tiers beyond, as seen by one chip; and the first of them as seen by a whole node.
void add_scale_out(const HardwareSpec& hw, const NamedRates& rates, std::vector<HwChannel>& out) {
  for (std::size_t t = 1; t < hw.network.size(); ++t) {
    if (!publishes_tier(hw, t)) continue;
    const Tier& tier = hw.network[t];
    out.push_back({channel_name(tier), fmt::format("{}, one chip's share", tier.name), chip_egress(hw, t)});
  }
  if (!hw.is_torus() && hw.network.size() > 1 && hw.publishes("network")) {
    out.push_back({"node_egress", "a whole node's egress", rates.node_egress()});
  }
}

std::vector<HwChannel> channels_of(const HardwareSpec& hw) {
  const NamedRates rates(hw);
  std::vector<HwChannel> out;
  if (hw.publishes("hbm.bandwidth")) out.push_back({"hbm", "memory", rates.hbm()});
  for (const MemoryLevel& level : hw.onchip.levels) {
    const auto rate = rates.onchip(level.name);
    if (rate) out.push_back({std::string(level.name), std::string(level.name), *rate});
  }
  if (!hw.network.empty()) {
    add_scale_up(hw, rates, out);
    add_scale_out(hw, rates, out);
  }
  if (hw.pcie_bandwidth) out.push_back({std::string(kHostLink), "host link", rates.pcie()});
  if (hw.offload && hw.offload->bandwidth) {
    out.push_back({"offload", "memory beside the chip",
                   read(kReader, *hw.offload->bandwidth, "hw.offload.bandwidth", hw.offload->source)});
  }
  return out;
}

template <class Rates>
std::vector<std::pair<DType, TracedRate>> listed(const Rates& rates, const char* path, const std::string& source) {
  std::vector<std::pair<DType, TracedRate>> out;
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    if (!rates[i]) continue;
    out.emplace_back(static_cast<DType>(i),
                     read(kReader, *rates[i], fmt::format("{}.{}", path, kDTypeNames[i]), source));
  }
  return out;
}

void add_intensities(const HardwareSpec& hw, HwRates& out) {
  if (out.dtype) {
    const TracedRate peak = NamedRates(hw).matmul(*out.dtype);
    for (const HwChannel& channel : out.channels) {
      out.intensities.emplace_back(channel.name, named(peak / channel.rate, "critical intensity, " + channel.label,
                                                       "book ch. 1: C / W, FLOPs that hide a byte"));
    }
  }
  if (!hw.publishes("hbm.bandwidth")) return;
  const TracedBandwidth hbm = NamedRates(hw).hbm();
  for (const auto& [dtype, rate] : out.matmul) {
    out.hbm_intensities.emplace_back(
        dtype, named(rate / hbm, fmt::format("{} against memory", name_of(dtype)), "book ch. 1: C / W_hbm"));
  }
  for (const HwChannel& channel : out.channels) {
    if (channel.name == "hbm") continue;
    out.hbm_over.emplace_back(channel.name,
                              named(hbm / channel.rate, "memory over " + channel.label, "ratio of bandwidths"));
    if (channel.name != "l2" && channel.name != "vmem") continue;
    out.over_hbm.emplace_back(channel.name,
                              named(channel.rate / hbm, channel.label + " over memory", "ratio of bandwidths"));
  }
}

HwRates rates_of(const HardwareSpec& hw, std::optional<DType> dtype) {
  HwRates out;
  if (dtype) NamedRates(hw).matmul(*dtype);  // refuses a format without a rate
  out.dtype = dtype ? dtype : usual_dtype(hw);
  out.matmul = listed(hw.matmul_peak, "hw.compute.matmul", hw.compute_source);
  out.vector = listed(hw.vector_rates, "hw.compute.vector", hw.compute_source);
  out.channels = channels_of(hw);
  if (hw.units.cores > 0) {
    const Traced cores = kReader.input(static_cast<double>(hw.units.cores), "hw.units.cores", hw.units.source);
    for (const auto& [type, rate] : out.matmul) {
      out.matmul_per_core.emplace_back(
          type, named(rate / cores, fmt::format("{} matmul of one core", name_of(type)), "the chip's over its cores"));
    }
  }
  if (out.dtype && hw.vector_peak) {
    const NamedRates chip(hw);
    out.matmul_over_vector =
        named(chip.matmul(*out.dtype) / chip.vector(), "matmul over vector rate", "book ch. 2, appendix A, and ch. 12");
  }
  if (hw.vector_counts_fma) {
    for (const auto& [type, rate] : out.vector) {
      out.vector_without_fma.emplace_back(
          type, named(rate * Traced(vector_ceiling(hw, VectorWork::kOthers)), fmt::format("{} adds", name_of(type)),
                      "a fused multiply-add counts as two"));
    }
  }
  add_intensities(hw, out);
  if (const Price* price = hw.default_price()) {
    const Traced usd = kReader.input(price->usd_per_chip_hour, "hw.prices.0.usd_per_chip_hour", price->source);
    for (const auto& [type, rate] : out.matmul) {
      out.flops_per_usd.emplace_back(
          type, named(rate.value() * Traced(3600.0) / usd, fmt::format("{} FLOPs per dollar", name_of(type)),
                      "book ch. 6: C x 3600 / price"));
    }
  }
  return out;
}

// A chip's rates from its clocks and units. Scaling book, chapter 2 (MXU, appendix A for the VPU) and chapter 12 (SMs,
// tensor cores, registers).

using Frequency = Quantity<Dim{} - kSecondDim, Traced>;

class Units {
 public:
  explicit Units(const HardwareSpec& hw) : hw_(hw), units_(hw.units) {}

  HwUnits run(std::optional<std::int64_t> registers_per_thread) {
    if (units_.mxu) mxu(*units_.mxu);
    if (units_.vpu) vpu(*units_.vpu);
    if (registers_per_thread && !units_.sm) {
      throw UserError(fmt::format("--registers has no meaning: {} has no multiprocessors that share them", hw_.name),
                      "leave it out");
    }
    if (units_.sm) {
      lanes(*units_.sm);
      tensor_cores(*units_.sm);
      registers(*units_.sm, registers_per_thread);
    }
    return std::move(out_);
  }

 private:
  Traced count(std::int64_t value, const char* path) const {
    return kReader.input(static_cast<double>(value), path, units_.source);
  }
  Traced cores() const { return count(units_.cores, "hw.units.cores"); }
  Frequency clock(const std::optional<Hertz>& value, const char* path) const {
    return read(kReader, *value, path, units_.source);
  }
  Frequency matmul_clock() const {
    return clock(units_.clock.of_matmuls(), units_.clock.tensor  ? "hw.units.clock.tensor"
                                            : units_.clock.boost ? "hw.units.clock.boost"
                                                                 : "hw.units.clock.base");
  }
  Frequency vector_clock() const {
    return clock(units_.clock.of_vectors(), units_.clock.boost ? "hw.units.clock.boost" : "hw.units.clock.base");
  }

  /// The data sheet's rate in a 16-bit format.
  Maybe<TracedRate> sheet() const {
    for (const DType dtype : {DType::kBf16, DType::kFp16}) {
      if (const auto& peak = hw_.matmul_peak[static_cast<std::size_t>(dtype)]) {
        return read(kReader, *peak, "hw.compute.matmul." + std::string(name_of(dtype)), hw_.compute_source);
      }
    }
    return std::nullopt;
  }

  void mxu(const MxuUnits& unit) {
    const Traced dim = count(unit.dim, "hw.units.mxu.dim");
    out_.mxu_alus = named(dim * dim, "multiply-accumulators of a matrix unit", "book ch. 2, appendix B: dim x dim");
    if (unit.cycles == 0) return;
    const Traced rows = count(unit.rows, "hw.units.mxu.rows");
    const Traced cycles = count(unit.cycles, "hw.units.mxu.cycles");
    out_.mxu_flops = named(TracedFlops(Traced(2.0) * rows * dim * dim / cycles), "FLOPs of a matrix unit and cycle",
                           "book ch. 2: [rows, dim] x [dim, dim] in so many cycles");
    if (!units_.clock.of_matmuls()) return;
    out_.mxu_rate = named(*out_.mxu_flops * matmul_clock(), "rate of a matrix unit", "FLOPs of a cycle x clock");
    if (unit.per_core == 0) return;
    out_.mxu_chip_rate = named(*out_.mxu_rate * (count(unit.per_core, "hw.units.mxu.per_core") * cores()),
                               "rate of all matrix units", "x units of a core x cores");
    if (const auto peak = sheet()) {
      out_.mxu_over_sheet = named(*out_.mxu_chip_rate / *peak, "matrix units over data sheet", "a check of the file");
    }
  }

  void vpu(const VpuUnits& unit) {
    const Traced lanes = count(unit.lanes, "hw.units.vpu.lanes") * count(unit.sublanes, "hw.units.vpu.sublanes");
    if (unit.registers > 0) {
      const TracedBytes element = read(kReader, unit.register_element, "hw.units.vpu.register_element", units_.source);
      out_.vpu_registers = named(element * (count(unit.registers, "hw.units.vpu.registers") * lanes),
                                 "vector registers of a core", "book ch. 2, appendix A: registers of lanes x sublanes");
    }
    if (unit.alus == 0) return;
    out_.vpu_flops = named(TracedFlops(lanes * count(unit.alus, "hw.units.vpu.alus")),
                           "vector FLOPs of a core and cycle", "book ch. 2, appendix A: lanes x sublanes x ALUs");
    if (!units_.clock.of_vectors()) return;
    out_.vpu_rate = named(*out_.vpu_flops * vector_clock(), "vector rate of a core", "FLOPs of a cycle x clock");
    out_.vpu_chip_rate = named(*out_.vpu_rate * cores(), "vector rate of the chip", "x cores");
    if (const auto peak = sheet()) {
      out_.matmul_over_vpu =
          named(*peak / cores() / *out_.vpu_rate, "matmul over vector rate of a core", "book ch. 2, appendix A");
    }
  }

  void lanes(const SmUnits& sm) {
    if (sm.subpartitions == 0) return;
    const Traced units = count(sm.count, "hw.units.sm.count") * count(sm.subpartitions, "hw.units.sm.subpartitions");
    out_.simd_units = named(units, "SIMD units", "book ch. 12: SMs x subpartitions");
    if (sm.fp32_lanes == 0) return;
    out_.fp32_lanes = named(*out_.simd_units * count(sm.fp32_lanes, "hw.units.sm.fp32_lanes"), "fp32 lanes",
                            "book ch. 12: x lanes of a subpartition");
    out_.fp32_flops = named(TracedFlops(Traced(2.0) * *out_.fp32_lanes), "fp32 FLOPs of the chip and cycle",
                            "a fused multiply-add counts as two");
    if (units_.clock.of_vectors()) {
      out_.fp32_rate = named(*out_.fp32_flops * vector_clock(), "fp32 rate of all lanes", "FLOPs of a cycle x clock");
    }
    if (const auto& peak = hw_.vector_rates[static_cast<std::size_t>(DType::kFp32)]) {
      const TracedRate published = read(kReader, *peak, "hw.compute.vector", hw_.compute_source);
      out_.implied_clock = named(published / *out_.fp32_flops, "clock behind the published fp32 rate",
                                 "book ch. 12, quiz 1: rate / FLOPs of a cycle");
    }
  }

  void tensor_cores(const SmUnits& sm) {
    if (sm.tensor_cores == 0 || !units_.clock.of_matmuls()) return;
    const Traced cores = count(sm.count, "hw.units.sm.count") * count(sm.tensor_cores, "hw.units.sm.tensor_cores");
    const auto peak = sheet();
    if (peak) {
      out_.implied_tensor_flops = named(*peak / cores / matmul_clock(), "FLOPs of a tensor core and cycle, implied",
                                        "book ch. 12: C / (SMs x tensor cores x clock)");
    }
    if (sm.tensor_flops.value() == 0) return;
    out_.tensor_rate =
        named(read(kReader, sm.tensor_flops, "hw.units.sm.tensor_flops", units_.source) * cores * matmul_clock(),
              "rate of all tensor cores", "FLOPs of a tensor core and cycle x tensor cores x clock");
    if (peak) {
      out_.tensor_over_sheet = named(*out_.tensor_rate / *peak, "tensor cores over data sheet", "a check of the file");
    }
  }

  void registers(const SmUnits& sm, std::optional<std::int64_t> per_thread) {
    if (sm.registers == 0 || sm.subpartitions == 0) return;
    const TracedBytes element = read(kReader, sm.register_element, "hw.units.sm.register_element", units_.source);
    const Traced all =
        count(sm.subpartitions, "hw.units.sm.subpartitions") * count(sm.registers, "hw.units.sm.registers");
    out_.registers_per_sm = named(element * all, "register file of an SM", "book ch. 12: subpartitions x registers");
    if (!per_thread || sm.warp == 0) return;
    const Traced threads = count(sm.warp, "hw.units.sm.warp");
    const Traced each = kReader.input(static_cast<double>(*per_thread), "registers of a thread", "--registers");
    out_.warps_per_sm = named(*out_.registers_per_sm / (element * (threads * each)), "warps resident in an SM",
                              "book ch. 12: register file / (registers of a thread x threads of a warp)");
  }

  const HardwareSpec& hw_;
  const ChipUnits& units_;
  HwUnits out_;
};

HwUnits units_of(const HardwareSpec& hw, std::optional<std::int64_t> registers_per_thread) {
  return Units(hw).run(registers_per_thread);
}

std::vector<HwMemoryLevel> onchip_of(const HardwareSpec& hw, const HwUnits& units) {
  std::vector<HwMemoryLevel> out;
  const auto owners = [&](MemoryOwner owner) {
    const std::int64_t n = owner == MemoryOwner::kSm ? hw.units.sm->count : hw.units.cores;
    return kReader.input(static_cast<double>(n), owner == MemoryOwner::kSm ? "hw.units.sm.count" : "hw.units.cores",
                         hw.units.source);
  };
  const auto add_total = [&](HwMemoryLevel& level, MemoryOwner owner) {
    level.total = named(*level.one * owners(owner), level.name + " of the chip", "x cores or SMs");
  };
  for (const MemoryLevel& level : hw.onchip.levels) {
    HwMemoryLevel found{.name = std::string(level.name)};
    const std::string path = "hw.onchip." + found.name;
    if (level.capacity) {
      const TracedBytes capacity = read(kReader, *level.capacity, path + ".capacity", hw.onchip.source);
      if (level.per == MemoryOwner::kChip) {
        found.total = capacity;
      } else {
        found.one = capacity;
        add_total(found, level.per);
      }
    }
    found.bandwidth = NamedRates(hw).onchip(level.name);
    out.push_back(std::move(found));
  }
  // The register file follows from the units unless the file gives it.
  if (hw.onchip.find("registers") != nullptr) return out;
  HwMemoryLevel registers{.name = "registers"};
  if (units.registers_per_sm) {
    registers.one = units.registers_per_sm;
    add_total(registers, MemoryOwner::kSm);
  } else if (units.vpu_registers) {
    registers.one = units.vpu_registers;
    add_total(registers, MemoryOwner::kCore);
  } else {
    return out;
  }
  out.push_back(std::move(registers));
  return out;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

bool same(const std::string& a, const std::string& b) { return lower(a) == lower(b); }

bool of_the_book(const std::string& name) { return name.starts_with("book/"); }

/// A word that no chip has is a mistyped one.
void check_known(const char* flag, const std::optional<std::string>& word, const std::vector<HardwareSpec>& chips,
                 std::string HardwareSpec::*field) {
  if (!word) return;
  std::set<std::string> known;
  for (const HardwareSpec& hw : chips) known.insert(hw.*field);
  known.erase("");
  const std::vector<std::string> words(known.begin(), known.end());
  if (std::any_of(words.begin(), words.end(), [&](const std::string& other) { return same(other, *word); })) return;
  std::string hint = did_you_mean(nearest(*word, words));
  if (!hint.empty()) hint += ' ';
  throw UserError(fmt::format("no chip has {} {}", flag, in_quotes(*word)), hint + "known: " + join(words, ", "));
}

bool has_word(const HardwareSpec& hw, const std::string& word) {
  return contains_in_any_case(hw.name + ' ' + hw.title + ' ' + hw.vendor, word);
}

void check_words(const std::vector<std::string>& words, const std::vector<HardwareSpec>& chips) {
  for (const std::string& word : words) {
    if (std::any_of(chips.begin(), chips.end(), [&](const HardwareSpec& hw) { return has_word(hw, word); })) continue;
    throw UserError(fmt::format("no chip has {} in its name, title or vendor", in_quotes(word)),
                    "scalecalc hw list shows all of them");
  }
}

bool meets(const HardwareSpec& hw, const HwListQuestion& q) {
  if (q.book != of_the_book(hw.name)) return false;
  if (!std::all_of(q.words.begin(), q.words.end(), [&](const std::string& word) { return has_word(hw, word); })) {
    return false;
  }
  if (q.vendor && !same(hw.vendor, *q.vendor)) return false;
  if (q.family && !same(hw.family, *q.family)) return false;
  if (q.since && hw.year < *q.since) return false;
  if (q.dtype && !hw.matmul_peak[static_cast<std::size_t>(*q.dtype)]) return false;
  if (q.min_memory && hw.hbm_capacity < *q.min_memory) return false;
  if (q.min_bandwidth && hw.hbm_bandwidth < *q.min_bandwidth) return false;
  if (q.priced && hw.prices.empty()) return false;
  return !(q.sold && hw.announced);
}

/// Larger comes first, but names, and prices of which the lower does; what is not published comes last.
double rank(const HardwareSpec& hw, const HwListQuestion& q) {
  constexpr double kLast = 1e300;
  switch (q.order) {
    case HwOrder::kName: return 0;
    case HwOrder::kYear: return -static_cast<double>(hw.year);
    case HwOrder::kMatmul: {
      const auto rate = compared_rate(hw, q.dtype);
      return rate ? -rate->value() : kLast;
    }
    case HwOrder::kMemory: return -hw.hbm_capacity.value();
    case HwOrder::kBandwidth: return -hw.hbm_bandwidth.value();
    case HwOrder::kPrice: return hw.default_price() == nullptr ? kLast : hw.default_price()->usd_per_chip_hour;
  }
  return 0;
}

/// Sets of the chip at `position` (from 1): those for all of them and those for it alone.
std::vector<std::string> sets_for(const HwQuestion& q, std::size_t position) {
  std::vector<std::string> out;
  for (const std::string& set : q.set) {
    const std::string scope = set.substr(0, set.find('.'));
    std::size_t other = 0;
    const char* end = scope.data() + scope.size();
    const bool numbered =
        scope.size() > 2 && scope.starts_with("hw") && std::from_chars(scope.data() + 2, end, other).ptr == end;
    if (numbered && (other == 0 || other > q.hardware.size())) {
      throw UserError(
          fmt::format("--set {}: there is no chip {}", set, scope),
          fmt::format("hw1 to hw{} are the chips in the order given; hw is all of them", q.hardware.size()));
    }
    if (!numbered || other == position) out.push_back(set);
  }
  return out;
}

HardwareSpec hardware_at(const HwQuestion& q, std::size_t position, const Catalog& catalog) {
  ConfigNode document = catalog.load(CatalogKind::kHardware, q.hardware[position - 1]);
  const std::string own = fmt::format("hw{}", position);
  apply_sets(sets_for(q, position), {{"hw", &document}, {own, &document}});
  return load_hardware(document, catalog, Unpublished::kAllowed);
}

HwChip chip_of(const HwQuestion& q, HardwareSpec hw, std::vector<Assumption>& assumptions) {
  HwChip out;
  out.hw = std::move(hw);
  out.rates = rates_of(out.hw, q.dtype);
  out.units = units_of(out.hw, q.registers_per_thread);
  out.onchip = onchip_of(out.hw, out.units);
  const auto total_of = [&](std::string_view name) -> Maybe<TracedBytes> {
    for (const HwMemoryLevel& level : out.onchip) {
      if (level.name == name && level.one) return level.total;
    }
    return std::nullopt;
  };
  if (const auto smem = total_of("smem"), registers = total_of("registers"); smem && registers) {
    out.registers_and_smem =
        named(*smem + *registers, "register files and shared memory", "book ch. 12, quiz 1: of all SMs");
  }
  out.slice = slice_of(out.hw, q, assumptions);
  switches_of(q, out);
  if (q.send) out.send = send_of(out.hw, q, out.slice, assumptions);
  if (q.load) out.load = load_of(out.hw, q, out.slice, assumptions);
  if (q.weight) out.padding = padding_of(out.hw, q.weight->first, q.weight->second);
  return out;
}

/// What one would otherwise miss: the file says so, and so does the answer.
void note_gaps(const HardwareSpec& hw, std::vector<Assumption>& assumptions) {
  for (const UnpublishedFigure& figure : hw.unpublished) {
    assumptions.push_back(
        Assumption{fmt::format("{} leaves {} unpublished: what follows from it is left out", hw.name, figure.path),
                   figure.flag, "hardware file", true}
            .as("hw." + figure.path));
    assumptions.back().of = hw.name;
  }
  if (hw.announced) {
    assumptions.push_back(
        Assumption{fmt::format("{} is announced, not sold: its figures are the vendor's plans", hw.name), "",
                   "hardware file", true}
            .as("announced")
            .is(hw.name));
  }
}

}  // namespace

std::optional<FlopsPerSecond> compared_rate(const HardwareSpec& hw, std::optional<DType> dtype) {
  if (dtype) return hw.matmul_peak[static_cast<std::size_t>(*dtype)];
  const auto& bf16 = hw.matmul_peak[static_cast<std::size_t>(DType::kBf16)];
  return bf16 ? bf16 : hw.matmul_peak[static_cast<std::size_t>(DType::kFp16)];
}

HwList list_hardware(const HwListQuestion& question, const Catalog& catalog) {
  std::vector<HardwareSpec> all;
  const std::vector<std::string> names = catalog.names(CatalogKind::kHardware);
  all.reserve(names.size());
  for (const std::string& name : names) {
    all.push_back(load_data_sheet(catalog.load(CatalogKind::kHardware, name)));
  }
  check_words(question.words, all);
  check_known("--vendor", question.vendor, all, &HardwareSpec::vendor);
  check_known("--family", question.family, all, &HardwareSpec::family);
  HwList out{.question = question};
  std::erase_if(all, [&](const HardwareSpec& hw) {
    const bool listed = meets(hw, question);
    if (!listed && of_the_book(hw.name) == question.book) ++out.left_out;
    return !listed;
  });
  out.chips = std::move(all);
  const auto before = [&](const HardwareSpec& a, const HardwareSpec& b) {
    return rank(a, question) < rank(b, question);
  };
  if (!std::is_sorted(out.chips.begin(), out.chips.end(), before)) {  // as names are, and moving chips is not cheap
    std::stable_sort(out.chips.begin(), out.chips.end(), before);
  }
  return out;
}

HwAnswer answer(const HwQuestion& question, const Catalog& catalog) {
  HwAnswer out{.question = question};
  for (std::size_t i = 1; i <= question.hardware.size(); ++i) {
    HardwareSpec hw = hardware_at(question, i, catalog);
    note_gaps(hw, out.assumptions);
    out.chips.push_back(chip_of(question, std::move(hw), out.assumptions));
  }
  return out;
}

}  // namespace scalecalc
