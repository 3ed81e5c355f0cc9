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

}  // namespace
}  // namespace scalecalc
