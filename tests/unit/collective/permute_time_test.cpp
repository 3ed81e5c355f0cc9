#include "collective/collective_place.h"

#include <gtest/gtest.h>

#include "base/diagnostic.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

PermuteTime run(const HardwareSpec& hw, const CollectiveMesh& mesh, const PermuteRequest& request) {
  return permute_time(collective_network(hw, ideal_efficiency(hw.efficiency)), mesh, place_collective(hw, mesh),
                      request);
}

PermuteRequest way(MeshPosition from, MeshPosition to) {
  return {.bytes = BytesOf<Traced>(1e6), .from = std::move(from), .to = std::move(to)};
}

class OverTorus : public testing::Test {
 protected:
  HardwareSpec hw = test::torus_chip();
  CollectiveMesh mesh{.axes = {{"X", 8}, {"Y", 8}, {"Z", 4}}};
};

/// Book, chapter 2, question 5: hops and transfer add, over one link for each axis in which the two differ.
TEST_F(OverTorus, TheShortWayRound) {
  const PermuteTime found = run(hw, mesh, way({0, 0, 1}, {7, 3, 1}));
  EXPECT_EQ(found.hops, 1 + 3) << "one step back over the wraparound";
  EXPECT_EQ(found.ports, 2);
  EXPECT_DOUBLE_EQ(value_of(found.time), 4e-6 + 1e6 / (2 * 50e9));
  mesh.wraparound = false;
  EXPECT_EQ(run(hw, mesh, way({0, 0, 1}, {7, 3, 1})).hops, 7 + 3);
}

TEST_F(OverTorus, PortsMayBeGiven) {
  PermuteRequest request = way({0, 0, 0}, {1, 1, 1});
  EXPECT_EQ(run(hw, mesh, request).ports, 3);
  request.ports = 1;
  EXPECT_DOUBLE_EQ(value_of(run(hw, mesh, request).bandwidth_time), 1e6 / 50e9);
}

TEST_F(OverTorus, ToItselfIsFree) {
  const PermuteTime found = run(hw, mesh, way({1, 2, 3}, {1, 2, 3}));
  EXPECT_EQ(value_of(found.time), 0);
  EXPECT_EQ(found.tier, "");
}

TEST_F(OverTorus, NeighboursTakeOneHop) {
  mesh.over = {"Y"};
  const PermuteTime found = run(hw, mesh, {.bytes = BytesOf<Traced>(1e6)});
  EXPECT_DOUBLE_EQ(value_of(found.time), 1e-6 + 1e6 / 50e9);
  mesh.over = {"X", "Y"};
  EXPECT_THROW(run(hw, mesh, {.bytes = BytesOf<Traced>(1e6)}), UserError);
}

TEST_F(OverTorus, WrongPositions) {
  EXPECT_THROW(run(hw, mesh, way({0, 0}, {1, 1})), UserError);
  EXPECT_THROW(run(hw, mesh, way({0, 0, 0}, {8, 1, 1})), UserError);
  mesh.axes.push_back({"dcn", 2});
  EXPECT_THROW(run(hw, mesh, way({0, 0, 0, 0}, {0, 0, 0, 1})), UserError) << "another slice";
  mesh.over = {"dcn"};
  EXPECT_DOUBLE_EQ(value_of(run(hw, mesh, {.bytes = BytesOf<Traced>(1e6)}).bandwidth_time), 1e6 / 5e9);
}

TEST(BetweenRanks, OverTheLowestTierThatHoldsBoth) {
  const HardwareSpec hw = test::switched_chip();
  const CollectiveMesh mesh{.axes = {{"X", 64}}};
  const auto tier = [&](std::int64_t from, std::int64_t to) { return run(hw, mesh, way({from}, {to})).tier; };
  EXPECT_EQ(tier(0, 7), "node");
  EXPECT_EQ(tier(7, 8), "leaf");
  EXPECT_DOUBLE_EQ(value_of(run(hw, mesh, way({0}, {7})).time), 1e-5 + 1e6 / 400e9);
  EXPECT_DOUBLE_EQ(value_of(run(hw, mesh, way({0}, {63})).time), 1e-5 + 1e6 / 50e9);
  EXPECT_EQ(value_of(run(hw, mesh, way({5}, {5})).time), 0);
  EXPECT_THROW(run(hw, mesh, way({0}, {64})), UserError);
  PermuteRequest ports = way({0}, {1});
  ports.ports = 2;
  EXPECT_THROW(run(hw, mesh, ports), UserError);
  // Coordinates of a mesh of two axes are one rank.
  const CollectiveMesh two{.axes = {{"X", 8}, {"Y", 8}}};
  EXPECT_EQ(run(hw, two, way({0, 7}, {1, 0})).tier, "leaf");
}

/// The slowest pair of neighbours counts, as for the planner's channels.
TEST(BetweenRanks, NeighboursOfAGroupCrossItsOutermostTier) {
  const HardwareSpec hw = test::switched_chip();
  CollectiveMesh mesh{.axes = {{"X", 16}}, .over = {"X"}};
  EXPECT_EQ(run(hw, mesh, {.bytes = BytesOf<Traced>(1e6)}).tier, "leaf");
  mesh.axes = {{"X", 8}};
  EXPECT_EQ(run(hw, mesh, {.bytes = BytesOf<Traced>(1e6)}).tier, "node");
}

}  // namespace
}  // namespace scalecalc
