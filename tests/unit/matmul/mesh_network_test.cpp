#include "matmul/mesh_network.h"

#include <gtest/gtest.h>

#include "base/diagnostic.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

constexpr double kV = 1e9;
const BytesOf<Traced> kBytes{Traced(kV)};

Mesh mesh_of(std::vector<MeshAxis> axes) { return Mesh{std::move(axes)}; }

class MeshOn : public testing::Test {
 protected:
  MeshNetwork on(const HardwareSpec& hw, const Mesh& mesh, const MeshPlacement& placement = {}) {
    return {hw, ideal_efficiency(hw.efficiency), mesh, placement};
  }
  HardwareSpec torus = test::torus_chip();
  HardwareSpec switched = test::switched_chip();
};

TEST_F(MeshOn, ATorusByItsRule) {
  const Mesh whole = mesh_of({{"X", 4, {4}}, {"Y", 4, {4}}, {"Z", 8, {8}}});
  const MeshNetwork network = on(torus, whole);
  EXPECT_EQ(network.description(), "X=4 (ring), Y=4 (ring), Z=8 (ring)");
  EXPECT_DOUBLE_EQ(value_of(network.time(StepKind::kAllGather, 0b001, kBytes).time), kV / 100e9);
  EXPECT_DOUBLE_EQ(value_of(network.time(StepKind::kAllGather, 0b101, kBytes).time), kV / 200e9);
  MeshPlacement lines;
  lines.wraparound = false;
  EXPECT_DOUBLE_EQ(value_of(on(torus, whole, lines).time(StepKind::kAllReduce, 0b001, kBytes).time),
                   2 * kV * 3 / 4 / 50e9);
}

TEST_F(MeshOn, AnAxisAlongTwo) {
  const Mesh mesh = mesh_of({{"X", 32, {4, 8}}, {"Y", 4, {4}}});
  const MeshNetwork network = on(torus, mesh);
  EXPECT_EQ(network.description(), "X=4x8 (ring, ring), Y=4 (ring)");
  EXPECT_DOUBLE_EQ(value_of(network.time(StepKind::kAllGather, 0b01, kBytes).time), kV / 200e9);
  EXPECT_FALSE(network.time_with_doubled(StepKind::kAllGather, 0b01, 0, kBytes));
  EXPECT_DOUBLE_EQ(value_of(*network.time_with_doubled(StepKind::kAllGather, 0b10, 1, kBytes)), kV / 100e9);
}

TEST_F(MeshOn, ARingOfAllChips) {
  const Mesh mesh = mesh_of({{"X", 2, {2}}, {"Y", 2, {2}}});
  MeshPlacement placement;
  placement.ring = 4;
  const MeshNetwork network = on(torus, mesh, placement);
  EXPECT_FALSE(network.joins(0b01));
  EXPECT_TRUE(network.joins(0b11));
  EXPECT_DOUBLE_EQ(value_of(network.time(StepKind::kAllGather, 0b11, kBytes).time), kV / 100e9);
  EXPECT_EQ(network.description(), "2x2 on one ring");
}

TEST_F(MeshOn, SwitchesTakeTheLastAxisInnermost) {
  const Mesh mesh = mesh_of({{"X", 4, {4}}, {"Y", 8, {8}}});
  const MeshNetwork network = on(switched, mesh);
  EXPECT_DOUBLE_EQ(value_of(network.time(StepKind::kAllGather, 0b10, kBytes).time), kV * 7 / 8 / 400e9);
  EXPECT_GT(value_of(network.time(StepKind::kAllGather, 0b01, kBytes).time), kV * 3 / 4 / 51e9);
  EXPECT_EQ(network.description(), "X=4, Y=8");
  EXPECT_EQ(network.assumptions().back().text, "mesh axis Y lies innermost, X outermost");
}

TEST_F(MeshOn, WhatAChipReceives) {
  const Mesh mesh = mesh_of({{"X", 8, {8}}});
  const MeshNetwork network = on(switched, mesh);
  EXPECT_DOUBLE_EQ(value_of(network.received(StepKind::kAllGather, 1, kBytes)), kV * 7 / 8);
  EXPECT_DOUBLE_EQ(value_of(network.received(StepKind::kReduceScatter, 1, kBytes)), kV * 7 / 8);
  EXPECT_DOUBLE_EQ(value_of(network.received(StepKind::kAllReduce, 1, kBytes)), kV * 14 / 8);
  EXPECT_DOUBLE_EQ(value_of(network.received(StepKind::kAllToAll, 1, kBytes)), kV * 7 / 64);
  MeshPlacement adding;
  adding.in_network = InNetwork::kOn;
  EXPECT_DOUBLE_EQ(value_of(on(switched, mesh, adding).received(StepKind::kAllReduce, 1, kBytes)), kV)
      << "the switch sends the sum once";
}

}  // namespace
}  // namespace scalecalc
