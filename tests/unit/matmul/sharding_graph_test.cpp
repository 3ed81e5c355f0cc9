#include "matmul/sharding.h"

#include <gtest/gtest.h>

#include <limits>

namespace scalecalc {
namespace {

constexpr AxisMask kX = 1;
constexpr AxisMask kY = 2;

/// A mesh of 4 x 2 and A[8, 8] on it; collectives take their bytes over the number of axes, an all-reduce twice that.
class Graph : public testing::Test {
 protected:
  Graph() {
    tables.mesh.axes = {{"X", 4, {4}}, {"Y", 2, {2}}};
    tables.dims = {{"I", 8}, {"J", 8}};
    array = {"A", DType::kInt8, {0, 1}, {}};
  }

  std::optional<Route> route(const Sharding& from, const Sharding& to, AxisMask frozen = 0) {
    ShardingGraph graph(tables, array, from.partial, seconds);
    return graph.route(from, to, frozen);
  }

  static std::vector<StepKind> kinds(const std::optional<Route>& route) {
    std::vector<StepKind> out;
    for (const ReshardStep& step : route.value().steps) out.push_back(step.kind);
    return out;
  }

  ShardingTables tables;
  ShardedArray array;
  CollectiveSeconds seconds = [](StepKind kind, AxisMask axes, double bytes) {
    const double factor = kind == StepKind::kAllReduce ? 2 : kind == StepKind::kAllToAll ? 0.25 : 1;
    return factor * bytes / (axes == (kX | kY) ? 2 : 1);
  };
};

using Kinds = std::vector<StepKind>;

TEST_F(Graph, OneStepWhereOneWillDo) {
  const std::optional<Route> gather = route({{{0}, {}}}, {{{}, {}}}, kY);
  EXPECT_EQ(kinds(gather), Kinds{StepKind::kAllGather});
  EXPECT_EQ(gather->seconds, 64) << "V of an all-gather is what it leaves";
  const std::optional<Route> scatter = route({{{}, {}}, kX}, {{{0}, {}}}, kY);
  EXPECT_EQ(kinds(scatter), Kinds{StepKind::kReduceScatter});
  EXPECT_EQ(scatter->seconds, 64) << "V of a reduce-scatter is what it takes";
  const std::optional<Route> all_to_all = route({{{0}, {}}}, {{{}, {0}}}, kY);
  EXPECT_EQ(kinds(all_to_all), Kinds{StepKind::kAllToAll});
  EXPECT_EQ(all_to_all->seconds, 16) << "V of an all-to-all is the array of all members";
  EXPECT_EQ(kinds(route({{{}, {}}}, {{{0}, {1}}})), Kinds{StepKind::kSlice});
  EXPECT_EQ(kinds(route({{{}, {}}, kX}, {{{}, {}}}, kY)), Kinds{StepKind::kAllReduce});
  EXPECT_TRUE(kinds(route({{{0}, {}}}, {{{0}, {}}})).empty());
}

TEST_F(Graph, AnAxisThatCutsAnotherDimensionDividesTheBytes) {
  EXPECT_EQ(route({{{0}, {1}}}, {{{}, {1}}})->seconds, 32);
  EXPECT_EQ(route({{{0}, {1}}}, {{{}, {}}})->seconds, 32) << "both at once, over both axes";
}

TEST_F(Graph, AnIdleAxisHelps) {
  const std::optional<Route> fastest = route({{{0}, {}}}, {{{}, {}}});
  EXPECT_EQ(kinds(fastest), (Kinds{StepKind::kSlice, StepKind::kAllGather}));
  EXPECT_EQ(fastest->seconds, 32);
  EXPECT_EQ(fastest->steps[1].axes, kX | kY);
}

TEST_F(Graph, BlocksStayContiguous) {
  // I_XY to I_X: drop the inner axis. I_XY to I_Y: everything must go first.
  EXPECT_EQ(kinds(route({{{0, 1}, {}}}, {{{0}, {}}})), Kinds{StepKind::kAllGather});
  EXPECT_EQ(kinds(route({{{0, 1}, {}}}, {{{1}, {}}})), (Kinds{StepKind::kAllGather, StepKind::kSlice}));
}

TEST_F(Graph, WhatCannotBe) {
  EXPECT_FALSE(route({{{0}, {}}}, {{{}, {}}}, kX | kY)) << "the axis that must move is frozen";
  EXPECT_FALSE(route({{{0}, {}}}, {{{}, {}}, kX})) << "nothing makes partial sums";
  tables.dims[1].size = 6;
  EXPECT_FALSE(route({{{0}, {}}}, {{{}, {0}}})) << "6 does not divide over 4";
  seconds = [](StepKind, AxisMask, double) { return std::numeric_limits<double>::infinity(); };
  EXPECT_FALSE(route({{{0}, {}}}, {{{}, {}}}));
}

TEST(AssignAxes, EveryWayOnce) {
  std::size_t count = 0;
  assign_axes(0b111, 2, [&](const std::vector<AxisList>&) { ++count; });
  // Of 3 axes, k of them in order over 2 lists: 1 + 3*2 + 3*6 + 24.
  EXPECT_EQ(count, 49U);
}

TEST(Unmoved, ByPlaceNotByOrder) {
  const Sharding a{{{0, 1}, {}}, 0b100};
  EXPECT_EQ(unmoved(a, {{{1, 0}, {}}, 0b100}, 3), 0b111U);
  EXPECT_EQ(unmoved(a, {{{1}, {0}}, 0}, 3), 0b010U);
}

}  // namespace
}  // namespace scalecalc
