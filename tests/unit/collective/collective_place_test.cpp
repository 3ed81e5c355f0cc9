#include "collective/collective_place.h"

#include <gtest/gtest.h>

#include "base/diagnostic.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

/// The first problem's message, empty if there is none.
template <class F>
std::string place_problem(F&& run) {
  try {
    run();
  } catch (const UserError& error) {
    return error.diagnostics().front().message + " | " + error.diagnostics().front().hint;
  }
  return "";
}

CollectiveMesh mesh_over(std::vector<NamedAxis> axes, std::vector<std::string> over) {
  CollectiveMesh out;
  out.axes = std::move(axes);
  out.over = std::move(over);
  return out;
}

double bytes_of(const char* text, const CollectiveMesh& mesh, std::optional<CollectiveOp> op) {
  return value_of(group_bytes(std::get<SizedArray>(parse_sized_array(text)), mesh, op));
}

class TorusPlaces : public testing::Test {
 protected:
  HardwareSpec hw = test::torus_chip();
};

TEST_F(TorusPlaces, WholeUnitsWrapSmallSlicesDoNot) {
  const CollectivePlace units = place_collective(hw, mesh_over({{"A", 4}, {"B", 8}, {"C", 4}}, {"B"}));
  ASSERT_EQ(units.group.axes.size(), 1u);
  EXPECT_EQ(units.group.axes[0].name, "B");
  EXPECT_TRUE(units.group.axes[0].wraps);
  EXPECT_EQ(units.group.inner, 16);
  const CollectivePlace small = place_collective(hw, mesh_over({{"A", 2}, {"B", 4}, {"C", 2}}, {"A", "B"}));
  EXPECT_FALSE(small.group.axes[1].wraps);
  EXPECT_NE(small.assumptions.at(0).text.find("without wraparound"), std::string::npos);
}

/// Book, chapter 2: an axis of v5e wraps if it spans the pod.
TEST_F(TorusPlaces, AFullAxisWrapsWhereverItStands) {
  const HardwareSpec v5e = test::shipped_chip("book/tpu-v5e");
  const CollectivePlace found = place_collective(v5e, mesh_over({{"X", 16}, {"Y", 8}}, {"X", "Y"}));
  EXPECT_TRUE(found.group.axes[0].wraps);
  EXPECT_FALSE(found.group.axes[1].wraps);
}

TEST_F(TorusPlaces, OneAxisStandsForALargerSlice) {
  const CollectivePlace ring = place_collective(hw, mesh_over({{"X", 8}}, {"X"}));
  EXPECT_TRUE(ring.group.axes[0].wraps);
  EXPECT_NE(ring.assumptions.at(0).text.find("larger"), std::string::npos);
  EXPECT_FALSE(place_collective(hw, mesh_over({{"X", 2}}, {"X"})).group.axes[0].wraps);
  EXPECT_NE(place_problem([&] {
              place_collective(hw, mesh_over({{"X", 3}}, {"X"}));
            }).find("no test-chip slice has an axis of 3"),
            std::string::npos);
}

TEST_F(TorusPlaces, WraparoundMayBeForced) {
  CollectiveMesh mesh = mesh_over({{"X", 3}, {"Y", 5}, {"Z", 1}}, {"X"});
  EXPECT_NE(place_problem([&] { place_collective(hw, mesh); }).find("--wraparound"), std::string::npos);
  mesh.wraparound = true;
  EXPECT_TRUE(place_collective(hw, mesh).group.axes[0].wraps);
  mesh.wraparound = false;
  EXPECT_FALSE(place_collective(hw, mesh).group.axes[0].wraps);
}

TEST_F(TorusPlaces, ATiersNameCountsSlices) {
  const CollectivePlace place =
      place_collective(hw, mesh_over({{"X", 4}, {"Y", 4}, {"Z", 4}, {"dcn", 2}}, {"X", "dcn"}));
  EXPECT_EQ(place.group.size(), 8);
  ASSERT_EQ(place.group.levels.size(), 1u);
  EXPECT_EQ(place.group.levels[0].below, 4);
  EXPECT_EQ(place.group.levels[0].chips_below, 64);
  EXPECT_NE(place_problem([&] {
              place_collective(hw, mesh_over({{"A", 4}, {"B", 4}, {"C", 4}, {"D", 4}}, {"A"}));
            }).find("dcn"),
            std::string::npos);
}

TEST_F(TorusPlaces, AllAxesOfATwistedSliceExchangeFaster) {
  hw.network[0].torus.twisted = true;
  const std::vector<NamedAxis> axes{{"X", 8}, {"Y", 4}, {"Z", 4}};
  EXPECT_DOUBLE_EQ(place_collective(hw, mesh_over(axes, {"X", "Y", "Z"})).group.twist_gain, 1.63);
  EXPECT_DOUBLE_EQ(place_collective(hw, mesh_over(axes, {"X", "Y"})).group.twist_gain, 1);
}

