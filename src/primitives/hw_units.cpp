// A chip's rates from its clocks and units. Scaling book, chapter 2 (MXU, appendix A for the VPU) and chapter 12 (SMs,
// tensor cores, registers).
#include "base/scalar.h"
#include "primitives/hw.h"

namespace scalecalc {
namespace {

using Frequency = Quantity<Dim{} - kSecondDim, Traced>;

class Units {
 public:
  explicit Units(const HardwareSpec& hw) : hw_(hw), units_(hw.units) {}

  HwUnits run(std::optional<std::int64_t> registers_per_thread) {
    if (units_.mxu) mxu(*units_.mxu);
    if (units_.vpu) vpu(*units_.vpu);
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

}  // namespace

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
    if (level.bandwidth) found.bandwidth = read(kReader, *level.bandwidth, path + ".bandwidth", hw.onchip.source);
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

}  // namespace scalecalc
