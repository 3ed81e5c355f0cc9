#include "hw/hw.h"

#include <gtest/gtest.h>

#include <set>

#include "roofline/roofline.h"

namespace scalecalc {
namespace {

/// Where a roofline finds what a channel carries.
struct ChannelUse {
  OperandHome from = OperandHome::kHbm;
  std::optional<Fabric> over;
};

/// Nothing for a channel that no roofline asks for: levels of cache, tiers beyond the second, a whole node's egress.
std::optional<ChannelUse> use_of(const std::string& channel, const HardwareSpec& hw) {
  if (channel == "node_egress") return std::nullopt;
  if (channel == "hbm") return ChannelUse{};
  if (channel == "vmem") return ChannelUse{.from = OperandHome::kVmem};
  if (channel == "pcie") return ChannelUse{.from = OperandHome::kHost};
  const auto tier = [&](std::size_t i) { return i < hw.network.size() ? hw.network[i].name : "no such tier"; };
  const auto egress_of = [&](std::size_t i) { return channel == tier(i) || channel == tier(i) + "_egress"; };
  if (channel == tier(0) + "_one_way") return ChannelUse{.over = Fabric::kLink};
  if (egress_of(0)) return ChannelUse{.over = hw.is_torus() ? Fabric::kIci : Fabric::kScaleUp};
  if (egress_of(1)) return ChannelUse{.over = Fabric::kScaleOut};
  return std::nullopt;
}

/// One fact, one reader: over the whole catalog a roofline runs at the rates that `hw` prints.
TEST(Hw, PrintsTheRatesThatARooflineUses) {
  const Catalog catalog;
  std::size_t asked = 0;
  for (const std::string& name : catalog.names(CatalogKind::kHardware)) {
    SCOPED_TRACE(name);
    const HwChip chip = answer(HwQuestion{.hardware = {name}}, catalog).chips.front();
    std::set<std::string> names;
    for (const HwChannel& channel : chip.rates.channels) {
      EXPECT_TRUE(names.insert(channel.name).second) << channel.name << " is printed twice";
    }
    if (!chip.rates.dtype || !names.contains("hbm")) continue;
    const DType dtype = *chip.rates.dtype;
    for (const HwChannel& channel : chip.rates.channels) {
      const auto use = use_of(channel.name, chip.hw);
      if (!use) continue;
      SCOPED_TRACE(channel.name);
      RooflineQuestion question{.operations = {Matmul{.rows = 1024, .contraction = 1024, .columns = 1024}}};
      question.types = {dtype, dtype, dtype, dtype};
      question.from = use->from;
      question.over = use->over;
      if (use->over) question.sharing = {2, MatmulSplit::kContraction};
      const RooflineRates rates = roofline_rates(question, chip.hw);
      EXPECT_DOUBLE_EQ(value_of(use->over ? *rates.link : rates.memory), value_of(channel.rate));
      ++asked;
    }
  }
  EXPECT_GT(asked, 250U);
}

/// A tier may be called as the host's link is.
TEST(Hw, NamesTheHostLinkApartFromATierOfTheSameName) {
  const Catalog catalog;
  const HwQuestion question{.hardware = {"a100-pcie-80g"}, .set = {"hw.host.pcie_bandwidth=10GB/s"}};
  const HwChip chip = answer(question, catalog).chips.front();
  double host = 0;
  double tier = 0;
  for (const HwChannel& channel : chip.rates.channels) {
    if (channel.name == "pcie") host = value_of(channel.rate);
    if (channel.name == "pcie_egress") tier = value_of(channel.rate);
  }
  EXPECT_EQ(host, 10e9);
  EXPECT_EQ(tier, 32e9);
}

}  // namespace
}  // namespace scalecalc
