#include "network/collective_time.h"

#include <gtest/gtest.h>

#include "base/diagnostic.h"
#include "support/errors.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

using Convention = CollectiveConvention;

constexpr double kLink = 50e9;   // the fixtures' rates
constexpr double kNode = 400e9;  // a chip inside a node
constexpr double kLeaf = 50e9;   // a chip beyond it
constexpr double kV = 1e9;

CollectiveTime run(const HardwareSpec& hw, const CollectiveGroup& group, CollectiveOp op, double bytes = kV,
                   Convention convention = Convention::kBook, InNetwork in_network = InNetwork::kAsBuilt,
                   double top_k = 0) {
  const CollectiveNetwork network = collective_network(hw, ideal_efficiency(hw.efficiency));
  return collective_time(
      network, group,
      {.op = op, .bytes = BytesOf<Traced>(bytes), .convention = convention, .in_network = in_network, .top_k = top_k});
}

class TorusTime : public testing::Test {
 protected:
  HardwareSpec hw = test::torus_chip();
  CollectiveGroup axis(std::int64_t size, bool wraps) { return torus_group(hw, {{"X", size, wraps}}); }
};

/// Book, chapter 3: V / W_ici on a ring whatever its size; hops of V/A over one link on a line.
TEST_F(TorusTime, RingAndLine) {
  EXPECT_DOUBLE_EQ(value_of(run(hw, axis(8, true), CollectiveOp::kAllGather).time), kV / (2 * kLink));
  EXPECT_DOUBLE_EQ(value_of(run(hw, axis(16, true), CollectiveOp::kReduceScatter).time), kV / (2 * kLink));
  EXPECT_DOUBLE_EQ(value_of(run(hw, axis(8, true), CollectiveOp::kAllReduce).time), kV / kLink);
  EXPECT_DOUBLE_EQ(value_of(run(hw, axis(4, false), CollectiveOp::kAllGather).time), 3 * (kV / 4) / kLink);
  EXPECT_EQ(run(hw, axis(8, true), CollectiveOp::kAllGather).algorithm, "ring");
  EXPECT_EQ(run(hw, axis(4, false), CollectiveOp::kAllReduce).algorithm, "two-phase line");
}

TEST_F(TorusTime, ExactKeepsTheShareThatArrives) {
  const double ring = kV / (2 * kLink);
  EXPECT_DOUBLE_EQ(value_of(run(hw, axis(8, true), CollectiveOp::kAllGather, kV, Convention::kExact).time),
                   ring * 7 / 8);
  EXPECT_DOUBLE_EQ(value_of(run(hw, axis(4, false), CollectiveOp::kAllGather, kV, Convention::kFirstOrder).time),
                   kV / kLink);
}

TEST_F(TorusTime, AxesAddTheirLinks) {
  const CollectiveGroup three = torus_group(hw, {{"X", 8, true}, {"Y", 8, true}, {"Z", 8, true}});
  const CollectiveTime found = run(hw, three, CollectiveOp::kAllGather);
  EXPECT_DOUBLE_EQ(value_of(found.time), kV / (6 * kLink));
  EXPECT_DOUBLE_EQ(value_of(found.latency), 12e-6) << "half the sum of the axes, in hops of 1 us";
  EXPECT_EQ(found.hops, 12);
  EXPECT_EQ(found.algorithm, "rings on 3 axes");
  const CollectiveGroup mixed = torus_group(hw, {{"X", 8, true}, {"Y", 2, false}});
  EXPECT_DOUBLE_EQ(value_of(run(hw, mixed, CollectiveOp::kAllGather).time), kV * 15 / 16 / (3 * kLink));
}

TEST_F(TorusTime, SmallArraysCostHops) {
  const CollectiveTime ring = run(hw, axis(8, true), CollectiveOp::kAllGather, 1000);
  EXPECT_TRUE(ring.latency_bound);
  EXPECT_DOUBLE_EQ(value_of(ring.time), 4e-6);
  EXPECT_DOUBLE_EQ(value_of(run(hw, axis(4, false), CollectiveOp::kAllReduce, 1000).time), 6e-6);
  EXPECT_FALSE(run(hw, axis(8, true), CollectiveOp::kAllGather).latency_bound);
}

