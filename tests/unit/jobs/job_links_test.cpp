#include "jobs/job_part.h"

#include <gtest/gtest.h>

#include "base/diagnostic.h"
#include "network/slice.h"
#include "spec/load.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

HardwareSpec chip(const char* name) {
  const Catalog catalog;
  return load_hardware(catalog.load(CatalogKind::kHardware, name), catalog, Unpublished::kAllowed);
}

TEST(JobLinks, CountsAreThoseThatSlicesExistFor) {
  for (const char* name : {"h100-sxm", "tpu-v5e"}) {
    const HardwareSpec hw = chip(name);
    const std::vector<std::int64_t> counts = built_counts(hw, 64);
    std::vector<std::int64_t> expected;
    for (std::int64_t n = 1; n <= 64; ++n) {
      if (!slices_of(hw, n, 1).empty()) expected.push_back(n);
    }
    EXPECT_EQ(counts, expected) << name;
  }
}

TEST(JobLinks, EverySplitFillsAsMuchAsIsBuilt) {
  const HardwareSpec hw = chip("h100-sxm");
  const ChipSplits all = chip_splits(hw, 64);
  EXPECT_EQ(all.left_out, 0U);
  EXPECT_EQ(all.splits.size(), built_counts(hw, 63).size());
  for (const ChipSplit& split : all.splits) {
    EXPECT_LE(split.first + split.second, 64);
    EXPECT_EQ(split.second, nearest_below(hw, 64 - split.first, 1));
  }
  EXPECT_TRUE(chip_splits(hw, 1).splits.empty());
}

TEST(JobLinks, OfVeryManySplitsSomeAreLeftOutAndCounted) {
  const HardwareSpec hw = chip("h100-sxm");
  const ChipSplits some = chip_splits(hw, 4096);
  EXPECT_EQ(some.splits.size(), kMostSplits);
  EXPECT_EQ(some.splits.size() + some.left_out, built_counts(hw, 4095).size());
  EXPECT_EQ(some.splits.front().first, 1);
}

TEST(JobLinks, TheInnermostTierThatSpansTheChipsDecides) {
  const HardwareSpec hw = chip("h100-sxm");
  const double node = value_of(chip_ingress(hw, ideal_efficiency(hw.efficiency), 8, false));
  const double leaf = value_of(chip_ingress(hw, ideal_efficiency(hw.efficiency), 16, false));
  EXPECT_DOUBLE_EQ(node, hw.network[0].switched.bandwidth_per_chip.value());
  EXPECT_LT(leaf, node);
}

TEST(JobLinks, PoolsOnATorusAreSlicesJoinedOverTheNetworkBeyondIt) {
  const HardwareSpec hw = chip("tpu-v5p");
  const Efficiency ideal = ideal_efficiency(hw.efficiency);
  EXPECT_DOUBLE_EQ(value_of(chip_ingress(hw, ideal, 64, false)), hw.network[0].torus.link_bandwidth.value());
  EXPECT_LT(value_of(chip_ingress(hw, ideal, 64, true)), value_of(chip_ingress(hw, ideal, 64, false)));
}

TEST(JobLinks, AChipThatStandsAloneIsNotSentTo) {
  HardwareSpec hw = test::switched_chip();
  hw.network.clear();
  EXPECT_THROW(chip_ingress(hw, hw.efficiency, 2, false), UserError);
}

}  // namespace
}  // namespace scalecalc
