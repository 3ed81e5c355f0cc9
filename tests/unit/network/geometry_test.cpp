// Ways between two chips, parts of groups, and which boxes twist, by hand.
#include <gtest/gtest.h>

#include <array>

#include "base/diagnostic.h"
#include "network/collective_time.h"
#include "network/placement.h"
#include "network/point_to_point.h"
#include "network/slice.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

NetworkRates<Traced> traced_network(const HardwareSpec& hw) {
  return read_network(Reader<Traced>{}, hw, hw.efficiency);
}

/// Nodes of 8 at 400 GB/s, leaves of 32 at 50 GB/s, a spine at 20.
TEST(PointToPoint, TheTierThatTwoChipsShareOrTheSlowerOneBelow) {
  HardwareSpec hw = test::switched_chip();
  hw.network[2].switched.bandwidth_per_chip = BytesPerSecond(20e9);
  hw.network[1].switched.latency = Seconds(3e-5);
  const NetworkRates<Traced> rates = traced_network(hw);
  const auto way = [&](std::int64_t from, std::int64_t to) { return switched_way(hw, rates, from, to); };
  EXPECT_EQ(way(5, 5).tier, "");
  EXPECT_EQ(way(0, 7).tier, "node");
  EXPECT_EQ(value_of(way(0, 7).rate), 400e9);
  EXPECT_DOUBLE_EQ(value_of(way(0, 7).latency), 1e-5);
  EXPECT_EQ(way(7, 8).tier, "leaf") << "neighbours of two nodes";
  EXPECT_EQ(value_of(way(7, 8).rate), 50e9);
  EXPECT_DOUBLE_EQ(value_of(way(7, 8).latency), 3e-5);
  EXPECT_EQ(way(0, 31).tier, "leaf");
  EXPECT_EQ(way(0, 32).tier, "spine");
  EXPECT_EQ(value_of(way(31, 32).rate), 20e9);
  EXPECT_DOUBLE_EQ(value_of(way(31, 32).latency), 3e-5) << "the longer of both tiers that it crosses";
  hw.network[2].switched.bandwidth_per_chip = BytesPerSecond(900e9);
  EXPECT_EQ(switched_way(hw, traced_network(hw), 0, 32).tier, "leaf") << "the slower one paces it";
  EXPECT_DOUBLE_EQ(transfer_time(way(0, 7), read(Reader<Traced>{}, Bytes(4e9), "bytes", ""), 1).time.value().value(),
                   0.01 + 1e-5);
}

TEST(PointToPoint, HopsOfATorusAddUp) {
  HardwareSpec hw = test::torus_chip();
  const Way way = torus_way(hw, traced_network(hw), 3);
  EXPECT_DOUBLE_EQ(value_of(way.latency), 3e-6);
  EXPECT_EQ(value_of(way.rate), 50e9);
  EXPECT_EQ(explain(named(way.latency, "latency", "").value()).back().formula, "hw.network.ici.hop_latency * hops");
  EXPECT_DOUBLE_EQ(transfer_time(way, read(Reader<Traced>{}, Bytes(1e9), "bytes", ""), 2).time.value().value(),
                   0.01 + 3e-6)
      << "over two links";
  EXPECT_EQ(torus_way(hw, traced_network(hw), 0).tier, "");
  hw.efficiency.collectives.latency_scale_up.value = 5e-6;
  EXPECT_DOUBLE_EQ(value_of(torus_way(hw, traced_network(hw), 3).latency), 8e-6) << "and a kernel's own, once";
}

Group on_axis(const AxisPart& part) {
  Group out;
  out.axes[0] = part;
  return out;
}

/// Four of a ring of eight are a line; the two groups of four that are left lie four apart and close the ring.
TEST(Fold, APartOfARingIsALine) {
  Group folded, rest;
  const Group ring = on_axis({.size = 8, .stride = 1, .ring = true});
  ASSERT_TRUE(fold(std::array<const Group*, 1>{&ring}, 4, folded, rest));
  EXPECT_EQ(folded.axes[0], (AxisPart{.size = 4, .stride = 1, .ring = false}));
  EXPECT_EQ(rest.axes[0], (AxisPart{.size = 2, .stride = 4, .ring = true}));
  ASSERT_TRUE(fold(std::array<const Group*, 1>{&ring}, 8, folded, rest));
  EXPECT_EQ(folded.axes[0], ring.axes[0]);
  EXPECT_EQ(rest.size(), 1);
  const Group line = on_axis({.size = 4, .stride = 2, .ring = false});
  ASSERT_TRUE(fold(std::array<const Group*, 1>{&line}, 4, folded, rest));
  EXPECT_EQ(folded.axes[0], line.axes[0]) << "all of a line is a line";
}

/// Twelve of eight and three: eight fill the axis only if they divide what is asked for.
TEST(Fold, WhatCutsAnAxisUnevenlyDoesNotFold) {
  Group folded, rest;
  Group group = on_axis({.size = 8, .stride = 1, .ring = true});
  group.axes[1] = {.size = 3, .stride = 1, .ring = false};
  EXPECT_FALSE(fold(std::array<const Group*, 1>{&group}, 12, folded, rest));
  EXPECT_FALSE(fold(std::array<const Group*, 1>{&group}, 6, folded, rest));
  EXPECT_TRUE(fold(std::array<const Group*, 1>{&group}, 24, folded, rest));
  EXPECT_EQ(folded.size(), 24);
  Group tiers;
  tiers.tiers = {8, 3, 1, 1};
  EXPECT_FALSE(fold(std::array<const Group*, 1>{&tiers}, 12, folded, rest));
  EXPECT_TRUE(fold(std::array<const Group*, 1>{&tiers}, 4, folded, rest));
  EXPECT_EQ(rest.tiers, (std::array<std::int64_t, kMaxTiers>{2, 3, 1, 1}));
}

/// n x n x 2n and n x 2n x 2n (arXiv:2304.01433 section 2.8); not n x m x 2n.
TEST(Slices, TwistWhereTheLongAxesAreTwiceTheShort) {
  const HardwareSpec hw = test::shipped_chip("tpu-v4");
  const auto twists = [&](const Shape& shape) { return slice_of_shape(hw, shape, 1).at(0).twisted; };
  EXPECT_TRUE(twists({4, 8, 8}));
  EXPECT_TRUE(twists({8, 8, 16}));
  EXPECT_FALSE(twists({8, 12, 16}));
  EXPECT_FALSE(twists({4, 12, 12}));
  EXPECT_FALSE(twists({4, 4, 12}));
}

TEST(Slices, PartsOfOneHostAreOfAnySize) {
  const HardwareSpec hw = test::switched_chip();
  for (const std::int64_t chips : {1, 2, 3, 5, 7, 8}) {
    EXPECT_EQ(slices_of(hw, chips, 1).at(0).per_domain, chips);
    EXPECT_EQ(slices_of(hw, chips, 1).at(0).name(), chips == 1 ? "1 chip" : std::to_string(chips) + " chips");
  }
}

TEST(SwitchedGroups, EndWhereTheNetworkDoes) {
  HardwareSpec hw = test::switched_chip();
  hw.network.back().switched.chips = 64;
  EXPECT_EQ(switched_group(hw, 64, 1).size(), 64);
  EXPECT_THROW(switched_group(hw, 128, 1), UserError);
}

}  // namespace
}  // namespace scalecalc
