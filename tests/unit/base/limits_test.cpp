#include "base/limits.h"

#include <gtest/gtest.h>

namespace scalecalc::limits {
namespace {

TEST(Limits, AnExpansionEndsAtItsFreePartAndSoManyTimesWhatWasRead) {
  Expansion count(ExpansionLimit{.free = 1000, .times = 10});
  count.reads(50);
  EXPECT_TRUE(count.makes(1500));
  EXPECT_FALSE(count.makes(1));
  EXPECT_FALSE(count.makes(0));  // refused once, refused again
  EXPECT_EQ(count.message(), "expands to more than 1.5 kB, from 50 B");
  count.reads(1);
  EXPECT_TRUE(count.makes(0));
}

TEST(Limits, WhatDoesNotGrowWithTheInputSaysItsLimitAlone) {
  EXPECT_EQ(Expansion(ExpansionLimit{.free = 2'000'000}).message(), "expands to more than 2 MB");
}

TEST(Limits, MessagesNameTheLimit) {
  EXPECT_EQ(too_deep(32), "nested more than 32 levels deep");
  EXPECT_EQ(too_many(100'000, "values"), "more than 100,000 values");
  EXPECT_EQ(too_large(32 * kMiB), "larger than 32 MiB");
}

TEST(Limits, BracketsOfJsonAreCountedOutsideOfTexts) {
  EXPECT_FALSE(json_exceeds(R"({"a": [1, {"b": 2}]})", 3));
  EXPECT_TRUE(json_exceeds(R"({"a": [1, {"b": 2}]})", 2));
  EXPECT_FALSE(json_exceeds(R"({"a": "[[[[", "b": "\"[[[["})", 1));
  EXPECT_FALSE(json_exceeds("[[],[],[],[]]", 2));
  EXPECT_TRUE(json_exceeds(std::string(100'000, '['), kTreeLevels));
  EXPECT_FALSE(json_exceeds("]]]]]]", 1));
  EXPECT_FALSE(json_exceeds("\"never closed [[[[", 1));
  EXPECT_FALSE(json_exceeds("\"ends in a backslash\\", 1));
}

TEST(Limits, ValuesOfJsonAreCountedByTheirCommas) {
  EXPECT_FALSE(json_exceeds("[1,2,3]", 1, 3));
  EXPECT_TRUE(json_exceeds("[1,2,3,4]", 1, 3));
  EXPECT_FALSE(json_exceeds(R"(["a,b,c,d", 2])", 1, 2));
}

}  // namespace
}  // namespace scalecalc::limits
