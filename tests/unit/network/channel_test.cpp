#include "network/channel.h"

#include <gtest/gtest.h>

#include "support/fixtures.h"

namespace scalecalc {
namespace {

Channel<double> channel(const HardwareSpec& hw, const Slice& slice, const Group& group, const Routing& routing = {}) {
  return make_channel(hw, slice, read_network(Reader<double>{}, hw, hw.efficiency), group, "test", routing);
}

Group ring(std::int64_t size) {
  Group g;
  g.axes[0] = {.size = size, .stride = 1, .ring = true};
  return g;
}

class Torus : public testing::Test {
 protected:
  HardwareSpec hw = test::torus_chip();
  Slice slice = slices_of(hw, 512, 1).at(0);
};

/// Book, chapter 3: V (N-1)/N over twice the link on a ring; half that bandwidth on a line.
TEST_F(Torus, AllGatherUsesBothDirectionsOfARing) {
  const double v = 1e9;
  EXPECT_DOUBLE_EQ(all_gather_time(channel(hw, slice, ring(8)), Bytes(v)).value(), v * 7 / 8 / 100e9);
  Group line = ring(4);
  line.axes[0].ring = false;
  EXPECT_DOUBLE_EQ(all_gather_time(channel(hw, slice, line), Bytes(v)).value(), v * 3 / 4 / 50e9);
}

TEST_F(Torus, AxesAddTheirBandwidth) {
  Group g = ring(8);
  g.axes[1] = {.size = 8, .stride = 1, .ring = true};
  EXPECT_DOUBLE_EQ(all_gather_time(channel(hw, slice, g), Bytes(1e9)).value(), 1e9 * 63 / 64 / 200e9);
}

TEST_F(Torus, StridedGroupsShareTheLinks) {
  Group g;
  g.axes[0] = {.size = 2, .stride = 4, .ring = true};
  EXPECT_DOUBLE_EQ(all_gather_time(channel(hw, slice, g), Bytes(1e9)).value(), 1e9 / 2 / (100e9 / 4));
}

/// Book, chapter 3: small arrays cost hops, not bytes: t_hop A/2 on a ring.
TEST_F(Torus, SmallArraysAreLatencyBound) {
  EXPECT_DOUBLE_EQ(all_gather_time(channel(hw, slice, ring(8)), Bytes(8)).value(), 4e-6);
}

/// Book, chapter 3: an all-to-all on a ring takes a quarter of the all-gather of the same total array.
TEST_F(Torus, AllToAllIsAQuarterOfAllGather) {
  const Channel<double> c = channel(hw, slice, ring(8));
  const double total = 8e9;
  const double gather_dropping_factor = total / 100e9;
  EXPECT_DOUBLE_EQ(all_to_all_time(c, Bytes(total / 8)).value(), gather_dropping_factor / 4);
}

/// Only an all-to-all over the whole twisted slice gains; gathers and parts of it do not.
TEST_F(Torus, TwistingSpeedsTheWholeSlicesAllToAll) {
  slice.shape = {4, 4, 8};
  Group whole;
  for (std::size_t a = 0; a < 3; ++a) whole.axes[a] = {.size = slice.shape[a], .stride = 1, .ring = true};
  Slice twisted = slice;
  twisted.twisted = true;
  EXPECT_DOUBLE_EQ(channel(hw, slice, whole).all_to_all / channel(hw, twisted, whole).all_to_all, 1.63);
  EXPECT_EQ(channel(hw, slice, whole).gather.value(), channel(hw, twisted, whole).gather.value());
  EXPECT_EQ(channel(hw, slice, ring(4)).all_to_all.value(), channel(hw, twisted, ring(4)).all_to_all.value());
}

class Switched : public testing::Test {
 protected:
  HardwareSpec hw = test::switched_chip();
  Slice slice = slices_of(hw, 256, 1).at(0);