/// Book, chapter 3: a quarter of the all-gather on one ring; V max(A) / (4 N W_ici) on several; a line has one cut.
TEST_F(TorusTime, AllToAll) {
  EXPECT_DOUBLE_EQ(value_of(run(hw, axis(8, true), CollectiveOp::kAllToAll).time), kV / (2 * kLink) / 4);
  EXPECT_DOUBLE_EQ(value_of(run(hw, axis(8, false), CollectiveOp::kAllToAll).time), kV / (2 * kLink) / 2);
  const CollectiveGroup two = torus_group(hw, {{"X", 8, true}, {"Y", 16, true}});
  EXPECT_DOUBLE_EQ(value_of(run(hw, two, CollectiveOp::kAllToAll).time), kV * 16 / (4 * 128 * 2 * kLink));
  EXPECT_DOUBLE_EQ(
      value_of(run(hw, axis(8, true), CollectiveOp::kAllToAll, kV, Convention::kBook, InNetwork::kAsBuilt, 2).time),
      kV / (2 * kLink) / 4 * 2 / 8);
}

TEST_F(TorusTime, TwistingCountsInTheExactConvention) {
  CollectiveGroup group = torus_group(hw, {{"X", 4, true}, {"Y", 4, true}, {"Z", 8, true}});
  const double plain = value_of(run(hw, group, CollectiveOp::kAllToAll, kV, Convention::kExact).time);
  group.twist_gain = 1.63;
  EXPECT_DOUBLE_EQ(value_of(run(hw, group, CollectiveOp::kAllToAll, kV, Convention::kExact).time), plain / 1.63);
  EXPECT_DOUBLE_EQ(value_of(run(hw, group, CollectiveOp::kAllToAll).time), plain);
}

TEST_F(TorusTime, SlicesJoinOverTheOuterNetwork) {
  const double dcn = value_of(hw.network[1].switched.bandwidth_per_chip);
  // One chip of each slice: its own egress. Whole slices: every chip carries its part.
  const CollectiveGroup alone = torus_group(hw, {}, 4, 64);
  EXPECT_DOUBLE_EQ(value_of(run(hw, alone, CollectiveOp::kAllGather).bandwidth_time), kV * 3 / 4 / dcn);
  const CollectiveGroup whole = torus_group(hw, {{"X", 8, true}, {"Y", 8, true}}, 4);
  const CollectiveTime found = run(hw, whole, CollectiveOp::kAllGather);
  EXPECT_DOUBLE_EQ(value_of(found.bandwidth_time), std::max(kV / (4 * kLink), kV * 3 / 4 / (64 * dcn)));
  EXPECT_EQ(whole.size(), 256);
  EXPECT_EQ(found.levels.at(0).level.chips_below, 64);
}

class SwitchedTime : public testing::Test {
 protected:
  HardwareSpec hw = test::switched_chip();
  CollectiveGroup ranks(std::int64_t size, std::int64_t inner = 1) { return switched_group(hw, size, inner); }
};

/// Book, chapter 12: V (N-1)/(N W_gpu) in a node, about V / W_gpu; no latency.
TEST_F(SwitchedTime, Node) {
  EXPECT_DOUBLE_EQ(value_of(run(hw, ranks(8), CollectiveOp::kAllGather).time), kV * 7 / 8 / kNode);
  EXPECT_DOUBLE_EQ(value_of(run(hw, ranks(6), CollectiveOp::kAllGather).time), kV * 5 / 6 / kNode);
  EXPECT_DOUBLE_EQ(value_of(run(hw, ranks(8), CollectiveOp::kAllGather, kV, Convention::kFirstOrder).time), kV / kNode);
  const CollectiveTime book = run(hw, ranks(8), CollectiveOp::kAllReduce);
  EXPECT_DOUBLE_EQ(value_of(book.time), 2 * kV * 7 / 8 / kNode);
  EXPECT_EQ(book.latency_rule, LatencyRule::kNotCounted);
  const CollectiveTime exact = run(hw, ranks(8), CollectiveOp::kAllReduce, kV, Convention::kExact);
  EXPECT_DOUBLE_EQ(value_of(exact.time), 2 * kV * 7 / 8 / kNode + 10e-6) << "the operation waits once";
}

