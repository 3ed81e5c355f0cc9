// Points of a question, and the figures beside the times.
#include "collective/collective_answer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/diagnostic.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

CollectiveQuestion asked(std::optional<CollectiveOp> op, std::vector<std::int64_t> groups,
                         std::vector<double> bytes = {1e9}) {
  CollectiveQuestion out;
  out.op = op;
  out.groups = std::move(groups);
  out.bytes = std::move(bytes);
  return out;
}

bool assumes(const CollectiveAnswer& answer, const std::string& text, bool warning = false) {
  return std::any_of(answer.assumptions.begin(), answer.assumptions.end(), [&](const Assumption& a) {
    return a.text.find(text) != std::string::npos && a.warning == warning;
  });
}

class OnTorus : public testing::Test {
 protected:
  HardwareSpec hw = test::torus_chip();
  CollectiveFigures figures(CollectiveOp op, std::int64_t size, std::optional<bool> wraps = {}) {
    CollectiveQuestion q = asked(op, {size});
    q.wraparound = wraps;
    return answer_collective(q, hw).points.at(0).figures;
  }
};

TEST_F(OnTorus, LatencyThresholds) {
  const CollectiveFigures ring = figures(CollectiveOp::kAllGather, 8);
  EXPECT_DOUBLE_EQ(value_of(*ring.latency_bound_below), 8 * 50e9 * 1e-6) << "A W_uni t_hop";
  EXPECT_DOUBLE_EQ(value_of(ring.latency->shard_below), 50e3);
  EXPECT_DOUBLE_EQ(value_of(ring.latency->members_above), 1e9 / 50e3);
  const CollectiveFigures line = figures(CollectiveOp::kAllGather, 8, false);
  EXPECT_DOUBLE_EQ(value_of(*line.latency_bound_below), 8 * 50e9 * 1e-6) << "the same on a line";
}

TEST_F(OnTorus, HopByHop) {
  const CollectiveFigures even = figures(CollectiveOp::kAllGather, 8);
  EXPECT_DOUBLE_EQ(value_of(even.hop->transfer), 1e9 / 8 / 50e9);
  EXPECT_DOUBLE_EQ(value_of(even.hop->all), 1e9 / 100e9);
  const CollectiveFigures odd = figures(CollectiveOp::kAllGather, 5, true);
  EXPECT_DOUBLE_EQ(value_of(odd.hop->all), 2 * 1e9 / 5 / 50e9);
  EXPECT_FALSE(figures(CollectiveOp::kAllToAll, 8).hop.has_value());
}

TEST_F(OnTorus, WhatAWraparoundAndASecondDirectionAreWorth) {
  EXPECT_DOUBLE_EQ(value_of(*figures(CollectiveOp::kAllGather, 4).no_wraparound_ratio), 1.5);
  EXPECT_DOUBLE_EQ(value_of(*figures(CollectiveOp::kAllToAll, 4).no_wraparound_ratio), 2);
  EXPECT_DOUBLE_EQ(value_of(*figures(CollectiveOp::kAllGather, 8).bidirectional_gain), 2);
  EXPECT_DOUBLE_EQ(value_of(*figures(CollectiveOp::kAllReduce, 8).bidirectional_gain), 2);
  EXPECT_DOUBLE_EQ(value_of(*figures(CollectiveOp::kAllToAll, 8).bidirectional_gain), 4);
  EXPECT_FALSE(figures(CollectiveOp::kAllGather, 8, false).bidirectional_gain.has_value()) << "a line has no way round";
  EXPECT_DOUBLE_EQ(value_of(*figures(CollectiveOp::kAllToAll, 8).ratio_to_all_gather), 0.25);
  EXPECT_FALSE(figures(CollectiveOp::kAllGather, 8).ratio_to_all_gather.has_value());
}

