#include "network/placement.h"

#include <gtest/gtest.h>

#include <array>

#include <algorithm>
#include <set>

#include "support/fixtures.h"

namespace scalecalc {
namespace {

std::int64_t chips_of(const Placement& p) {
  std::int64_t out = 1;
  for (const Group& g : p.dims) out *= g.size();
  return out;
}

TEST(TorusPlacement, CoversEveryChipOnceAndKeepsDegrees) {
  const HardwareSpec hw = test::torus_chip();
  const Slice slice = slices_of(hw, 512, 1).at(0);
  const Degrees degrees{8, 2, 16, 1, 2};
  const std::vector<Placement> all = placements(hw, slice, degrees);
  ASSERT_FALSE(all.empty());
  for (const Placement& p : all) {
    EXPECT_EQ(chips_of(p), 512);
    for (std::size_t d = 0; d < kMeshDims; ++d) EXPECT_EQ(p.dims[d].size(), degrees[d]);
    for (std::size_t a = 0; a < 3; ++a) {
      std::int64_t axis = 1;
      for (const Group& g : p.dims) axis *= g.axes[a].size;
      EXPECT_EQ(axis, slice.shape[a]);
    }
  }
}

TEST(TorusPlacement, AWholeAxisIsARingAPartIsALine) {
  const HardwareSpec hw = test::torus_chip();
  const Slice slice = slices_of(hw, 512, 1).at(0);
  bool whole = false;
  bool part = false;
  for (const Placement& p : placements(hw, slice, {8, 1, 64, 1, 1})) {
    const AxisPart& x = p.of(MeshDim::kTp).axes[0];
    if (x.size == 8) whole = x.ring;
    if (x.size == 4) part = !x.ring;
  }
  EXPECT_TRUE(whole);
  EXPECT_TRUE(part);
}

TEST(TorusPlacement, DegreesThatDoNotDivideTheAxesDoNotFit) {
  const HardwareSpec hw = test::torus_chip();
  const Slice slice = slices_of(hw, 512, 1).at(0);
  EXPECT_TRUE(placements(hw, slice, {3, 1, 171, 1, 1}).empty());
}

TEST(TorusPlacement, SlicesGoToTheOuterDimensions) {
  const HardwareSpec hw = test::torus_chip();
  const Slice slice = slices_of(hw, 1024, 2).at(0);
  for (const Placement& p : placements(hw, slice, {8, 1, 64, 2, 1})) {
    EXPECT_EQ(p.of(MeshDim::kTp).tiers[1], 1);
    EXPECT_EQ(p.of(MeshDim::kFsdp).tiers[1] * p.of(MeshDim::kDp).tiers[1], 2);
  }
}

TEST(TorusPlacement, MirroredOnesComeOnceIfAskedFor) {
  const HardwareSpec hw = test::torus_chip();
  const Slice slice = slices_of(hw, 512, 1).at(0);  // 8x8x8: three axes alike
  const Degrees degrees{8, 2, 16, 1, 2};
  // What each axis holds, whichever axis it is.
  const auto contents = [](const Placement& p) {
    std::vector<std::vector<std::int64_t>> axes(3);
    for (const Group& g : p.dims) {
      for (std::size_t a = 0; a < 3; ++a) axes[a].push_back(g.axes[a].size);
    }
    std::sort(axes.begin(), axes.end());
    return axes;
  };
  std::set<std::vector<std::vector<std::int64_t>>> all, once;
  for (const Placement& p : placements(hw, slice, degrees)) all.insert(contents(p));
  const std::vector<Placement> few = placements(hw, slice, degrees, false);
  for (const Placement& p : few) once.insert(contents(p));
  EXPECT_EQ(once, all);
  EXPECT_EQ(once.size(), few.size());
}

TEST(SwitchedPlacement, FillsNodesFromTheInside) {
  const HardwareSpec hw = test::switched_chip();
  const Slice slice = slices_of(hw, 256, 1).at(0);
  const std::vector<Placement> all = placements(hw, slice, {4, 1, 8, 1, 8});
  const auto usual =
      std::find_if(all.begin(), all.end(), [](const Placement& p) { return p.order == "tp-cp-fsdp-dp-pp"; });
  ASSERT_NE(usual, all.end());
  EXPECT_EQ(usual->of(MeshDim::kTp).tiers[0], 4);
  EXPECT_EQ(usual->of(MeshDim::kFsdp).tiers[0], 2);
  EXPECT_EQ(usual->of(MeshDim::kFsdp).tiers[1], 4);
  EXPECT_EQ(usual->of(MeshDim::kPp).tiers[2], 8);
}

TEST(SwitchedPlacement, AGroupThatStraddlesNodesUnevenlyDoesNotFit) {
  const HardwareSpec hw = test::switched_chip();
  const Slice slice = slices_of(hw, 96, 1).at(0);
  EXPECT_TRUE(placements(hw, slice, {6, 1, 16, 1, 1}).empty());
}

/// 256 chips in racks of 72 are 64 in each of four; a scalable unit of eight racks then holds 512 of the job's.
TEST(SwitchedPlacement, NestsInTheEvenPartOfEachDomain) {
  const HardwareSpec hw = test::shipped_chip("gb200-nvl72");
  const auto data = [&](std::int64_t chips) {
    const std::vector<Placement> all = placements(hw, slices_of(hw, chips, 1).at(0), {8, 1, 1, chips / 8, 1});
    return all.empty() ? Group{} : all.front().of(MeshDim::kDp);
  };
  EXPECT_EQ(data(256).tiers, (std::array<std::int64_t, kMaxTiers>{8, 4, 1, 1}));
  EXPECT_EQ(data(1024).tiers, (std::array<std::int64_t, kMaxTiers>{8, 8, 2, 1}));
  EXPECT_EQ(data(2304).tiers, (std::array<std::int64_t, kMaxTiers>{9, 8, 4, 1}));
}

TEST(SwitchedPlacement, SevenNodesMayCrossALeafUnevenly) {
  const HardwareSpec hw = test::switched_chip();
  const Slice slice = slices_of(hw, 56, 1).at(0);
  const std::vector<Placement> all = placements(hw, slice, {1, 1, 56, 1, 1});
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all.front().of(MeshDim::kFsdp).tiers, (std::array<std::int64_t, kMaxTiers>{8, 1, 7, 1}));
}

TEST(Fold, TakesTheInnermostRanks) {
  Group cp;
  cp.tiers = {2, 1, 1, 1};
  Group data;
  data.tiers = {4, 4, 8, 1};
  Group folded;
  Group rest;
  ASSERT_TRUE(fold(std::array<const Group*, 2>{&cp, &data}, 16, folded, rest));
  EXPECT_EQ(folded.tiers, (std::array<std::int64_t, kMaxTiers>{8, 2, 1, 1}));
  EXPECT_EQ(folded.size() * rest.size(), cp.size() * data.size());
  EXPECT_FALSE(fold(std::array<const Group*, 2>{&cp, &data}, 3, folded, rest));
}

}  // namespace
}  // namespace scalecalc