TEST_F(SwitchedTime, ABandwidthThatIsNotPublishedHasNoTime) {
  hw.unpublished.push_back({.path = "network.leaf.bandwidth_per_chip"});
  for (const Convention convention : {Convention::kBook, Convention::kFirstOrder, Convention::kExact}) {
    const auto all_gather = [&](std::int64_t size) {
      return run(hw, ranks(size), CollectiveOp::kAllGather, kV, convention).time;
    };
    EXPECT_GT(value_of(all_gather(8)), 0);
    EXPECT_NE(test::problems_of([&] { all_gather(32); }).find("network.leaf.bandwidth_per_chip"), std::string::npos);
  }
}

/// Book, chapter 12: V max_i (D_i-1)/(D_i W_i) with W_i the uplinks of one child together.
TEST_F(SwitchedTime, Tree) {
  const CollectiveTime tree = run(hw, ranks(64), CollectiveOp::kAllGather);
  ASSERT_EQ(tree.levels.size(), 3);
  EXPECT_DOUBLE_EQ(value_of(tree.levels[0].time), kV * 7 / 8 / kNode);
  EXPECT_DOUBLE_EQ(value_of(tree.levels[1].time), kV * 3 / 4 / (8 * kLeaf));
  EXPECT_DOUBLE_EQ(value_of(tree.levels[1].link), 8 * kLeaf);
  EXPECT_DOUBLE_EQ(value_of(tree.levels[2].time), kV * 1 / 2 / (32 * kLeaf));
  EXPECT_DOUBLE_EQ(value_of(tree.time), value_of(tree.levels[0].time));
  EXPECT_EQ(tree.bound_tier, "node");
  EXPECT_EQ(tree.algorithm, "tree: node, leaf, spine");
  // In fact a node receives what lies in the other leaf through its own uplinks as well.
  const CollectiveTime exact = run(hw, ranks(64), CollectiveOp::kAllGather, kV, Convention::kExact);
  EXPECT_DOUBLE_EQ(value_of(exact.levels[1].time), kV * 7 / 8 / (8 * kLeaf));
}

/// Book, chapter 12, sharded reductions, with V the bytes of one group (the whole array over Y).
TEST_F(SwitchedTime, InnerAxis) {
  const CollectiveTime four = run(hw, ranks(8, 4), CollectiveOp::kAllGather);
  EXPECT_DOUBLE_EQ(value_of(four.levels[1].time), kV * 3 / 4 / (2 * kLeaf)) << "two members of the node share";
  const CollectiveTime sixteen = run(hw, ranks(2, 16), CollectiveOp::kAllGather, kV, Convention::kFirstOrder);
  EXPECT_DOUBLE_EQ(value_of(sixteen.levels[1].time), kV / kLeaf);
  EXPECT_DOUBLE_EQ(value_of(sixteen.levels[0].time), kV * 16 / 8 / kNode) << "V full / (W_gpu min(Y, 8))";
  const CollectiveTime exact = run(hw, ranks(2, 16), CollectiveOp::kAllGather, kV, Convention::kExact);
  EXPECT_EQ(value_of(exact.levels[0].time), 0) << "no two members share a node";
}

TEST_F(SwitchedTime, InNetworkReduction) {
  const CollectiveTime on = run(hw, ranks(8), CollectiveOp::kAllReduce, kV, Convention::kBook, InNetwork::kOn);
  EXPECT_DOUBLE_EQ(value_of(on.time), kV / kNode);
  EXPECT_EQ(on.algorithm, "switch: node (in network)");
  EXPECT_EQ(value_of(run(hw, ranks(8), CollectiveOp::kAllReduce).time), 2 * kV * 7 / 8 / kNode)
      << "as built: it does not";
  hw.network[0].switched.in_network_reduction = true;
  EXPECT_DOUBLE_EQ(value_of(run(hw, ranks(8), CollectiveOp::kAllReduce).time), kV / kNode);
  EXPECT_THROW(run(hw, ranks(8), CollectiveOp::kAllGather, kV, Convention::kBook, InNetwork::kOn), UserError);
}

