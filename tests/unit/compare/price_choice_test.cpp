#include "compare/compared.h"

#include <gtest/gtest.h>

#include "base/diagnostic.h"

namespace scalecalc {
namespace {

Price price(double usd, const char* cloud, const char* terms, const char* date = "2025") {
  return {.usd_per_chip_hour = usd, .cloud = cloud, .terms = terms, .date = date};
}

std::vector<double> dollars(const std::vector<Price>& prices) {
  std::vector<double> out;
  for (const Price& p : prices) out.push_back(p.usd_per_chip_hour);
  return out;
}

const std::vector<Price> kPrices{price(6.88, "AWS", "on-demand", "2025-06"),
                                 price(4.9, "AWS", "capacity block", "2024-Q4"),
                                 price(10.8, "GCP", "on-demand", "2025-02"), price(2.5, "GCP", "spot", "2025-2026"),
                                 price(2.7, "GCP", "spot", "2024")};

TEST(PriceKind, IsTheTermsAsAFlagTakesThem) {
  EXPECT_EQ(price_kind(price(1, "", "on-demand (whole node of eight)")), "on-demand");
  EXPECT_EQ(price_kind(price(1, "", "capacity block")), "capacity-block");
  EXPECT_EQ(price_kind(price(1, "", "3-year commitment")), "reserved-3y");
  EXPECT_EQ(price_kind(price(1, "", "spot")), "spot");
}

TEST(MonthsOf, ReadsYearsMonthsQuartersAndRanges) {
  const auto span = [](const char* text) {
    const auto months = months_of(text);
    return months ? std::pair(months->first, months->last) : std::pair(-1, -1);
  };
  EXPECT_EQ(span("2025"), std::pair(2025 * 12, 2025 * 12 + 11));
  EXPECT_EQ(span("2025-02"), std::pair(2025 * 12 + 1, 2025 * 12 + 1));
  EXPECT_EQ(span("2024-Q4"), std::pair(2024 * 12 + 9, 2024 * 12 + 11));
  EXPECT_EQ(span("2025-2026"), std::pair(2025 * 12, 2026 * 12 + 11));
  for (const char* wrong : {"", "25", "2025-13", "2025-00", "2024-Q5", "2026-2025", "2025-1", "now"}) {
    EXPECT_FALSE(months_of(wrong)) << wrong;
  }
}

TEST(ChosenPrices, WithoutAFilterTheFirst) { EXPECT_EQ(dollars(chosen_prices(kPrices, {})), std::vector{6.88}); }

TEST(ChosenPrices, AFilterTakesTheFirstItAllows) {
  EXPECT_EQ(dollars(chosen_prices(kPrices, {.clouds = {"gcp"}})), std::vector{10.8});
  EXPECT_EQ(dollars(chosen_prices(kPrices, {.kinds = {"spot"}})), std::vector{2.5});
  EXPECT_EQ(dollars(chosen_prices(kPrices, {.kinds = {"spot"}, .date = months_of("2024")})), std::vector{2.7});
  EXPECT_EQ(dollars(chosen_prices(kPrices, {.date = months_of("2024")})), std::vector{4.9});
  EXPECT_TRUE(chosen_prices(kPrices, {.clouds = {"AWS"}, .kinds = {"spot"}}).empty());
}

TEST(ChosenPrices, SeveralWordsAreARowForEachCombination) {
  EXPECT_EQ(dollars(chosen_prices(kPrices, {.kinds = {"on-demand", "spot"}})), (std::vector{6.88, 10.8, 2.5}));
  EXPECT_EQ(dollars(chosen_prices(kPrices, {.clouds = {"all"}})), (std::vector{6.88, 4.9, 10.8, 2.5}));
}

TEST(RequireKnown, NamesWhatThereIs) {
  EXPECT_NO_THROW(require_known({.clouds = {"all", "aws"}, .kinds = {"spot"}}, kPrices));
  try {
    require_known({.clouds = {"Azure"}, .kinds = {"spto"}}, kPrices);
    FAIL();
  } catch (const UserError& error) {
    ASSERT_EQ(error.diagnostics().size(), 2U);
    EXPECT_EQ(error.diagnostics()[0].hint, "there are: AWS, GCP");
    EXPECT_EQ(error.diagnostics()[1].hint, "did you mean 'spot'? there are: capacity-block, on-demand, spot");
  }
}

}  // namespace
}  // namespace scalecalc