/// The bisection and the chunks, counted, give the time of the formula.
TEST_F(OnTorus, AllToAllCountedTwice) {
  for (const bool wraps : {true, false}) {
    CollectiveQuestion q = asked(CollectiveOp::kAllToAll, {});
    q.topology = {4, 8, 4};
    q.wraparound = wraps;
    const CollectivePoint p = answer_collective(q, hw).points.at(0);
    EXPECT_DOUBLE_EQ(value_of(p.figures.bisection->links), wraps ? 32 : 16);
    EXPECT_DOUBLE_EQ(value_of(p.figures.bisection->time), value_of(p.time.time));
  }
  const CollectiveFigures ring = figures(CollectiveOp::kAllToAll, 8);
  EXPECT_DOUBLE_EQ(value_of(ring.chunks->hops), 16);
  EXPECT_DOUBLE_EQ(value_of(ring.chunks->sent), 0.25e9);
  EXPECT_DOUBLE_EQ(value_of(figures(CollectiveOp::kAllToAll, 5, true).chunks->hops), 6) << "1 + 2 to each side";
  // 1 + 2 + 3 chunks from each end of a line of four, 1 + 1 + 2 from the two inside: 20 of four chips.
  EXPECT_DOUBLE_EQ(value_of(figures(CollectiveOp::kAllToAll, 4, false).chunks->hops), 5);
}

TEST_F(OnTorus, ReplicatedAxesHelpToGather) {
  CollectiveQuestion q = asked(CollectiveOp::kAllGather, {});
  q.mesh = {{"X", 4}, {"Y", 4}, {"Z", 4}};
  q.axes = {"X"};
  const double alone = value_of(answer_collective(q, hw).points.at(0).time.time);
  q.replicated = {"Z"};
  const CollectiveAnswer helped = answer_collective(q, hw);
  EXPECT_DOUBLE_EQ(value_of(helped.points.at(0).time.time), alone / 2);
  EXPECT_EQ(helped.points.at(0).group, 4);
  EXPECT_DOUBLE_EQ(value_of(helped.points.at(0).shard), 1e9 / 4);
}

TEST_F(OnTorus, WhichChips) {
  EXPECT_THROW(answer_collective(asked(CollectiveOp::kAllGather, {}), hw), UserError);
  CollectiveQuestion dcn = asked(CollectiveOp::kAllReduce, {2});
  dcn.tier = "dcn";
  EXPECT_DOUBLE_EQ(value_of(answer_collective(dcn, hw).points.at(0).time.bandwidth_time), 2 * 1e9 / 2 / 5e9);
  dcn.groups = {};
  EXPECT_THROW(answer_collective(dcn, hw), UserError) << "how many slices?";
  dcn.tier = "dnc";
  EXPECT_THROW(answer_collective(dcn, hw), UserError);
}

TEST_F(OnTorus, CalibratedLinksAreSlower) {
  hw.efficiency.link_scale_up.value = 0.5;
  CollectiveQuestion q = asked(CollectiveOp::kAllGather, {8});
  EXPECT_DOUBLE_EQ(value_of(*answer_collective(q, hw).points.at(0).figures.link), 50e9);
  q.calibrated = true;
  const CollectiveAnswer answer = answer_collective(q, hw);
  EXPECT_DOUBLE_EQ(value_of(*answer.points.at(0).figures.link), 25e9);
  EXPECT_TRUE(assumes(answer, "links reach 0.5"));
}

class BehindSwitches : public testing::Test {
 protected:
  HardwareSpec hw = test::switched_chip();
};

TEST_F(BehindSwitches, PointsForEachGroupAndSize) {
  const CollectiveAnswer answer = answer_collective(asked(CollectiveOp::kAllToAll, {8, 16}, {1e6, 1e9}), hw);
  ASSERT_EQ(answer.points.size(), 4u);
  EXPECT_EQ(answer.points[1].group, 8);
  EXPECT_EQ(answer.points[2].group, 16);
  EXPECT_DOUBLE_EQ(value_of(*answer.points[1].time_over_first), 1000);
  EXPECT_FALSE(answer_collective(asked(CollectiveOp::kAllToAll, {8}), hw).points[0].time_over_first.has_value());
}