/// Book, chapter 12: V (N-1)/(N^2 W_gpu), and V (M-1)/(M^2 W_node) over M nodes.
TEST_F(SwitchedTime, AllToAll) {
  EXPECT_DOUBLE_EQ(value_of(run(hw, ranks(8), CollectiveOp::kAllToAll).time), kV * 7 / 64 / kNode);
  EXPECT_DOUBLE_EQ(value_of(run(hw, ranks(32), CollectiveOp::kAllToAll).time), kV * 3 / 16 / (8 * kLeaf));
  const auto ragged = [&](Convention convention) {
    return value_of(run(hw, ranks(8), CollectiveOp::kAllToAll, kV, convention, InNetwork::kAsBuilt, 4).time);
  };
  EXPECT_DOUBLE_EQ(ragged(Convention::kFirstOrder), kV / 8 / kNode / 2);
  EXPECT_DOUBLE_EQ(ragged(Convention::kBook), kV * 7 / 64 / kNode / 2);
  EXPECT_THROW(run(hw, ranks(8), CollectiveOp::kAllReduce, kV, Convention::kBook, InNetwork::kAsBuilt, 4), UserError);
}

TEST_F(SwitchedTime, GroupsThatCutADomainAreRefused) {
  EXPECT_THROW(ranks(12), UserError);
  EXPECT_THROW(ranks(4, 3), UserError);
  EXPECT_EQ(ranks(24).levels.at(1).members, 3) << "whole nodes need not fill the leaf";
  hw.network.back().switched.chips = 64;
  EXPECT_THROW(ranks(128), UserError);
}

/// An all-reduce of eight in a node, whose messages take 2 us: three follow one another in a tree, seven round a ring,
/// and twice as many for the reduction and the gather; with switches that reduce one goes up and one comes down.
TEST_F(SwitchedTime, MessagesFollowOneAnother) {
  SwitchedTier& node = hw.network[0].switched;
  node.latency = Seconds(2e-6);
  node.latency_per = LatencyPer::kMessage;
  const auto latency = [&](CollectiveOp op) { return value_of(run(hw, ranks(8), op, kV, Convention::kExact).latency); };
  EXPECT_DOUBLE_EQ(latency(CollectiveOp::kAllGather), 3 * 2e-6);
  EXPECT_DOUBLE_EQ(latency(CollectiveOp::kAllReduce), 2 * 3 * 2e-6);
  EXPECT_DOUBLE_EQ(latency(CollectiveOp::kAllToAll), 2e-6);
  node.algorithm = MessageOrder::kRing;
  EXPECT_DOUBLE_EQ(latency(CollectiveOp::kReduceScatter), 7 * 2e-6);
  EXPECT_DOUBLE_EQ(latency(CollectiveOp::kAllReduce), 2 * 7 * 2e-6);
  node.in_network_reduction = true;
  EXPECT_DOUBLE_EQ(latency(CollectiveOp::kAllReduce), 2 * 2e-6);
}

/// 64 chips of two leaves: an operation waits for the slowest tier it crosses, once; messages of every tier add to it.
TEST_F(SwitchedTime, TiersWait) {
  hw.network[1].switched.latency = Seconds(20e-6);
  const auto latency = [&](CollectiveOp op) {
    return value_of(run(hw, ranks(64), op, kV, Convention::kExact).latency);
  };
  EXPECT_DOUBLE_EQ(latency(CollectiveOp::kAllGather), 20e-6);
  EXPECT_DOUBLE_EQ(latency(CollectiveOp::kAllReduce), 20e-6);
  hw.network[1].switched.latency_per = LatencyPer::kMessage;
  EXPECT_DOUBLE_EQ(latency(CollectiveOp::kAllGather), 10e-6 + 2 * 20e-6)
      << "four nodes of a leaf: two messages in a tree";
}

