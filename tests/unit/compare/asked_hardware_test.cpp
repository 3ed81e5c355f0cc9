#include "compare/compared.h"

#include <gtest/gtest.h>

namespace scalecalc {
namespace {

Assumption said(const char* text) { return {.text = text, .flag = "--x", .source = "y"}; }

std::vector<std::string> texts(const std::vector<Assumption>& list) {
  std::vector<std::string> out;
  for (const Assumption& a : list) out.push_back(a.text);
  return out;
}

TEST(SharedAssumptions, SayAtOnceWhatAllAssumeAndWhoAssumesTheRest) {
  const auto shared = shared_assumptions(
      {"a", "b", "c"}, {{said("all"), said("two"), said("a alone")}, {said("two"), said("all")}, {said("all")}});
  EXPECT_EQ(texts(shared), (std::vector<std::string>{"all", "a, b: two", "a alone"}));
}

TEST(OffersOf, APriceThatIsGivenStandsForTheFiles) {
  const HardwareSpec hw = hardware_compared("h100-sxm", {}, Catalog());
  const SystemAsked asked{.hardware = "h100-sxm", .cloud = "GCP"};
  EXPECT_EQ(offers_of(hw, asked, {}).front().cloud, "GCP");
  EXPECT_EQ(offers_of(hw, asked, {.clouds = {"AWS"}}).front().cloud, "GCP");  // its own word counts
  const SystemAsked given{.hardware = "h100-sxm", .price = 2.5};
  ASSERT_EQ(offers_of(hw, given, {.kinds = {"all"}}).size(), 1U);
  EXPECT_EQ(offers_of(hw, given, {}).front().usd_per_chip_hour, 2.5);
}

TEST(HardwareCompared, TakesTheOverridesOfHardwareAlone) {
  const HardwareSpec hw = hardware_compared("h100-sxm", {"hw.hbm.bandwidth=5TB/s", "model.layers=4"}, Catalog());
  EXPECT_EQ(hw.hbm_bandwidth.value(), 5e12);
}

}  // namespace
}  // namespace scalecalc
