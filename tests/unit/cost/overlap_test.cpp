// What hides under what, and what it costs the work beside it.
#include "cost/overlap.h"

#include <gtest/gtest.h>

#include "cost/stage_time.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

/// 16 experts' ranks on two nodes of eight load NVLink with half of what they send: 15 % of the work beside, not the 2
/// % of ranks that are alone on their nodes.
TEST(Contention, TheTierThatTakesMostOfTheWorkCounts) {
  const HardwareSpec hw = test::switched_chip();
  const Slice slice = slices_of(hw, 256, 1).at(0);
  OverlapRates<double> overlap;
  overlap.contention_up = 0.15;
  overlap.contention_out = 0.02;
  const auto share = [&](const std::array<std::int64_t, kMaxTiers>& tiers) {
    Group group;
    group.tiers = tiers;
    return contention_of(overlap,
                         make_channel(hw, slice, read_network(Reader<double>{}, hw, hw.efficiency), group, "test"));
  };
  EXPECT_EQ(share({8, 1, 1, 1}), 0.15);
  EXPECT_EQ(share({1, 4, 1, 1}), 0.02);
  EXPECT_EQ(share({8, 2, 1, 1}), 0.15);
  EXPECT_EQ(share({1, 1, 1, 1}), 0);
  overlap.contention_out = 0.3;
  EXPECT_EQ(share({8, 2, 1, 1}), 0.3);
}

struct Hidden {
  double exposed = 0;  ///< seconds, all kinds together
  double spilled = 0;
};

/// A ring of 300 us and another link's 900 us or none, both of which may hide whole, beside 500 us of work, 100 us of
/// them attention.
Hidden beside(double attention, double other) {
  std::array<Traffic<double>, kTrafficKinds> traffic;
  traffic[kCp] = {Seconds(300e-6), 1, 0.1, 1};
  traffic[kCp].under = Seconds(attention);
  traffic[kFsdp] = {Seconds(other), 1, 0, 2};
  std::array<Seconds, kTrafficKinds> exposed;
  std::array<double, kTrafficKinds> spilled{};
  hide(traffic, Seconds(500e-6), kForwardNames, "layer", exposed, spilled);
  Hidden out;
  for (std::size_t x = 0; x < kTrafficKinds; ++x) {
    out.exposed += exposed[x].value();
    out.spilled += spilled[x];
  }
  return out;
}

/// 300 - 100 us outlast the attention, which the exchange slows by a tenth for as long: 200 + 10 us are exposed, where
/// 500 us of any work would have hidden all but 30 us of slowing.
TEST(Ring, HidesUnderAttentionAlone) {
  EXPECT_NEAR(beside(100e-6, 0).exposed, 210e-6, 1e-12);
  EXPECT_NEAR(beside(100e-6, 0).spilled, 200e-6, 1e-12);
  EXPECT_NEAR(beside(500e-6, 0).exposed, 30e-6, 1e-12);
}

/// Another link's 900 us go on while the ring is waited for: 900 - 500 us are exposed in all, beside the 10 us of
/// slowing.
TEST(Ring, OtherLinksGoOnWhileItIsWaitedFor) {
  EXPECT_NEAR(beside(100e-6, 900e-6).exposed, 400e-6 + 10e-6, 1e-12);
  EXPECT_NEAR(beside(100e-6, 900e-6).spilled, 400e-6, 1e-12);
}

}  // namespace
}  // namespace scalecalc
