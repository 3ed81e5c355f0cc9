// What a hardware file can say beyond rates: units, on-chip memories, cables, and that a source gives no figure.
#include <gtest/gtest.h>

#include "config/yaml_reader.h"
#include "network/slice.h"
#include "spec/load.h"

namespace scalecalc {
namespace {

constexpr const char* kHead =
    "schema: scalecalc-hardware/1\nname: h\ntitle: H\nfamily: nvidia\nsources: {x: a data sheet}\n";
constexpr const char* kCompute = "compute: {matmul: {bf16: 100TFLOP/s}, source: [x]}\n";
constexpr const char* kHbm = "hbm: {capacity: 80GB, bandwidth: 3TB/s, source: [x]}\n";
constexpr const char* kHost = "host: {chips: 8, source: [x]}\n";
constexpr const char* kNetwork =
    "network: [{tier: node, kind: switched, chips: 8, bandwidth_per_chip: 400GB/s, latency: 10us, source: [x]}]\n";

std::string file(const std::string& rest) { return kHead + rest; }
std::string with(const std::string& rest) { return file(std::string(kCompute) + kHbm + kHost + kNetwork + rest); }

HardwareSpec load(const std::string& yaml, const std::vector<std::string>& sets = {},
                  Unpublished unpublished = Unpublished::kRefused) {
  ConfigNode document = read_yaml(yaml, "h.yaml");
  for (const std::string& set : sets) {
    const std::size_t equals = set.find('=');
    apply_override(document, set.substr(0, equals), set.substr(equals + 1), "--set hw." + set);
  }
  return load_hardware(document, Catalog(), unpublished);
}

std::string errors(const std::string& yaml, const std::vector<std::string>& sets = {}) {
  try {
    load(yaml, sets);
    return "";
  } catch (const UserError& e) {
    std::string out;
    for (const Diagnostic& d : e.diagnostics()) out += d.message + (d.hint.empty() ? "" : " | " + d.hint) + "\n";
    return out;
  }
}

// ---------------------------------------------------------------- power

TEST(HardwarePower, OfChipsAndTheirHost) {
  const HardwareSpec hw =
      load(with("power: {tdp: 700W, idle: 70W, host: 10.2kW, host_measured: 8.4kW, source: [x]}\n"));
  EXPECT_EQ(hw.tdp->value(), 700);
  EXPECT_EQ(hw.idle_power->value(), 70);
  EXPECT_EQ(hw.host_power->value(), 10200);
  EXPECT_EQ(hw.host_power_measured->value(), 8400);
  EXPECT_FALSE(load(with("power: {tdp: 700W, source: [x]}\n")).host_power);
  EXPECT_NE(errors(with("power: {tdp: 700W, hots: 10kW, source: [x]}\n")), "");
}

// ---------------------------------------------------------------- units and on-chip memory

TEST(HardwareUnits, AreReadAsWritten) {
  const HardwareSpec hw =
      load(with("units:\n  cores: 2\n  clock: {base: 1.5GHz, boost: 1980MHz}\n"
                "  mxu: {dim: 128, per_core: 4, rows: 8, cycles: 8}\n"
                "  vpu: {lanes: 128, sublanes: 8, alus: 4, registers: 64, register_element: 4B}\n"
                "  sm: {count: 132, subpartitions: 4, fp32_lanes: 32, tensor_cores: 4, tensor_flops: 1024, warp: 32}\n"
                "  source: [x]\n"));
  EXPECT_EQ(hw.units.cores, 2);
  EXPECT_DOUBLE_EQ(hw.units.clock.base->value(), 1.5e9);
  EXPECT_DOUBLE_EQ(hw.units.clock.of_vectors()->value(), 1.98e9) << "the highest clock given";
  EXPECT_DOUBLE_EQ(hw.units.clock.of_matmuls()->value(), 1.98e9) << "no tensor clock given";
  EXPECT_EQ(hw.units.mxu->dim, 128);
  EXPECT_EQ(hw.units.vpu->registers, 64);
  EXPECT_EQ(hw.units.sm->count, 132);
  EXPECT_EQ(hw.units.sm->word, "SM");
  EXPECT_EQ(hw.units.source, "a data sheet");
}

TEST(HardwareUnits, AFrequencyNeedsItsUnit) {
  EXPECT_EQ(errors(with("units: {clock: {base: 1410}, source: [x]}\n")),
            "'base': '1410' is not a frequency: the unit is missing | accepted: 1.75GHz, 1410MHz\n");
}

TEST(HardwareUnits, WhatIsCountedPerSomethingNeedsTheSomething) {
  EXPECT_EQ(errors(with("units: {mxu: {dim: 128}, source: [x]}\n")),
            "units gives mxu or vpu, which are counted per core, and no cores\n");
  EXPECT_EQ(errors(with("units: {sm: {count: 8, fp32_lanes: 32}, source: [x]}\n")),
            "units.sm gives fp32_lanes, which are counted per subpartition, and no subpartitions\n");
  EXPECT_EQ(errors(with("units: {cores: 1, vpu: {lanes: 8, sublanes: 8, alus: 1, registers: 4}, source: [x]}\n")),
            "units.vpu gives one of registers and register_element without the other\n");
  EXPECT_EQ(errors(with("units: {sm: {count: 8}, cu: {count: 8}, source: [x]}\n")),
            "units gives both sm and cu: they are two vendors' words for one thing\n");
  EXPECT_EQ(errors(with("onchip: {smem: {capacity: 256kB, per: sm}, source: [x]}\n")),
            "onchip.smem is per sm, and units says not how many the chip has\n");
}

TEST(OnChipMemory, MayStateItsBandwidthInTimesOfHbm) {
  const HardwareSpec hw =
      load(with("onchip: {vmem: {capacity: 128MiB, bandwidth_over_hbm: 22}, l2: {capacity: 50MB}, source: [x]}\n"));
  EXPECT_DOUBLE_EQ(hw.onchip.find("vmem")->bandwidth->value(), 66e12);
  EXPECT_FALSE(hw.onchip.find("l2")->bandwidth.has_value());
  EXPECT_EQ(hw.onchip.find("tmem"), nullptr);
  EXPECT_EQ(errors(with("onchip: {l4: {capacity: 1MB}, source: [x]}\n")).substr(0, 27), "unknown key 'l4' in onchip ");
}

/// SRAM, HBM and what offload: says are the three a machine may have; another is refused by name.
TEST(MemoryTiers, AreThoseTheSchemaKnows) {
  const std::string another = with("ddr: {capacity: 1.5TB, bandwidth: 200GB/s, source: [x]}\n");
  EXPECT_NE(errors(another).find("unknown key 'ddr' in hardware"), std::string::npos) << errors(another);
  const std::string kind = file(std::string(kCompute) +
                                "hbm: {kind: ddr, capacity: 80GB, bandwidth: 3TB/s, source: [x]}\n" + kHost + kNetwork);
  EXPECT_NE(errors(kind).find("'kind' is 'ddr'; it must be one of hbm, gddr, lpddr, sram"), std::string::npos)
      << errors(kind);
  EXPECT_EQ(errors(with("onchip: {sram: {capacity: 520MiB}, source: [x]}\n"
                        "offload: {capacity: 1.5TB, bandwidth: 200GB/s, source: [x]}\n")),
            "");
}

TEST(VectorRates, AreOneRateOrAMapByFormat) {
  const auto rate = [](const HardwareSpec& hw, DType dtype) {
    return hw.vector_rates[static_cast<std::size_t>(dtype)];
  };
  const HardwareSpec one =
      load(file("compute: {matmul: {bf16: 1TFLOP/s}, vector: 60TFLOP/s, vector_fma: true, source: [x]}\n" +
                std::string(kHbm) + kHost + kNetwork));
  EXPECT_DOUBLE_EQ(rate(one, DType::kFp32)->value(), 60e12);
  EXPECT_TRUE(one.vector_counts_fma);
  const HardwareSpec map =
      load(file("compute: {matmul: {bf16: 1TFLOP/s}, vector: {bf16: 11TFLOP/s, fp16: 12TFLOP/s}, source: [x]}\n" +
                std::string(kHbm) + kHost + kNetwork));
  EXPECT_DOUBLE_EQ(map.vector_peak->value(), 11e12) << "no fp32 rate: the widest format's";
  EXPECT_FALSE(rate(map, DType::kFp32).has_value());
}

// ---------------------------------------------------------------- cables

constexpr const char* kPorts =
    "network: [{tier: node, kind: switched, chips: 8, ports: 18, port_bandwidth: 25GB/s, switches: 4, switch_ports: "
    "64, latency: 10us, source: [x]},\n  {tier: leaf, kind: switched, chips: 256, ports_per_host: 8, port_bandwidth: "
    "400Gbps, latency: 20us, source: [x]}]\n";

std::string cabled(const std::string& network) { return file(std::string(kCompute) + kHbm + kHost + network); }

TEST(Cabling, TheRateFollowsFromThePorts) {
  const HardwareSpec hw = load(cabled(kPorts));
  EXPECT_DOUBLE_EQ(hw.network[0].switched.bandwidth_per_chip.value(), 450e9);
  EXPECT_DOUBLE_EQ(hw.network[1].switched.bandwidth_per_chip.value(), 50e9) << "eight cables for eight chips";
  EXPECT_EQ(hw.network[0].switched.cabling.switch_ports, 64);
  const HardwareSpec small = load(cabled(kPorts), {"host.chips=4", "network.0.ports=12"});
  EXPECT_DOUBLE_EQ(small.network[0].switched.bandwidth_per_chip.value(), 300e9);
  EXPECT_DOUBLE_EQ(small.network[1].switched.bandwidth_per_chip.value(), 100e9);
}

TEST(Cabling, AMeshSpreadsItsPortsOverThePeers) {
  const HardwareSpec hw =
      load(cabled("network: [{tier: node, kind: mesh, chips: 8, ports: 21, port_bandwidth: 100Gbps, latency: 1us, "
                  "source: [x]}]\n"));
  EXPECT_DOUBLE_EQ(hw.network[0].switched.bandwidth_per_chip.value(), 37.5e9);
}

TEST(Cabling, ARateAndPortsMustAgree) {
  const std::string both =
      "network: [{tier: node, kind: switched, chips: 8, ports: 18, port_bandwidth: 25GB/s, "
      "bandwidth_per_chip: 900GB/s, latency: 10us, source: [x]}]\n";
  EXPECT_EQ(errors(cabled(both)),
            "'bandwidth_per_chip' is 900 GB/s, but the ports carry 450 GB/s | leave 'bandwidth_per_chip' out: it "
            "follows from the ports\n");
  EXPECT_EQ(errors(cabled("network: [{tier: node, kind: switched, chips: 8, ports: 2, ports_per_host: 8, "
                          "port_bandwidth: 25GB/s, latency: 10us, source: [x]}]\n")),
            "give the ports of a chip or those of a host (ports_per_host), not both\n");
}

TEST(Cabling, ARateSetByHandMovesThePorts) {
  const HardwareSpec hw = load(cabled(kPorts), {"network.0.bandwidth_per_chip=900GB/s"});
  EXPECT_DOUBLE_EQ(hw.network[0].switched.bandwidth_per_chip.value(), 900e9);
  EXPECT_DOUBLE_EQ(hw.network[0].switched.cabling.port_bandwidth.value(), 50e9);
}

TEST(Cabling, ANetworkHasAtMostFourTiers) {
  std::string network = "network:\n";
  for (int i = 1; i <= 5; ++i) {
    network += "  - {tier: t" + std::to_string(i) + ", kind: switched, chips: " + std::to_string(1 << (3 * i)) +
               ", bandwidth_per_chip: 1GB/s, latency: 1us, source: [x]}\n";
  }
  EXPECT_EQ(errors(cabled(network)), "network lists 5 tiers, at most 4 are modelled\n");
}

// ---------------------------------------------------------------- what is not given

TEST(UnpublishedFigures, AreNamedToWhoNeedsThem) {
  const std::string yaml = file(
      "compute: {matmul: unpublished, source: [x]}\n"
      "hbm: {capacity: unpublished, bandwidth: 1TB/s, source: [x]}\nhost: unpublished\n" +
      std::string(kNetwork));
  EXPECT_EQ(errors(yaml),
            "h does not say: compute.matmul is unpublished, and this question needs it | give it, for example --set "
            "hw.compute.matmul.bf16=459TFLOP/s\n"
            "h does not say: hbm.capacity is unpublished, and this question needs it | give it, for example --set "
            "hw.hbm.capacity=80GB\n"
            "h does not say: host is unpublished, and this question needs it | give it, for example --set "
            "hw.host.chips=8\n");
  const HardwareSpec hw = load(yaml, {}, Unpublished::kAllowed);
  EXPECT_FALSE(hw.publishes("compute.matmul"));
  EXPECT_FALSE(hw.publishes("hbm")) << "part of it is missing";
  EXPECT_TRUE(hw.publishes("hbm.bandwidth"));
  EXPECT_TRUE(hw.publishes("network"));
  EXPECT_NO_THROW(require_published(hw, {"hbm.bandwidth", "network"}));
  EXPECT_THROW(require_published(hw, {"hbm"}), UserError);
}

TEST(UnpublishedFigures, MayBeGivenOnTheCommandLine) {
  const std::string yaml = file(
      "compute: {matmul: unpublished, source: [x]}\n"
      "hbm: {capacity: unpublished, bandwidth: 1TB/s, source: [x]}\nhost: unpublished\n" +
      std::string(kNetwork));
  const HardwareSpec hw =
      load(yaml, {"compute.matmul.bf16=1TFLOP/s", "hbm.capacity=8GB", "host.chips=8"}, Unpublished::kRefused);
  EXPECT_DOUBLE_EQ(hw.hbm_capacity.value(), 8e9);
  EXPECT_EQ(hw.host_source, "--set");
  EXPECT_TRUE(hw.unpublished.empty());
}

TEST(UnpublishedFigures, AnOmissionIsNoSuchStatement) {
  EXPECT_EQ(errors(file(std::string(kCompute) + "hbm: {bandwidth: 1TB/s, source: [x]}\n" + kHost + kNetwork)),
            "hbm has no 'capacity' | 'capacity' is a size such as 96GB, 80GiB or 512KiB\n");
}

TEST(UnpublishedFigures, ATorusMayLackItsPod) {
  const std::string network =
      "network: [{tier: ici, kind: torus, link_bandwidth: 60GB/s, hop_latency: unpublished, pod: unpublished, axes: 2, "
      "wraparound: full_axis, source: [x]}]\n";
  const HardwareSpec hw = load(cabled(network), {}, Unpublished::kAllowed);
  EXPECT_EQ(hw.network[0].torus.dimensions(), 2);
  EXPECT_TRUE(hw.network[0].torus.pod.empty());
  EXPECT_FALSE(hw.publishes("network.ici.pod"));
  EXPECT_TRUE(hw.publishes("network.ici.link_bandwidth"));
}

TEST(StandAloneChip, HasNoNetworkAndNoSecondChip) {
  const std::string yaml = file(std::string(kCompute) + kHbm + "host: {chips: 1, source: [x]}\nnetwork: none\n");
  EXPECT_EQ(errors(yaml), "h stands alone: it has no network to other chips\n");
  const HardwareSpec hw = load(yaml, {}, Unpublished::kAllowed);
  EXPECT_EQ(slices_of(hw, 1, 1).size(), 1U);
  EXPECT_TRUE(slices_of(hw, 2, 1).empty());
  const SliceError error = no_slice(hw, 2, 1);
  EXPECT_EQ(error.message, "2 chips are more than h joins: its network ends at one chip");
  EXPECT_EQ(error.hint, "the nearest that exist: --chips 1");
  EXPECT_EQ(errors(file(std::string(kCompute) + kHbm + kHost + "network: []\n")),
            "network must list at least one tier, from the inside out | 'none' says that the chip stands alone, "
            "'unpublished' that its source does not tell\n");
}

TEST(Slices, ANetworkThatEndsSaysWhere) {
  const HardwareSpec hw = load(with(""));
  EXPECT_EQ(no_slice(hw, 16, 1).message, "16 chips are more than h joins: its network ends at 8 chips");
  EXPECT_EQ(no_slice(hw, 16, 1).hint, "the nearest that exist: --chips 8");
}

TEST(Host, ItsShapeHoldsItsChips) {
  EXPECT_EQ(errors(file(std::string(kCompute) + kHbm + "host: {chips: 8, shape: [2, 2], source: [x]}\n" + kNetwork)),
            "host.shape holds 4 chips, host.chips says 8\n");
}

}  // namespace
}  // namespace scalecalc
