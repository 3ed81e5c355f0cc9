#include "network/tier_rates.h"

#include <gtest/gtest.h>

#include "base/diagnostic.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

double bandwidth(const HardwareSpec& hw, std::size_t tier) {
  return read_network(Reader<double>{}, hw, hw.efficiency).tiers.at(tier).bandwidth.value();
}

TEST(TierRates, OversubscriptionAndEfficiencyLower) {
  HardwareSpec hw = test::switched_chip();
  EXPECT_DOUBLE_EQ(bandwidth(hw, 1), 50e9);
  hw.network[1].switched.oversubscription = 4;
  hw.efficiency.link_scale_out.value = 0.8;
  EXPECT_DOUBLE_EQ(bandwidth(hw, 1), 50e9 / 4 * 0.8);
  EXPECT_DOUBLE_EQ(value_of(chip_egress(hw, 1)), 50e9 / 4);
  EXPECT_DOUBLE_EQ(value_of(node_egress(hw)), 8 * 50e9 / 4);
  EXPECT_DOUBLE_EQ(value_of(node_egress(hw, 6)), 6 * 50e9 / 4) << "of the chips of a node that a job uses";
}

TEST(TierRates, AMeshChipSendsToAllPeersAtOnce) {
  HardwareSpec hw = test::switched_chip();
  hw.network[0].kind = TierKind::kMesh;
  EXPECT_DOUBLE_EQ(value_of(chip_egress(hw, 0)), 7 * 400e9);
}

TEST(TierRates, InputsHaveTheNamesThatSetTakes) {
  HardwareSpec hw = test::switched_chip();
  hw.network[1].switched.oversubscription = 4;
  EXPECT_EQ(explain(named(chip_egress(hw, 1), "W", "").value()).at(0).formula,
            "hw.network.leaf.bandwidth_per_chip / hw.network.leaf.oversubscription");
  const HardwareSpec torus = test::torus_chip();
  EXPECT_EQ(bandwidth_name(torus.network[0]), "hw.network.ici.link_bandwidth");
  EXPECT_EQ(latency_name(torus.network[0]), "hw.network.ici.hop_latency");
  EXPECT_EQ(latency_name(torus.network[1]), "hw.network.dcn.latency");
}

TEST(TierRates, TheTierThatSpansChips) {
  const HardwareSpec hw = test::switched_chip();
  EXPECT_EQ(spanning_tier(hw, 8), 0U);
  EXPECT_EQ(spanning_tier(hw, 9), 1U);
  EXPECT_EQ(spanning_tier(hw, 4096), 2U);
  const HardwareSpec torus = test::torus_chip();
  EXPECT_EQ(spanning_tier(torus, 512), 0U);
  EXPECT_EQ(spanning_tier(torus, 64, true), 1U) << "slices apart";
  EXPECT_THROW(spanning_tier(HardwareSpec{}, 2), UserError);
}

TEST(TierRates, ScalingMovesWhatIsRead) {
  HardwareSpec hw = test::switched_chip();
  scale_bandwidth(hw, 1, 2);
  scale_latency(hw, 1, 3);
  EXPECT_DOUBLE_EQ(bandwidth(hw, 1), 100e9);
  EXPECT_DOUBLE_EQ(link_latency(hw.network[1]).value(), 30e-6);
  set_bandwidth(hw, 1, BytesPerSecond(5e9));
  EXPECT_DOUBLE_EQ(bandwidth(hw, 1), 5e9);
}

TEST(TierRates, ScalingATorusMovesItsLinks) {
  HardwareSpec hw = test::torus_chip();
  const double before = bandwidth(hw, 0);
  scale_bandwidth(hw, 0, 3);
  scale_latency(hw, 0, 2);
  EXPECT_DOUBLE_EQ(bandwidth(hw, 0), 3 * before);
  EXPECT_DOUBLE_EQ(hw.network[0].torus.link_bandwidth.value(), 150e9);
  EXPECT_DOUBLE_EQ(hw.network[0].torus.hop_latency.value(), 2e-6);
}

}  // namespace
}  // namespace scalecalc
