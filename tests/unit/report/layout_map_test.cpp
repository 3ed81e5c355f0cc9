#include "report/layout_map.h"

#include <gtest/gtest.h>

#include <set>

#include "support/fixtures.h"

namespace scalecalc {
namespace {

const PlotCell& cell_at(const Plot& map, double x, double y, const std::string& panel = "") {
  for (const PlotCell& cell : map.cells) {
    if (cell.x == x && cell.y == y && cell.panel == panel) return cell;
  }
  throw std::out_of_range("no such chip");
}

/// Each chip has ranks of its own, and every combination is there.
void expect_whole(const Plot& map, std::size_t chips) {
  std::set<std::vector<double>> ranks;
  for (const PlotCell& cell : map.cells) ranks.insert(cell.ranks);
  EXPECT_EQ(map.cells.size(), chips);
  EXPECT_EQ(ranks.size(), chips);
}

TEST(LayoutMap, DimensionsNestOverTheChipsOfNodes) {
  const HardwareSpec hw = test::switched_chip();
  const Slice slice{.chips = 32, .per_domain = 8};
  for (const Placement& placement : placements(hw, slice, {4, 1, 1, 4, 2})) {
    expect_whole(layout_map(hw, slice, placement), 32);
  }
  // tp 4 inmost, then dp 4, then pp 2: chip 5 of node 1 is chip 13 = 1 + 4 (3 + 4 x 0), chip 2 of node 3 chip 26 =
  // 2 + 4 (2 + 4 x 1).
  const Plot map = layout_map(hw, slice, placements(hw, slice, {4, 1, 1, 4, 2}).front());
  EXPECT_EQ(map.map_dimensions, (std::vector<std::string>{"tp", "dp", "pp"}));
  EXPECT_EQ(cell_at(map, 5, 1).ranks, (std::vector<double>{1, 3, 0}));
  EXPECT_EQ(cell_at(map, 2, 3).ranks, (std::vector<double>{2, 2, 1}));
}

// tp 4 inmost, dp 4, pp 2, ep 8: experts whole on a chip (etp 1) fold over tp and the first two of dp, so that chip 13
// has tp 1, dp 3 and expert rank 1 + 4 x 3 mod 8 = 5; divided over tp (etp 4) over dp alone, ep 2: 3 mod 2 = 1.
TEST(LayoutMap, ExpertsFoldOverTensorAndDataRanks) {
  const HardwareSpec hw = test::switched_chip();
  const Slice slice{.chips = 32, .per_domain = 8};
  const Placement placement = placements(hw, slice, {4, 1, 1, 4, 2}).front();
  const Plot whole = layout_map(hw, slice, placement, 8, 1);
  EXPECT_EQ(whole.map_dimensions, (std::vector<std::string>{"tp", "dp", "pp", "ep"}));
  EXPECT_EQ(cell_at(whole, 5, 1).ranks, (std::vector<double>{1, 3, 0, 5}));
  EXPECT_EQ(cell_at(layout_map(hw, slice, placement, 2, 4), 5, 1).ranks, (std::vector<double>{1, 3, 0, 1}));
}

TEST(LayoutMap, ManyNodesStandBesideEachOther) {
  const HardwareSpec hw = test::switched_chip();
  const Slice slice{.chips = 160, .per_domain = 8};
  const Plot map = layout_map(hw, slice, placements(hw, slice, {8, 1, 1, 20, 1}).front());
  expect_whole(map, 160);
  EXPECT_EQ(cell_at(map, 0, 15, "0 to 15").ranks, (std::vector<double>{0, 15}));
  EXPECT_EQ(cell_at(map, 7, 19, "16 to 19").ranks, (std::vector<double>{7, 19}));
}

TEST(LayoutMap, DimensionsTakeAxesOfATorusOrPartsOfThem) {
  const HardwareSpec hw = test::torus_chip();
  const Slice slice = slices_of(hw, 64, 1).front();
  for (const Placement& placement : placements(hw, slice, {2, 1, 8, 1, 4})) {
    expect_whole(layout_map(hw, slice, placement), 64);
  }
  Placement halves;  // tp 2 inmost on x, fsdp the other half of x and y, pp on z
  halves.dims[0].axes = {{{2, 1}, {}, {}}};
  halves.dims[2].axes = {{{2, 2}, {4, 1}, {}}};
  halves.dims[4].axes = {{{}, {}, {4, 1}}};
  const Plot map = layout_map(hw, slice, halves);
  EXPECT_EQ(cell_at(map, 3, 2, "z = 1").ranks, (std::vector<double>{1, 1 + 2 * 2, 1}));
}

TEST(LayoutMap, APlacementOfAnotherMachineHasNone) {
  EXPECT_TRUE(layout_map(test::switched_chip(), {.chips = 16, .per_domain = 8}, {}).cells.empty());
}

}  // namespace
}  // namespace scalecalc
