#include "compare/compared.h"

#include <gtest/gtest.h>

#include "base/diagnostic.h"
#include "compare/compare_parts_output.h"

namespace scalecalc {
namespace {

ComparedSystem row(const char* hardware, std::optional<double> time_s, std::optional<double> usd) {
  ComparedSystem out;
  out.label = out.hardware = hardware;
  out.time_s = time_s;
  out.usd = usd;
  if (!time_s) out.fail(ComparedStatus::kOutOfMemory, "too small");
  return out;
}

struct Rows {
  std::vector<ComparedSystem> all{row("a", 10, 5), row("b", 20, 3), row("c", std::nullopt, std::nullopt),
                                  row("d", 10, std::nullopt)};
  std::vector<ComparedSystem*> pointers() {
    std::vector<ComparedSystem*> out;
    for (ComparedSystem& r : all) out.push_back(&r);
    return out;
  }
  std::vector<const ComparedSystem*> ranked() {
    rank_systems(pointers());
    const auto rows = pointers();
    return {rows.begin(), rows.end()};
  }
};

TEST(RankSystems, EqualFiguresShareARankAndWhatHasNoneHasNoRank) {
  Rows rows;
  rows.ranked();
  EXPECT_EQ(rows.all[0].rank_time, 1U);
  EXPECT_EQ(rows.all[3].rank_time, 1U);
  EXPECT_EQ(rows.all[1].rank_time, 3U);
  EXPECT_EQ(rows.all[2].rank_time, 0U);
  EXPECT_EQ(rows.all[1].rank_cost, 1U);
  EXPECT_EQ(rows.all[0].rank_cost, 2U);
  EXPECT_EQ(rows.all[3].rank_cost, 0U);
}

TEST(RankSystems, SystemsWithoutAPriceAreNamed) {
  Rows rows;
  const auto ranked = rows.ranked();
  EXPECT_EQ(without_price(ranked), std::vector<std::string>{"d"}) << "c has no answer to price";
  EXPECT_EQ(check_expectations({{ExpectedKey::kCheapest, "b"}}, ranked).front().unpriced,
            std::vector<std::string>{"d"});
  EXPECT_TRUE(check_expectations({{ExpectedKey::kFastest, "a"}}, ranked).front().unpriced.empty());
  EXPECT_EQ(cheapest_line(ranked, "$3.00"), "cheapest of the 2 with a price: b, $3.00; no price for d (--price d=USD)");
  for (ComparedSystem& row : rows.all) row.usd = std::nullopt;
  EXPECT_EQ(cheapest_line(rows.ranked(), ""), "cheapest: unknown, no price for a, b and d (--price a=USD)");
  for (ComparedSystem& row : rows.all) row.usd = 1;
  EXPECT_EQ(cheapest_line(rows.ranked(), "$1.00"), "cheapest: a, b and d, $1.00");
}

// a costs 5, b 3: as spot chips b is cheapest only among its like, or where it is said how often chips are lost.
TEST(RankSystems, DollarsOfPreemptibleChipsCompeteOnlyWherePreemptionIsCounted) {
  Rows rows;
  rows.all[0].price = Price{.cloud = "GCP", .terms = "on-demand"};
  rows.all[1].price = Price{.cloud = "GCP", .terms = "spot (us)"};
  const auto ranked = rows.ranked();
  EXPECT_EQ(rows.all[0].rank_cost, 1U);
  EXPECT_EQ(rows.all[1].rank_cost, 0U);
  EXPECT_EQ(rows.all[1].rank_time, 3U) << "its time is its time";
  EXPECT_EQ(order_by(RankBy::kCost, ranked), (std::vector<std::size_t>{0, 1, 3, 2}));
  EXPECT_EQ(check_expectations({{ExpectedKey::kCheapest, "b"}}, ranked).front().found, "a");
  EXPECT_EQ(preemption_assumption(ranked, "--mtbf", false)->flag, "--mtbf");
  rank_systems(rows.pointers(), true);
  EXPECT_EQ(rows.all[1].rank_cost, 1U);
  EXPECT_FALSE(preemption_assumption(ranked, "--mtbf", true)->warning);
  rows.all[0].price->terms = "preemptible";
  rows.ranked();
  EXPECT_EQ(rows.all[1].rank_cost, 1U) << "all alike";
  EXPECT_TRUE(preemption_assumption(ranked, "", false)->warning);
  rows.all[0].price.reset();
  rows.all[1].price->terms = "on-demand";
  rows.ranked();
  EXPECT_FALSE(preemption_assumption(ranked, "", false));
}

TEST(OrderBy, PutsUnpricedBehindPricedAndImpossibleLast) {
  Rows rows;
  const auto ranked = rows.ranked();
  EXPECT_EQ(order_by(RankBy::kTime, ranked), (std::vector<std::size_t>{0, 3, 1, 2}));
  EXPECT_EQ(order_by(RankBy::kCost, ranked), (std::vector<std::size_t>{1, 0, 3, 2}));
}

TEST(LabelSystems, AreAsLongAsTellsThemApart) {
  std::vector<ComparedSystem> rows(4);
  for (ComparedSystem& r : rows) r.hardware = "x";
  rows[3].hardware = "y";
  rows[1].price = Price{.cloud = "GCP", .terms = "spot"};
  rows[2].price = Price{.cloud = "AWS", .terms = "spot"};
  label_systems({&rows[0], &rows[1], &rows[2], &rows[3]}, {"8", "16", "16", "8"});
  EXPECT_EQ(rows[0].label, "x:8");
  EXPECT_EQ(rows[1].label, "x:16@GCP/spot");
  EXPECT_EQ(rows[2].label, "x:16@AWS/spot");
  EXPECT_EQ(rows[3].label, "y");
  ComparedSystem twin;
  twin.hardware = "z";
  ComparedSystem other = twin;
  label_systems({&twin, &other}, {"", ""});
  EXPECT_EQ(twin.label, "z#1");
  EXPECT_EQ(other.label, "z#2");
}

TEST(CheckExpectations, HoldForAllThatShareTheFirstPlace) {
  Rows rows;
  const auto results = check_expectations({{ExpectedKey::kFastest, "d"},
                                           {ExpectedKey::kCheapest, "a"},
                                           {ExpectedKey::kPossible, "c"},
                                           {ExpectedKey::kLeastEnergy, "a"}},
                                          rows.ranked());
  EXPECT_TRUE(results[0].holds);
  EXPECT_EQ(results[0].found, "a, d");
  EXPECT_FALSE(results[1].holds);
  EXPECT_EQ(results[1].found, "b");
  EXPECT_FALSE(results[2].holds);
  EXPECT_FALSE(results[3].holds);  // nobody's draw is known
  EXPECT_EQ(results[3].found, "");
}

TEST(CheckExpectations, OfASystemThatIsNotComparedIsAWrongQuestion) {
  Rows rows;
  EXPECT_THROW(check_expectations({{ExpectedKey::kCheapest, "e"}}, rows.ranked()), UserError);
}

}  // namespace
}  // namespace scalecalc