TEST_F(BehindSwitches, ATierIsAWholeDomainOrLimitsTheGroup) {
  CollectiveQuestion q = asked(CollectiveOp::kAllGather, {});
  EXPECT_EQ(answer_collective(q, hw).points[0].group, 8);
  EXPECT_TRUE(assumes(answer_collective(q, hw), "all 8 chips of a node"));
  q.tier = "leaf";
  EXPECT_EQ(answer_collective(q, hw).points[0].group, 32);
  q.tier = "spine";
  EXPECT_THROW(answer_collective(q, hw), UserError);
  q.tier = "leaf";
  q.groups = {64};
  EXPECT_THROW(answer_collective(q, hw), UserError);
  q.topology = {4, 4};
  EXPECT_THROW(answer_collective(q, hw), UserError);
}

/// Book, chapter 12, quiz 4: B into the node switch and N B out; B into the top switch and (M-1) B out.
TEST_F(BehindSwitches, BytesOfTheSwitches) {
  const auto bytes = [&](CollectiveOp op, InNetwork in_network = InNetwork::kOff) {
    CollectiveQuestion q = asked(op, {32});
    q.in_network = in_network;
    return answer_collective(q, hw).points[0].figures.switches;
  };
  const auto gather = bytes(CollectiveOp::kAllGather);
  EXPECT_DOUBLE_EQ(value_of(gather.at(0).ingress), 1e9);
  EXPECT_DOUBLE_EQ(value_of(gather.at(0).egress), 8e9);
  EXPECT_DOUBLE_EQ(value_of(gather.at(1).ingress), 1e9);
  EXPECT_DOUBLE_EQ(value_of(gather.at(1).egress), 3e9);
  EXPECT_DOUBLE_EQ(value_of(bytes(CollectiveOp::kReduceScatter).at(1).ingress), 3e9) << "its transpose";
  EXPECT_DOUBLE_EQ(value_of(bytes(CollectiveOp::kAllReduce).at(1).ingress), 4e9);
  EXPECT_DOUBLE_EQ(value_of(bytes(CollectiveOp::kAllReduce, InNetwork::kOn).at(0).ingress), 9e9)
      << "eight chips and the uplink";
  EXPECT_DOUBLE_EQ(value_of(bytes(CollectiveOp::kAllReduce, InNetwork::kOn).at(1).egress), 4e9);
  // 8 chips hold 1/32 each, send 31/32 of it; as much comes from the other 24.
  EXPECT_DOUBLE_EQ(value_of(bytes(CollectiveOp::kAllToAll).at(0).ingress), 1e9 / 4 * (31.0 / 32 + 24.0 / 32));
}

TEST_F(BehindSwitches, GroupsBesideEachOtherShareTheSwitch) {
  CollectiveQuestion q = asked(CollectiveOp::kAllGather, {});
  q.mesh = {{"X", 2}, {"Y", 4}};
  q.axes = {"X"};
  EXPECT_DOUBLE_EQ(value_of(answer_collective(q, hw).points[0].figures.switches.at(0).egress), 4 * 1e9);
}

TEST_F(BehindSwitches, Ragged) {
  CollectiveQuestion q = asked(CollectiveOp::kAllToAll, {8});
  q.top_k = 4;
  const RaggedFigures ragged = *answer_collective(q, hw).points[0].figures.ragged;
  EXPECT_DOUBLE_EQ(value_of(ragged.approximate_share), 0.4375);
  EXPECT_NEAR(value_of(ragged.expected_share), 0.362091064453, 1e-12);
  EXPECT_DOUBLE_EQ(value_of(ragged.dense_time), 1e9 * 7 / 64 / 400e9);
  q.top_k = 20;
  EXPECT_DOUBLE_EQ(value_of(answer_collective(q, hw).points[0].time.time), value_of(ragged.dense_time))
      << "no more than all slots";
}