/// NCCL on H100 (aiconfigurator comm tables): 7 us between two, 65 % of it more for each doubling: 7 (1 + 0.65 x 2) =
/// 16.1 us between eight, where 16.4 were measured. They stand in place of the links' 10 us.
TEST_F(SwitchedTime, MeasuredKernelsStandForTheLinks) {
  Efficiency e = ideal_efficiency(hw.efficiency);
  e.collectives.latency_scale_up.value = 7e-6;
  e.collectives.latency_scale_out.value = 20e-6;
  e.collectives.latency_growth.value = 0.65;
  const auto latency = [&](std::int64_t size, CollectiveOp op, Convention convention = Convention::kExact) {
    return value_of(collective_time(collective_network(hw, e), ranks(size),
                                    {.op = op, .bytes = BytesOf<Traced>(kV), .convention = convention})
                        .latency);
  };
  EXPECT_DOUBLE_EQ(latency(2, CollectiveOp::kAllReduce), 7e-6);
  EXPECT_DOUBLE_EQ(latency(8, CollectiveOp::kAllReduce), 7e-6 * 2.3);
  EXPECT_DOUBLE_EQ(latency(8, CollectiveOp::kAllGather), 7e-6 * 2.3) << "simumax: gathers wait as long";
  EXPECT_DOUBLE_EQ(latency(32, CollectiveOp::kAllReduce), 20e-6 * (1 + 0.65 * 4));
  EXPECT_DOUBLE_EQ(latency(8, CollectiveOp::kAllToAll), 10e-6) << "not measured: the link's";
  EXPECT_DOUBLE_EQ(latency(8, CollectiveOp::kAllReduce, Convention::kBook), 10e-6) << "the book knows no kernels";
}

/// NCCL's table (src/graph/tuning.cc, rings in LL128: 1.9 us a hop over NVLink, 4.0 us over the network): N - 1 hops,
/// of which nodes - 1 leave a node; the first is in the 7 or 20 us that two ranks take. An all-reduce passes trees.
TEST_F(SwitchedTime, RingsWaitForEveryRank) {
  Efficiency e = ideal_efficiency(hw.efficiency);
  e.collectives.latency_scale_up.value = 7e-6;
  e.collectives.latency_scale_out.value = 20e-6;
  e.collectives.latency_growth.value = 0.65;
  e.collectives.ring_hop_scale_up.value = 1.9e-6;
  e.collectives.ring_hop_scale_out.value = 4e-6;
  const auto found = [&](const CollectiveGroup& group, CollectiveOp op, Convention convention = Convention::kExact) {
    return collective_time(collective_network(hw, e), group,
                           {.op = op, .bytes = BytesOf<Traced>(kV), .convention = convention});
  };
  const auto latency = [&](std::int64_t size, CollectiveOp op) { return value_of(found(ranks(size), op).latency); };
  EXPECT_DOUBLE_EQ(latency(2, CollectiveOp::kAllGather), 7e-6);
  EXPECT_DOUBLE_EQ(latency(8, CollectiveOp::kAllGather), 18.4e-6) << "7 + 6 x 1.9; 16.4 were measured on H100";
  EXPECT_DOUBLE_EQ(latency(32, CollectiveOp::kReduceScatter), 81.2e-6) << "20 + 28 x 1.9 + 2 x 4.0";
  EXPECT_DOUBLE_EQ(latency(1024, CollectiveOp::kAllGather), 20e-6 + 2206.4e-6)
      << "NCCL: 896 x 1.9 + 127 x 4.0 = 2210.4";
  EXPECT_DOUBLE_EQ(latency(32, CollectiveOp::kAllReduce), 20e-6 * (1 + 0.65 * 4));
  // A ring brings all but a rank's own part into a node through its eight ports.
  EXPECT_DOUBLE_EQ(value_of(found(ranks(32), CollectiveOp::kAllGather).bandwidth_time), kV * 31 / 32 / (8 * kLeaf));
  EXPECT_DOUBLE_EQ(value_of(found(ranks(32), CollectiveOp::kAllGather, Convention::kBook).bandwidth_time),
                   kV * 7 / 8 / kNode)
      << "the book knows no rings: the node binds";
}

/// One rank on each of four nodes: three hops, all over the network.
TEST_F(SwitchedTime, RingsOfNodesHopOverTheNetworkAlone) {
  Efficiency e = ideal_efficiency(hw.efficiency);
  e.collectives.latency_scale_out.value = 20e-6;
  e.collectives.ring_hop_scale_up.value = 1.9e-6;
  e.collectives.ring_hop_scale_out.value = 4e-6;
  const CollectiveTime found =
      collective_time(collective_network(hw, e), ranks(4, 8),
                      {.op = CollectiveOp::kAllGather, .bytes = BytesOf<Traced>(kV), .convention = Convention::kExact});
  EXPECT_DOUBLE_EQ(value_of(found.latency), 28e-6) << "20 + 2 x 4.0";
}