TEST_F(TorusPlaces, WrongNamesGetTheNearest) {
  EXPECT_NE(place_problem([&] {
              place_collective(hw, mesh_over({{"data", 4}}, {"dta"}));
            }).find("did you mean 'data'"),
            std::string::npos);
  CollectiveMesh mesh = mesh_over({{"X", 4}, {"Y", 4}, {"Z", 4}}, {"X"});
  mesh.replicated = {"X"};
  EXPECT_NE(place_problem([&] { place_collective(hw, mesh); }).find("both"), std::string::npos);
}

TEST(SwitchedPlaces, TheLastAxisIsInnermost) {
  const HardwareSpec hw = test::switched_chip();
  const CollectivePlace inner = place_collective(hw, mesh_over({{"X", 4}, {"Y", 8}}, {"Y"}));
  EXPECT_EQ(inner.group.levels.size(), 1u);
  const CollectivePlace outer = place_collective(hw, mesh_over({{"X", 4}, {"Y", 8}}, {"X"}));
  EXPECT_EQ(outer.group.inner, 8);
  EXPECT_EQ(outer.group.levels.at(0).members, 1);
  EXPECT_EQ(outer.group.levels.at(1).members, 4);
  EXPECT_EQ(outer.group.levels.at(1).below, 1);
  // Two axes with one between them.
  const CollectivePlace split = place_collective(hw, mesh_over({{"X", 4}, {"Y", 4}, {"Z", 2}}, {"X", "Z"}));
  EXPECT_EQ(split.group.size(), 8);
  EXPECT_EQ(split.group.levels.at(0).members, 2);
  EXPECT_EQ(split.group.inner, 4);
  CollectiveMesh forced = mesh_over({{"X", 4}}, {"X"});
  forced.wraparound = true;
  EXPECT_NE(place_problem([&] { place_collective(hw, forced); }).find("no torus"), std::string::npos);
}

TEST(GroupBytes, OtherAxesDivideTheArray) {
  const CollectiveMesh mesh = mesh_over({{"X", 4}, {"Y", 2}, {"Z", 2}}, {"X"});
  EXPECT_EQ(bytes_of("bf16[1024_X,4096_Y]", mesh, CollectiveOp::kAllGather), 1024 * 4096 * 2 / 2);
  EXPECT_EQ(bytes_of("bf16[1024_X,4096_YZ]", mesh, CollectiveOp::kAllGather), 1024 * 4096 * 2 / 4);
  EXPECT_EQ(bytes_of("fp32[1024,4096]", mesh, CollectiveOp::kAllGather), 1024 * 4096 * 4) << "no subscript, no cut";
  EXPECT_EQ(bytes_of("int4[16_Y]", mesh, CollectiveOp::kAllReduce), 4);
  CollectiveMesh sharded = mesh;
  sharded.sharded = {"Y", "Z"};
  EXPECT_EQ(value_of(group_bytes(1e6, sharded)), 1e6 / 4);
  EXPECT_EQ(value_of(group_bytes(1e6, mesh)), 1e6);
}

TEST(GroupBytes, TheCutMustSuitTheCollective) {
  const CollectiveMesh mesh = mesh_over({{"X", 4}, {"Y", 2}}, {"X"});
  const auto wrong = [&](const char* text, CollectiveOp op) {
    return place_problem([&] { bytes_of(text, mesh, op); });
  };
  EXPECT_NE(wrong("bf16[8,8_Y]", CollectiveOp::kAllGather).find("not cut over axis X"), std::string::npos);
  EXPECT_NE(wrong("bf16[8_X,8]", CollectiveOp::kAllReduce).find("adds up whole copies"), std::string::npos);
  EXPECT_EQ(wrong("bf16[8_X,8]", CollectiveOp::kReduceScatter), "");
  EXPECT_EQ(wrong("bf16[8,8_Y]", CollectiveOp::kReduceScatter), "");
  EXPECT_NE(wrong("bf16[8_X,8_X]", CollectiveOp::kAllGather).find("twice"), std::string::npos);
  EXPECT_NE(wrong("bf16[6_X]", CollectiveOp::kAllGather).find("does not divide"), std::string::npos);
  EXPECT_NE(wrong("bf16[8_Q]", CollectiveOp::kAllGather).find("no axis 'Q'"), std::string::npos);
  CollectiveMesh copies = mesh;
  copies.replicated = {"Y"};
  EXPECT_NE(place_problem([&] { bytes_of("bf16[8_X,8_Y]", copies, CollectiveOp::kAllGather); }).find("holds no copies"),
            std::string::npos);
}

}  // namespace
}  // namespace scalecalc
