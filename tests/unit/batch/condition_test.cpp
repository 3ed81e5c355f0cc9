#include "batch/condition.h"

#include <gtest/gtest.h>

#include "support/errors.h"

namespace scalecalc {
namespace {

const std::vector<std::string> kNames{"mfu", "in_hw", "odd name"};

bool holds(const std::string& text, std::vector<Cell> values) { return Condition(text, kNames, {}).holds(values); }

std::string wrong_condition(const std::string& text) {
  return test::problems_of([&] { Condition(text, kNames, {}); });
}

TEST(Condition, ComparesNumbersAndTexts) {
  const std::vector<Cell> row{0.3, std::string("tpu-v5e"), {}};
  EXPECT_TRUE(holds("mfu < 0.35", row));
  EXPECT_FALSE(holds("mfu > 0.35", row));
  EXPECT_TRUE(holds("in_hw LIKE 'tpu-%' AND mfu BETWEEN 0.2 AND 0.4", row));
  EXPECT_TRUE(holds("\"odd name\" IS NULL", row));
  EXPECT_TRUE(holds("mfu < 0.35 -- a comment", row));
}

TEST(Condition, NothingIsNeitherAboveNorBelow) {
  EXPECT_FALSE(holds("mfu < 1", {Cell{}, Cell{}, Cell{}}));
  EXPECT_FALSE(holds("NOT mfu < 1", {Cell{}, Cell{}, Cell{}}));
}

TEST(Condition, SaysWhatItCannotRead) {
  EXPECT_NE(wrong_condition("mfuu < 1").find("did you mean 'mfu'?"), std::string::npos);
  EXPECT_NE(wrong_condition("\"mfuu\" < 1").find("no such column"), std::string::npos);
  EXPECT_NE(wrong_condition("mfu <").find("cannot read the condition"), std::string::npos);
  EXPECT_NE(wrong_condition("mfu, 1").find("cannot read the condition"), std::string::npos);
}

TEST(Condition, ComputesAndDoesNothingElse) {
  EXPECT_NE(wrong_condition("1); DROP TABLE x; --"), "");
  EXPECT_NE(wrong_condition("1) ; ATTACH 'x.db' AS y; SELECT (1"), "");
}

TEST(Condition, CanBeAskedAgain) {
  Condition condition("mfu < 0.5", kNames, {});
  EXPECT_TRUE(condition.holds({0.4, Cell{}, Cell{}}));
  EXPECT_FALSE(condition.holds({0.6, Cell{}, Cell{}}));
  EXPECT_TRUE(condition.holds({0.4, Cell{}, Cell{}}));
}

}  // namespace
}  // namespace scalecalc