/// An engine's own kernels: a ramp of 6 us and doubling until a MB, and a factor on everything.
TEST_F(SwitchedTime, SmallCollectivesOfAnEngineRamp) {
  Efficiency e = ideal_efficiency(hw.efficiency);
  e.serving.latency_scale_up.value = 4e-6;
  e.serving.latency_growth.value = 0.25;
  e.serving.collective_ramp.value = 6e-6;
  e.serving.collective_factor.value = 1.2;
  const auto time = [&](double bytes) {
    return value_of(
        collective_time(
            collective_network(hw, e, true), ranks(8),
            {.op = CollectiveOp::kAllReduce, .bytes = BytesOf<Traced>(bytes), .convention = Convention::kExact})
            .time);
  };
  const double latency = 4e-6 * 1.5;
  EXPECT_DOUBLE_EQ(time(2e6), 1.2 * (latency + 3 * 6e-6 + 2 * 2e6 * 7 / 8 / kNode));
  EXPECT_DOUBLE_EQ(time(1e5), 1.2 * (latency + 3 * 6e-6 / 10 + 2 * 1e5 * 7 / 8 / kNode));
}

TEST_F(SwitchedTime, AGroupOfOneIsFree) {
  EXPECT_EQ(value_of(run(hw, ranks(1), CollectiveOp::kAllGather).time), 0);
  EXPECT_EQ(value_of(run(hw, ranks(1, 32), CollectiveOp::kAllReduce, kV, Convention::kExact).time), 0);
  EXPECT_EQ(run(hw, ranks(1), CollectiveOp::kAllGather).algorithm, "none");
}

TEST(CollectiveExplained, FormulaNamesItsInputs) {
  const HardwareSpec hw = test::switched_chip();
  const std::vector<ExplainedStep> steps =
      explain(run(hw, switched_group(hw, 8), CollectiveOp::kAllGather).time.value());
  ASSERT_FALSE(steps.empty());
  EXPECT_NE(steps.front().formula.find("(D_node - 1) / D_node"), std::string::npos) << steps.front().formula;
}

/// The root of a gather receives V (N-1)/N over its links, as every member of an all-gather does; at the end of a line
/// over one. A broadcast sends all of V: in pieces round both ways of a ring, each link carries half of it.
TEST_F(TorusTime, RootsSendAndReceiveOverTheirOwnLinks) {
  for (const CollectiveOp op : {CollectiveOp::kGather, CollectiveOp::kScatter}) {
    EXPECT_DOUBLE_EQ(value_of(run(hw, axis(4, false), op).time), kV * 3 / 4 / kLink);
    EXPECT_DOUBLE_EQ(value_of(run(hw, axis(8, true), op, kV, Convention::kExact).time), kV * 7 / 8 / (2 * kLink));
  }
  for (const CollectiveOp op : {CollectiveOp::kBroadcast, CollectiveOp::kReduce}) {
    EXPECT_DOUBLE_EQ(value_of(run(hw, axis(4, false), op).time), kV / kLink);
    EXPECT_DOUBLE_EQ(value_of(run(hw, axis(8, true), op, kV, Convention::kExact).time), kV / (2 * kLink));
  }
}

TEST(SwitchedRoots, ReceiveWhatLiesOutsideThemOverTheirLink) {
  const HardwareSpec hw = test::switched_chip();
  const CollectiveGroup two = switched_group(hw, 16);
  // 15/16 of V over the root's link into its node, 1/2 of it over the node's uplinks.
  const double node = kV * 15 / 16 / kNode;
  const double leaf = kV / 2 / (8 * kLeaf);
  EXPECT_DOUBLE_EQ(value_of(run(hw, two, CollectiveOp::kGather).bandwidth_time), std::max(node, leaf));
  EXPECT_DOUBLE_EQ(value_of(run(hw, two, CollectiveOp::kBroadcast).bandwidth_time),
                   std::max(kV / kNode, kV / (8 * kLeaf)));
  EXPECT_GE(value_of(run(hw, two, CollectiveOp::kGather).bandwidth_time),
            value_of(run(hw, two, CollectiveOp::kAllGather).bandwidth_time));
}

}  // namespace
}  // namespace scalecalc
