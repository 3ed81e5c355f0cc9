// Reads the compute units and on-chip memories of a hardware file.
#include <fmt/format.h>

#include "base/text.h"
#include "spec/hardware_reading.h"

namespace scalecalc {
namespace {

std::optional<Hertz> frequency(Fields& fields, std::string_view key) {
  const auto value = fields.optional_quantity(key, UnitKind::kHertz);
  return value ? std::optional(Hertz(*value)) : std::nullopt;
}

/// How many registers there are and how wide an element is: both or neither.
void load_registers(Fields& fields, std::int64_t& registers, Bytes& element) {
  registers = fields.optional_count("registers").value_or(0);
  element = Bytes(fields.optional_quantity("register_element", UnitKind::kBytes).value_or(0));
  if ((registers > 0) != (element.value() > 0)) {
    fields.problems().add(
        fields.span(), fmt::format("{} gives one of registers and register_element without the other", fields.what()));
  }
}

Clocks load_clocks(const ConfigNode* node, Problems& problems) {
  Clocks out;
  if (node == nullptr) return out;
  Fields fields(*node, "units.clock", problems);
  out.base = frequency(fields, "base");
  out.boost = frequency(fields, "boost");
  out.tensor = frequency(fields, "tensor");
  fields.finish();
  return out;
}

MxuUnits load_mxu(const ConfigNode& node, Problems& problems) {
  Fields fields(node, "units.mxu", problems);
  MxuUnits out{.dim = fields.count("dim"),
               .per_core = fields.optional_count("per_core").value_or(0),
               .rows = fields.optional_count("rows").value_or(0),
               .cycles = fields.optional_count("cycles").value_or(0)};
  if ((out.rows > 0) != (out.cycles > 0)) {
    problems.add(node.span, "units.mxu gives one of rows and cycles without the other");
  }
  fields.finish();
  return out;
}

VpuUnits load_vpu(const ConfigNode& node, Problems& problems) {
  Fields fields(node, "units.vpu", problems);
  VpuUnits out{.lanes = fields.count("lanes"),
               .sublanes = fields.count("sublanes"),
               .alus = fields.optional_count("alus").value_or(0)};
  load_registers(fields, out.registers, out.register_element);
  fields.finish();
  return out;
}

SmUnits load_sm(const ConfigNode& node, const char* word, Problems& problems) {
  Fields fields(node, fmt::format("units.{}", word), problems);
  SmUnits out;
  out.word = word == std::string_view("cu") ? "CU" : "SM";
  out.count = fields.count("count");
  out.subpartitions = fields.optional_count("subpartitions").value_or(0);
  out.fp32_lanes = fields.optional_count("fp32_lanes").value_or(0);
  out.tensor_cores = fields.optional_count("tensor_cores").value_or(0);
  out.tensor_flops = Flops(static_cast<double>(fields.optional_count("tensor_flops").value_or(0)));
  out.warp = fields.optional_count("warp").value_or(0);
  load_registers(fields, out.registers, out.register_element);
  if (out.fp32_lanes > 0 && out.subpartitions == 0) {
    problems.add(node.span, fmt::format("{} gives fp32_lanes, which are counted per subpartition, and no subpartitions",
                                        fields.what()));
  }
  fields.finish();
  return out;
}

MemoryLevel load_level(const ConfigNode& node, std::string_view name, const HardwareReading& in) {
  Fields fields(node, fmt::format("onchip.{}", name), in.problems);
  MemoryLevel out{.name = name};
  constexpr MemoryOwner kOwners[] = {MemoryOwner::kChip, MemoryOwner::kCore, MemoryOwner::kSm};
  out.per = kOwners[fields.optional_word("per", {"chip", "core", "sm"}).value_or(0)];
  if (const auto bytes = fields.optional_quantity("capacity", UnitKind::kBytes)) out.capacity = Bytes(*bytes);
  if (const auto rate = fields.optional_quantity("bandwidth", UnitKind::kBytesPerSecond)) {
    out.bandwidth = BytesPerSecond(*rate);
  }
  if (const auto times = fields.optional_quantity("bandwidth_over_hbm", UnitKind::kNumber)) {
    if (out.bandwidth) {
      in.problems.add(node.span, fmt::format("{} gives both bandwidth and bandwidth_over_hbm", fields.what()));
    }
    if (!in.hw.publishes("hbm.bandwidth")) {
      in.problems.add(node.span,
                      fmt::format("{} gives bandwidth_over_hbm, and hbm.bandwidth is unpublished", fields.what()));
    }
    out.bandwidth = in.hw.hbm_bandwidth * *times;
    out.over_hbm = *times;
  }
  const bool has_owner = out.per == MemoryOwner::kChip ||
                         (out.per == MemoryOwner::kCore ? in.hw.units.cores > 0 : in.hw.units.sm.has_value());
  if (!has_owner) {
    in.problems.add(node.span, fmt::format("{} is per {}, and units says not how many the chip has", fields.what(),
                                           out.per == MemoryOwner::kCore ? "core" : "sm"));
  }
  fields.finish();
  return out;
}

}  // namespace

const MemoryLevel* OnChipMemory::find(std::string_view name) const {
  for (const MemoryLevel& level : levels) {
    if (level.name == name) return &level;
  }
  return nullptr;
}

void load_units(const ConfigNode* node, const HardwareReading& in) {
  if (node == nullptr) return;
  Fields fields(*node, "units", in.problems);
  ChipUnits& out = in.hw.units;
  out.cores = fields.optional_count("cores").value_or(0);
  out.clock = load_clocks(fields.node("clock"), in.problems);
  if (const ConfigNode* mxu = fields.node("mxu")) out.mxu = load_mxu(*mxu, in.problems);
  if (const ConfigNode* vpu = fields.node("vpu")) out.vpu = load_vpu(*vpu, in.problems);
  for (const char* word : {"sm", "cu"}) {
    const ConfigNode* sm = fields.node(word);
    if (sm == nullptr) continue;
    if (out.sm) in.problems.add(sm->span, "units gives both sm and cu: they are two vendors' words for one thing");
    out.sm = load_sm(*sm, word, in.problems);
  }
  if ((out.mxu || out.vpu) && out.cores == 0) {
    in.problems.add(node->span, "units gives mxu or vpu, which are counted per core, and no cores");
  }
  out.source = in.source(fields);
  fields.optional_text("note");
  fields.finish();
}

void load_onchip(const ConfigNode* node, const HardwareReading& in) {
  if (node == nullptr) return;
  Fields fields(*node, "onchip", in.problems);
  for (const std::string_view name : kMemoryLevels) {
    if (const ConfigNode* level = fields.node(name)) in.hw.onchip.levels.push_back(load_level(*level, name, in));
  }
  in.hw.onchip.source = in.source(fields);
  fields.optional_text("note");
  fields.finish();
}

}  // namespace scalecalc
