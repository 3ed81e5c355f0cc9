#include "support/unified_diff.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace scalecalc::test {
namespace {

std::string numbers(int from, int to) {
  std::string out;
  for (int i = from; i <= to; ++i) out += std::to_string(i) + "\n";
  return out;
}

TEST(UnifiedDiff, OfEqualTextsIsEmpty) {
  EXPECT_EQ(unified_diff("", ""), "");
  EXPECT_EQ(unified_diff("a\nb\n", "a\nb\n"), "");
}

// The expected texts are those of GNU diff -u, without its two lines of file names.
TEST(UnifiedDiff, ShowsAChangeBetweenThreeLinesOfContext) {
  EXPECT_EQ(unified_diff(numbers(1, 9), numbers(1, 4) + "five\n" + numbers(6, 9)),
            "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
}

TEST(UnifiedDiff, JoinsChangesWhoseContextsTouchAndPartsThoseFartherAway) {
  EXPECT_EQ(unified_diff(numbers(1, 20), "one\n" + numbers(2, 7) + "eight\n" + numbers(9, 20)),
            "@@ -1,11 +1,11 @@\n-1\n+one\n 2\n 3\n 4\n 5\n 6\n 7\n-8\n+eight\n 9\n 10\n 11\n");
  EXPECT_EQ(unified_diff(numbers(1, 20), "one\n" + numbers(2, 8) + "nine\n" + numbers(10, 20)),
            "@@ -1,4 +1,4 @@\n-1\n+one\n 2\n 3\n 4\n@@ -6,7 +6,7 @@\n 6\n 7\n 8\n-9\n+nine\n 10\n 11\n 12\n");
}

TEST(UnifiedDiff, NumbersTheLinesOfBothTexts) {
  EXPECT_EQ(unified_diff(numbers(1, 20), numbers(0, 15) + numbers(17, 20), 1),
            "@@ -1,1 +1,2 @@\n+0\n 1\n@@ -15,3 +16,2 @@\n 15\n-16\n 17\n");
  EXPECT_EQ(unified_diff("", "a\n"), "@@ -0,0 +1,1 @@\n+a\n");
  EXPECT_EQ(unified_diff("a\nb\nc\n", "a\nb\n", 0), "@@ -3,1 +2,0 @@\n-c\n");
}

TEST(UnifiedDiff, TellsAMissingLastLineFeed) {
  EXPECT_EQ(unified_diff("a\n", "a"), "@@ -1,1 +1,1 @@\n-a\n+a\n\\ No newline at end of text\n");
}

TEST(UnifiedDiff, ChangesNoMoreLinesThanItMust) {
  const std::string diff = unified_diff("a\nb\nc\na\nb\nb\na\n", "c\nb\na\nb\na\nc\n");
  EXPECT_EQ(std::count(diff.begin(), diff.end(), '-') - 1, 3) << diff;  // one stands in the header
  EXPECT_EQ(std::count(diff.begin(), diff.end(), '+') - 1, 2) << diff;  // Myers 1986, figure 2: five edits
}

TEST(UnifiedDiff, CountsWhatItDoesNotShow) {
  EXPECT_EQ(unified_diff(numbers(1, 50), numbers(101, 150), 3, 4),
            "@@ -1,50 +1,50 @@\n-1\n-2\n-3\n... and 97 more lines\n");
}

}  // namespace
}  // namespace scalecalc::test
