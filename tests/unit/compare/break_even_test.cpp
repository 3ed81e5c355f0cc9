#include "compare/compare_parts_output.h"

#include <gtest/gtest.h>

namespace scalecalc {
namespace {

PricedRow row(const std::string& label, double chip_hours, double usd, const std::string& model) {
  return {label, label, Traced(chip_hours), UsdOf(Traced(usd)), usd / chip_hours, model};
}

std::string text(const Record& record, std::string_view key) {
  for (const Figure& figure : record.figures) {
    if (figure.key == key) return std::get<std::string>(figure.value);
  }
  return "";
}
double number(const Record& record, std::string_view key) {
  for (const Figure& figure : record.figures) {
    if (figure.key == key) return std::get<double>(figure.value);
  }
  return -1;
}

// 100 chip-hours on a cost as much as b's $ 300 at $ 3 each, of each model by itself.
TEST(BreakEven, IsToldOfEveryModelByItself) {
  Output out;
  add_break_even(out, {row("a, big", 100, 200, "big"), row("a, small", 10, 20, "small"), row("b, big", 50, 300, "big"),
                       row("b, small", 5, 40, "small")});
  ASSERT_EQ(out.blocks.size(), 1U);
  const std::vector<Record>& pairs = out.blocks.front().records;
  ASSERT_EQ(pairs.size(), 4U);
  EXPECT_EQ(text(pairs[0], "system"), "a, big");
  EXPECT_EQ(text(pairs[0], "against"), "b, big");
  EXPECT_DOUBLE_EQ(number(pairs[0], "usd_per_chip_hour"), 300.0 / 100);
  EXPECT_DOUBLE_EQ(number(pairs[1], "usd_per_chip_hour"), 200.0 / 50);
  EXPECT_EQ(text(pairs[2], "against"), "b, small");
  EXPECT_DOUBLE_EQ(number(pairs[2], "usd_per_chip_hour"), 40.0 / 10);
  EXPECT_DOUBLE_EQ(number(pairs[3], "usd_per_chip_hour"), 20.0 / 5);
}

TEST(BreakEven, OneMachineForEachModelHasNone) {
  Output out;
  add_break_even(out, {row("a, big", 100, 200, "big"), row("a, small", 10, 20, "small")});
  EXPECT_TRUE(out.blocks.empty());
}

}  // namespace
}  // namespace scalecalc
