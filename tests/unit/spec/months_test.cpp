#include "spec/months.h"

#include <gtest/gtest.h>

#include "config/yaml_reader.h"

namespace scalecalc {
namespace {

TEST(Months, OfDatesAndYears) {
  EXPECT_EQ(month_of("2024-05"), "2024-05");
  EXPECT_EQ(month_of("2024-05-13"), "2024-05");
  EXPECT_EQ(month_of("~2024-05"), "2024-05");
  EXPECT_EQ(month_of("2024"), "2024-06");
  for (const char* wrong : {"", "24-05", "2024-13", "2024-00", "2024-5", "2024-Q3", "2024-2025", "2024-05-32",
                            "2024-05x", "2024-05-1", "May 2024", "202a", "202"}) {
    EXPECT_EQ(month_of(wrong), "") << wrong;
  }
}

TEST(Months, ARunOfTheSameMonthHasIt) {
  EXPECT_TRUE(before("2024-04", "2024-05"));
  EXPECT_FALSE(before("2024-05", "2024-05"));
  EXPECT_FALSE(before("2024-05", "2024-05-13"));
  EXPECT_TRUE(before("2023-12", "2024-01-01"));
  EXPECT_FALSE(before("", "2024-05"));  // today's software
  EXPECT_FALSE(before("2024-05", ""));  // always
}

TEST(Months, OtherTextsAreRefusedWhereTheyStand) {
  const ConfigNode node = read_yaml("good: 2024-05\nday: 2024-05-13\nbad: may\nyear: 2024\n", "x.yaml");
  Problems problems;
  Fields fields(node, "dates", problems);
  EXPECT_EQ(required_date(fields, "good"), "2024-05");
  EXPECT_EQ(optional_date(fields, "day"), "2024-05-13");
  EXPECT_EQ(optional_date(fields, "absent"), "");
  EXPECT_TRUE(problems.empty());
  optional_date(fields, "bad");
  required_date(fields, "year");
  try {
    problems.throw_if_any();
    FAIL() << "no problem";
  } catch (const UserError& error) {
    ASSERT_EQ(error.diagnostics().size(), 2U);
    EXPECT_EQ(error.diagnostics()[0].message, "'bad' is 'may'; it must be a month such as 2024-05, or a day");
    EXPECT_EQ(error.diagnostics()[0].where.line, 3);
    EXPECT_EQ(error.diagnostics()[1].message, "'year' is '2024'; it must be a month such as 2024-05, or a day");
  }
}

}  // namespace
}  // namespace scalecalc
