#include "base/sweep.h"

#include <gtest/gtest.h>

namespace scalecalc {
namespace {

using Values = std::vector<double>;

Values values(std::string_view text, UnitKind kind = UnitKind::kCount) {
  const auto parsed = parse_sweep(text, kind);
  const Values* out = std::get_if<Values>(&parsed);
  return out != nullptr ? *out : Values{};
}

std::string problem(std::string_view text, UnitKind kind = UnitKind::kCount) {
  const auto parsed = parse_sweep(text, kind);
  const UnitError* error = std::get_if<UnitError>(&parsed);
  return error != nullptr ? error->message : "";
}

TEST(Sweep, OneValueAndLists) {
  EXPECT_EQ(values("8"), (Values{8}));
  EXPECT_EQ(values("8,64,16"), (Values{8, 64, 16}));
  EXPECT_EQ(values("4Ki,1M"), (Values{4096, 1e6}));
}

TEST(Sweep, GeometricRangeStopsAtItsEnd) {
  EXPECT_EQ(values("8..64*2"), (Values{8, 16, 32, 64}));
  EXPECT_EQ(values("8..100*2"), (Values{8, 16, 32, 64}));
  EXPECT_EQ(values("1..1000*10"), (Values{1, 10, 100, 1000}));
}

TEST(Sweep, ArithmeticRange) { EXPECT_EQ(values("0..1024+512"), (Values{0, 512, 1024})); }

TEST(Sweep, RangeWithoutStepDoublesAndKeepsItsEnd) {
  EXPECT_EQ(values("1..8"), (Values{1, 2, 4, 8}));
  EXPECT_EQ(values("1..10"), (Values{1, 2, 4, 8, 10}));
  EXPECT_EQ(values("5..5"), (Values{5}));
}

TEST(Sweep, UnitsBelongToEveryValue) {
  EXPECT_EQ(values("1MiB..4MiB*2", UnitKind::kBytes), (Values{1048576, 2097152, 4194304}));
  EXPECT_EQ(values("1us..3us+1us", UnitKind::kSeconds).size(), 3U);
}

TEST(Sweep, FractionalFactorsRoundCounts) { EXPECT_EQ(values("10..23*1.5"), (Values{10, 15, 23})); }

TEST(Sweep, ProblemsNameTheText) {
  EXPECT_EQ(problem("64..8*2"), "'64..8*2' ends below its start");
  EXPECT_NE(problem("8..64*1"), "");
  EXPECT_NE(problem("0..64*2"), "");
  EXPECT_NE(problem("8..64+0"), "");
  EXPECT_NE(problem("8.."), "");
  EXPECT_NE(problem("..8"), "");
  EXPECT_NE(problem("1,,2"), "");
  EXPECT_NE(problem(""), "");
  EXPECT_NE(problem("1..1e9+1"), "");
}

TEST(Sweep, AnEndIsMissedByARoundingAlone) {
  EXPECT_EQ(values("1..3.999999999994*2", UnitKind::kNumber), (Values{1, 2}));
  EXPECT_EQ(values("1..3.9999999999999*2", UnitKind::kNumber), (Values{1, 2, 3.9999999999999}));
}

TEST(Sweep, RangesThatDoNotRiseSayWhy) {
  for (const char* text : {"8..64*1", "8..64*0.5", "0..64*2", "0..64"}) {
    EXPECT_EQ(problem(text), "'" + std::string(text) + "' does not rise: a factor is above 1 and its start above 0");
  }
  EXPECT_EQ(problem("8..64+0"), "'8..64+0' does not rise: its step must be above 0");
}

}  // namespace
}  // namespace scalecalc
