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

TEST(Condition, SaysTheSameOfTheSameRow) {
  for (const char* text :
       {"random() > 0", "randomblob(900000000) IS NULL", "mfu < RANDOM()", "CURRENT_TIMESTAMP > ''", "date('now') > ''",
        "julianday() > 0", "sqlite_version() > ''", "changes() = 0", "load_extension('x')", "printf('%d', 1) = 1",
        "replace(in_hw, 'a', 'bb') = ''", "count(*) > 0", "zeroblob(9) IS NULL"}) {
    EXPECT_NE(wrong_condition(text).find("it may not"), std::string::npos) << text << ": " << wrong_condition(text);
  }
  EXPECT_TRUE(holds("abs(round(mfu, 1)) = 0.3 AND upper(in_hw) GLOB 'TPU*' AND coalesce(\"odd name\", 1) = 1",
                    {0.3, std::string("tpu"), {}}));
}

TEST(Condition, IsOneExpressionOfTheRow) {
  for (const char* text : {"1) OR (1", "1) FROM (SELECT 1) WHERE (1", "SELECT 1", ":x", "mfu < :x", "mfu < ?",
                           "mfu < ?2", "mfu < @x", "mfu < $x", "mfu AS y"}) {
    EXPECT_NE(wrong_condition(text), "") << text;
  }
}

TEST(Condition, TakesLittleTimeAndMemory) {
  EXPECT_NE(wrong_condition("mfu < 1 AND '" + std::string(20'000, 'x') + "' = ''").find("longer than"),
            std::string::npos);
  std::string deep = "mfu";
  for (int i = 0; i < 500; ++i) deep = "(" + deep + "+1)";
  EXPECT_NE(wrong_condition(deep), "");
  // Many rows, texts that double, and what runs on: a condition has no rows but the one.
  for (const char* text : {"(SELECT count(*) FROM (SELECT 1 UNION ALL SELECT 2), (SELECT 1 UNION ALL SELECT 2)) > 1",
                           "mfu IN (VALUES (1), (2))", "EXISTS (WITH RECURSIVE t AS (SELECT 1) SELECT 1)",
                           "length((Select t || t FROM (Select in_hw || in_hw AS t))) > 1"}) {
    EXPECT_NE(wrong_condition(text).find("begins a query of its own"), std::string::npos) << wrong_condition(text);
  }
  EXPECT_TRUE(holds("in_hw = 'select values'", {0.3, std::string("select values"), {}}));
}

TEST(Condition, CanBeAskedAgain) {
  Condition condition("mfu < 0.5", kNames, {});
  EXPECT_TRUE(condition.holds({0.4, Cell{}, Cell{}}));
  EXPECT_FALSE(condition.holds({0.6, Cell{}, Cell{}}));
  EXPECT_TRUE(condition.holds({0.4, Cell{}, Cell{}}));
}

}  // namespace
}  // namespace scalecalc