TEST_F(BehindSwitches, Measured) {
  CollectiveQuestion q = asked(CollectiveOp::kAllReduce, {8});
  q.measured = {{false, 200e9}, {true, 4e-3}};
  const auto measured = answer_collective(q, hw).points[0].measured;
  EXPECT_DOUBLE_EQ(value_of(measured.at(0).time), 2e9 * 7 / 8 / 200e9);
  EXPECT_DOUBLE_EQ(value_of(measured.at(0).over_model), 2);
  EXPECT_DOUBLE_EQ(value_of(measured.at(1).bus), 2e9 * 7 / 8 / 4e-3);
  EXPECT_DOUBLE_EQ(value_of(measured.at(1).gain_over_first), 437.5 / 200 - 1);
  EXPECT_DOUBLE_EQ(value_of(bus_bytes(CollectiveOp::kAllToAll, BytesOf<Traced>(64.0), 8)), 64.0 / 8 * 7 / 8);
  q.groups = {1};
  EXPECT_THROW(answer_collective(q, hw), UserError);
}

TEST_F(BehindSwitches, WarnsWhereTheBookIsTooSimple) {
  const CollectiveAnswer small = answer_collective(asked(CollectiveOp::kAllGather, {8}, {1e3, 1e9}), hw);
  EXPECT_TRUE(assumes(small, "1 of 2 points: the latency of the messages, not counted here, is longer", true));
  CollectiveQuestion exact = asked(CollectiveOp::kAllGather, {8}, {1e3});
  exact.convention = CollectiveConvention::kExact;
  EXPECT_FALSE(assumes(answer_collective(exact, hw), "not counted here", true));
  CollectiveQuestion alone = asked(CollectiveOp::kAllGather, {});
  alone.mesh = {{"X", 1}, {"Y", 32}};
  alone.axes = {"X"};
  alone.convention = CollectiveConvention::kFirstOrder;
  EXPECT_TRUE(assumes(answer_collective(alone, hw), "the group has one member", true));
}

/// Figures a file leaves unpublished are asked for where they matter and nowhere else.
TEST_F(BehindSwitches, OnlyTheLinksMustBePublished) {
  hw.unpublished = {{.path = "hbm.bandwidth"}};
  EXPECT_NO_THROW(answer_collective(asked(CollectiveOp::kAllGather, {8}), hw));
  hw.unpublished = {{.path = "network.leaf.latency"}};
  EXPECT_THROW(answer_collective(asked(CollectiveOp::kAllGather, {8}), hw), UserError);
  hw.unpublished = {};
  hw.network.clear();
  EXPECT_THROW(answer_collective(asked(CollectiveOp::kAllGather, {8}), hw), UserError);
}

TEST_F(OnTorus, WithoutAPodAForcedWraparoundAnswers) {
  hw.network[0].torus.pod.clear();
  hw.unpublished = {{.path = "network.ici.pod"}};
  CollectiveQuestion q = asked(CollectiveOp::kAllGather, {8});
  EXPECT_THROW(answer_collective(q, hw), UserError);
  q.wraparound = true;
  EXPECT_NO_THROW(answer_collective(q, hw));
  q.wraparound.reset();
  hw.network[0].torus.wraparound = Wraparound::kNone;
  EXPECT_EQ(answer_collective(q, hw).points[0].time.algorithm, "line");
}

/// The book's printed form divides by the chips below twice; at one chip below both agree.
TEST_F(BehindSwitches, PrintedTreeForm) {
  const CollectivePoint p = answer_collective(asked(CollectiveOp::kAllGather, {64}), hw).points[0];
  EXPECT_DOUBLE_EQ(value_of(*p.figures.printed_tree_time), 1e9 * 7 / 8 / 400e9);
  EXPECT_FALSE(
      answer_collective(asked(CollectiveOp::kAllGather, {8}), hw).points[0].figures.printed_tree_time.has_value());
}

TEST_F(BehindSwitches, PermuteHasItsOwnTerms) {
  CollectiveQuestion q = asked(std::nullopt, {}, {1e6});
  q.from = MeshPosition{0};
  q.to = MeshPosition{9};
  const CollectivePoint p = answer_collective(q, hw).points[0];
  EXPECT_EQ(p.group, 2);
  EXPECT_DOUBLE_EQ(value_of(p.time.time), 1e-5 + 1e6 / 50e9);
  EXPECT_EQ(p.time.latency_rule, LatencyRule::kAdded);
  EXPECT_DOUBLE_EQ(value_of(*p.figures.latency_bound_below), 50e9 * 1e-5);
}

}  // namespace
}  // namespace scalecalc