  Group members(std::int64_t node, std::int64_t leaf, std::int64_t spine) {
    Group g;
    g.tiers = {node, leaf, spine, 1};
    return g;
  }
};

/// Book, chapter 12: V (N-1)/N over the chip's egress inside a node.
TEST_F(Switched, AllGatherInANode) {
  const Channel<double> c = channel(hw, slice, members(8, 1, 1));
  EXPECT_DOUBLE_EQ(c.gather.value(), 7.0 / 8 / 400e9);
  EXPECT_FALSE(c.scale_out);
  EXPECT_DOUBLE_EQ(all_gather_time(c, Bytes(1e9)).value(), 1e-5 + 1e9 * 7 / 8 / 400e9);
}

/// Eight members in a node stripe what comes from outside over eight uplinks; one alone has one.
TEST_F(Switched, MembersOfANodeShareTheUplinks) {
  hw.network[0].switched.bandwidth_per_chip = BytesPerSecond(900e9);
  EXPECT_DOUBLE_EQ(channel(hw, slice, members(8, 4, 1)).gather.value(), 3.0 / 4 / (8 * 50e9));
  hw.network[0].switched.bandwidth_per_chip = BytesPerSecond(100e9);
  EXPECT_DOUBLE_EQ(channel(hw, slice, members(8, 4, 1)).gather.value(), 7.0 / 8 / 100e9) << "the slower tier binds";
  EXPECT_DOUBLE_EQ(channel(hw, slice, members(1, 4, 1)).gather.value(), 3.0 / 4 / 50e9);
}

/// Book, chapter 12: V / W_gpu, since each chip still sends its array and receives the sum.
TEST_F(Switched, InNetworkReductionTakesOnePassAtLeast) {
  hw.network[0].switched.in_network_reduction = true;
  const Channel<double> with = channel(hw, slice, members(8, 1, 1));
  EXPECT_DOUBLE_EQ(with.reduce.value(), 1 / 400e9);
  hw.efficiency.in_network_gain.value = 1.3;
  const Channel<double> measured = channel(hw, slice, members(8, 1, 1));
  EXPECT_DOUBLE_EQ(measured.reduce.value(), 2 * measured.gather.value() / 1.3);
  hw.network[0].switched.in_network_reduction = false;
  EXPECT_DOUBLE_EQ(channel(hw, slice, members(8, 1, 1)).reduce.value(), 2 * with.gather.value());
}

TEST_F(Switched, OversubscriptionSlowsOnlyWhatCrossesIt) {
  const double before = channel(hw, slice, members(8, 4, 1)).gather.value();
  hw.network[2].switched.oversubscription = 4;
  EXPECT_DOUBLE_EQ(channel(hw, slice, members(8, 4, 1)).gather.value(), before);
  const double crossing = channel(hw, slice, members(8, 4, 2)).gather.value();
  EXPECT_GE(crossing, before);
}

TEST_F(Switched, MeshGivesAGroupOnlyTheLinksBetweenItsMembers) {
  hw.network[0].kind = TierKind::kMesh;
  hw.network[0].switched.bandwidth_per_chip = BytesPerSecond(50e9);
  EXPECT_DOUBLE_EQ(channel(hw, slice, members(8, 1, 1)).gather.value(), 7.0 / 8 / (7 * 50e9));
  EXPECT_DOUBLE_EQ(channel(hw, slice, members(2, 1, 1)).gather.value(), 1.0 / 2 / 50e9);
}

TEST(Routing, ATokenGoesOnceToEachNode) {
  EXPECT_DOUBLE_EQ(copies_beyond(8, 8, {.top_k = 1}), 7.0 / 8) << "one expert: plain all-to-all";
  // Eight experts on eight nodes reach 8 (1 - (7/8)^8) = 5.25 distinct nodes, seven eighths of them elsewhere, half of
  // them under the other of two leaves.
  EXPECT_NEAR(copies_beyond(8, 8, {.top_k = 8}), 5.2509 * 7 / 8, 1e-3);
  EXPECT_NEAR(copies_beyond(2, 8, {.top_k = 8}), 5.2509 / 2, 1e-3);
}

/// DeepSeek-V3: 8 experts in 4 of 8 groups. On 16 nodes a group spans two, so the four chosen lie on eight: 8 (1 -
/// (7/8)^8) = 5.2511. On eight nodes: 4 (1 - (3/4)^8) = 3.5995. On four, of two groups each, a node has none, one or
/// both of its groups chosen in 15, 40 and 15 of 70 cases: 4 (1 - (15 + 40 (3/4)^8 + 15 (1/2)^8) / 70) = 2.9107.
TEST(Routing, GroupsOfTheRouterSpreadOverNodes) {
  const Routing routing{.top_k = 8, .n_group = 8, .topk_group = 4};
  EXPECT_NEAR(copies_beyond(16, 16, routing), 5.2511 * 15 / 16, 1e-4);
  EXPECT_NEAR(copies_beyond(8, 8, routing), 3.5995 * 7 / 8, 1e-4);
  EXPECT_NEAR(copies_beyond(4, 4, routing), 2.9107 * 3 / 4, 1e-4);
  const Routing all{.top_k = 8, .n_group = 8, .topk_group = 8};
  EXPECT_DOUBLE_EQ(copies_beyond(8, 8, all), copies_beyond(8, 8, {.top_k = 8}));
}

/// Three nodes and two groups, of which one is chosen, two experts in it: the outer nodes have two thirds of a group,
/// the middle one a third of each. Chance of an expert there: 1/2 (1 - (1/3)^2) = 4/9 and 1 - (2/3)^2 = 5/9; in all
/// 13/9.
TEST(Routing, ANodeMayHoldPartsOfGroups) {
  EXPECT_NEAR(copies_beyond(3, 3, {.top_k = 2, .n_group = 2, .topk_group = 1}), 13.0 / 9 * 2 / 3, 1e-12);
}

/// Eight nodes under two leaves: 5.25113 copies, half of which cross the spine, of eight slots.
TEST_F(Switched, CopiesAreCountedByNodeBeyondTheLeafToo) {
  hw.network[2].switched.bandwidth_per_chip = BytesPerSecond(10e9);
  const Channel<double> c = channel(hw, slice, members(8, 4, 2), {.top_k = 8});
  EXPECT_NEAR(c.all_to_all.value(), 5.25113 / 2 / 8 / 10e9, 1e-16);
}

/// Eight experts on eight ranks of one node lie on 5.25113 of them, seven eighths of which are others; a copy for each
/// expert would be seven of eight.
TEST_F(Switched, ATokenGoesOnceToEachRankOfItsNode) {
  hw.network[0].switched.bandwidth_per_chip = BytesPerSecond(100e9);
  EXPECT_NEAR(channel(hw, slice, members(8, 1, 1), {.top_k = 8}).all_to_all.value(), 5.25113 * 7 / 8 / 8 / 100e9,
              1e-16);
  EXPECT_NEAR(channel(hw, slice, members(8, 1, 1)).all_to_all.value(), 7.0 / 8 / 100e9, 1e-16);
}

TEST(Collectives, AGroupOfOneIsFree) {
  const Channel<double> one;
  EXPECT_EQ(all_gather_time(one, Bytes(1e9)).value(), 0);
  EXPECT_EQ(all_reduce_time(one, Bytes(1e9)).value(), 0);
  EXPECT_EQ(all_to_all_time(one, Bytes(1e9)).value(), 0);
  EXPECT_EQ(send_time(one, Bytes(1e9)).value(), 0);
}

}  // namespace
}  // namespace scalecalc
