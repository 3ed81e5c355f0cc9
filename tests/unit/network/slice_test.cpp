#include "network/slice.h"

#include <gtest/gtest.h>

#include "support/fixtures.h"

namespace scalecalc {
namespace {

TEST(Slices, FullV5pPodIsItsPodShapeWithEveryAxisWrapped) {
  const std::vector<Slice> slices = slices_of(test::shipped_chip("tpu-v5p"), 8960, 1);
  ASSERT_EQ(slices.size(), 1u);
  EXPECT_EQ(slices[0].name(), "16x20x28");
  EXPECT_EQ(slices[0].wraps, (std::vector<bool>{true, true, true}));
}

TEST(Slices, SubCubeSlicesDoNotWrap) {
  const std::vector<Slice> slices = slices_of(test::shipped_chip("tpu-v5p"), 16, 1);
  ASSERT_EQ(slices.size(), 1u);
  EXPECT_EQ(slices[0].name(), "2x2x4");
  EXPECT_EQ(slices[0].wraps, (std::vector<bool>{false, false, false}));
}

/// Scaling book, chapter 2: an 8x16 slice of v5e wraps on the axis of 16 only.
TEST(Slices, V5eWrapsOnlyAFullAxis) {
  const std::vector<Slice> slices = slices_of(test::shipped_chip("tpu-v5e"), 128, 1);
  ASSERT_EQ(slices.size(), 1u);
  EXPECT_EQ(slices[0].shape, (Shape{8, 16}));
  EXPECT_EQ(slices[0].wraps, (std::vector<bool>{false, true}));
}

TEST(Slices, TwistedTorusWhereOneAxisIsTwiceTheOthers) {
  EXPECT_TRUE(slice_of_shape(test::shipped_chip("tpu-v4"), {4, 4, 8}, 1).at(0).twisted);
  EXPECT_FALSE(slice_of_shape(test::shipped_chip("tpu-v4"), {4, 8, 12}, 1).at(0).twisted);
  EXPECT_FALSE(slice_of_shape(test::shipped_chip("tpu-v4"), {8, 8, 8}, 1).at(0).twisted);
}

TEST(Slices, OneAxisByItself) {
  const TorusTier v5p = test::shipped_chip("tpu-v5p").network.front().torus;
  EXPECT_EQ(axis_wraps(v5p, 8), true);
  EXPECT_EQ(axis_wraps(v5p, 2), false) << "below a unit";
  EXPECT_EQ(axis_wraps(v5p, 6), std::nullopt);
  EXPECT_EQ(axis_wraps(v5p, 32), std::nullopt) << "longer than the pod";
  const TorusTier v5e = test::shipped_chip("tpu-v5e").network.front().torus;
  EXPECT_EQ(axis_wraps(v5e, 16), true);
  EXPECT_EQ(axis_wraps(v5e, 8), false);
  EXPECT_EQ(axis_wraps(v5e, 3), std::nullopt) << "not among the shapes rented out";
}

TEST(Slices, CountsNobodyBuildsNameTheNearest) {
  const HardwareSpec hw = test::shipped_chip("tpu-v5p");
  EXPECT_TRUE(slices_of(hw, 100, 1).empty());
  const SliceError error = no_slice(hw, 100, 1);
  EXPECT_EQ(error.message, "no tpu-v5p slice has 100 chips");
  EXPECT_EQ(error.hint, "the nearest that exist: --chips 64 or 128");
}

TEST(Slices, MoreThanAPodAsksForSlices) {
  const SliceError error = no_slice(test::shipped_chip("tpu-v5p"), 10000, 1);
  EXPECT_EQ(error.message, "10,000 chips are more than one tpu-v5p pod of 8,960");
  EXPECT_EQ(error.hint, "join pods over its dcn network with --slices 2 and --chips 9600 or 10240");
  EXPECT_EQ(no_slice(test::shipped_chip("tpu-v5p"), 1048576, 1).hint,
            "join pods over its dcn network with --slices 256");  // 128 slices of 8,192 chips are not built
}

/// Where a question has no --slices, no hint names it: a pod of Trainium 2 is 4 x 4.
TEST(Slices, OfOneSliceOnlyCountsAreNamed) {
  const HardwareSpec hw = test::shipped_chip("trainium2");
  EXPECT_EQ(no_single_slice(hw, 64).message, "64 chips are more than one trainium2 pod of 16");
  EXPECT_EQ(no_single_slice(hw, 64).hint, "the nearest that exist: --chips 16");
  EXPECT_EQ(no_single_slice(test::shipped_chip("tpu-v5p"), 100).hint, "the nearest that exist: --chips 64 or 128");
}

TEST(Slices, SwitchedMachinesFillHosts) {
  const HardwareSpec hw = test::switched_chip();
  EXPECT_EQ(slices_of(hw, 4, 1).size(), 1u) << "part of one host";
  EXPECT_EQ(slices_of(hw, 16, 1).size(), 1u);
  EXPECT_TRUE(slices_of(hw, 12, 1).empty());
  EXPECT_EQ(no_slice(hw, 12, 1).hint, "the nearest that exist: --chips 8 or 16");
}

/// Racks of 72 in hosts of 4: as few racks as the count divides over, all filled alike.
TEST(Slices, DomainsAreFilledEvenly) {
  for (const char* name : {"gb200-nvl72", "gb300-nvl72"}) {
    const HardwareSpec hw = test::shipped_chip(name);
    const auto part = [&](std::int64_t chips) { return slices_of(hw, chips, 1).at(0).per_domain; };
    EXPECT_EQ(part(1), 1);
    EXPECT_EQ(part(4), 4);
    EXPECT_EQ(part(64), 64);
    EXPECT_EQ(part(72), 72);
    EXPECT_EQ(part(128), 64);
    EXPECT_EQ(part(256), 64);
    EXPECT_EQ(part(512), 64);
    EXPECT_EQ(part(1024), 64);
    EXPECT_EQ(part(2304), 72);
    EXPECT_EQ(part(148), 4) << "37 hosts divide over no fewer racks";
  }
  EXPECT_EQ(slices_of(test::switched_chip(), 6, 1).at(0).per_domain, 6);
  EXPECT_EQ(slices_of(test::switched_chip(), 24, 1).at(0).per_domain, 8);
  EXPECT_EQ(slices_of(test::torus_chip(), 64, 1).at(0).per_domain, 0);
}

TEST(Slices, OnlyTorusMachinesAreJoinedFromSlices) {
  EXPECT_EQ(no_slice(test::switched_chip(), 16, 2).message,
            "--slices 2 joins torus slices over an outer network, which test-chip has not");
}

TEST(Slices, SeveralSlicesOverTheDataCentreNetwork) {
  const std::vector<Slice> slices = slices_of(test::torus_chip(), 1024, 2);
  ASSERT_EQ(slices.size(), 1u);
  EXPECT_EQ(slices[0].name(), "2 x 8x8x8");
  EXPECT_EQ(slices[0].chips, 1024);
}

TEST(ParseShape, ReadsAxesOrNothing) {
  EXPECT_EQ(parse_shape("16x20x28"), (Shape{16, 20, 28}));
  EXPECT_TRUE(parse_shape("16x").empty());
  EXPECT_TRUE(parse_shape("axb").empty());
  EXPECT_TRUE(parse_shape("0x4").empty());
}

}  // namespace
}  // namespace scalecalc
