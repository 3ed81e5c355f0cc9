#include "model/lengths.h"

#include <gtest/gtest.h>

#include "serve/request_mix.h"

namespace scalecalc {
namespace {

Lengths lengths(std::string_view text) {
  const auto parsed = parse_lengths(text);
  const Lengths* out = std::get_if<Lengths>(&parsed);
  EXPECT_NE(out, nullptr) << text;
  return out != nullptr ? *out : Lengths::fixed(1);
}

std::string problem(std::string_view text) {
  const auto parsed = parse_lengths(text);
  const UnitError* error = std::get_if<UnitError>(&parsed);
  return error != nullptr ? error->message : "";
}

TEST(Lengths, Fixed) {
  const Lengths l = lengths("8k");
  EXPECT_TRUE(l.is_fixed());
  EXPECT_EQ(l.mean(), 8000);
  EXPECT_EQ(l.mean_square(), 64e6);
  EXPECT_EQ(l.quantile(0.99), 8000);
  EXPECT_EQ(l.at(0.5), 8000);
}

TEST(Lengths, Range) {
  const Lengths l = lengths("1..6");
  EXPECT_DOUBLE_EQ(l.mean(), 3.5);
  EXPECT_DOUBLE_EQ(l.mean_square(), 91.0 / 6);
  EXPECT_EQ(l.at(0), 1);
  EXPECT_EQ(l.at(0.1666), 1);
  EXPECT_EQ(l.at(0.1667), 2);
  EXPECT_EQ(l.at(0.9999999), 6);
  EXPECT_EQ(l.quantile(0.5), 3);
  EXPECT_EQ(l.quantile(0.51), 4);
  EXPECT_EQ(l.quantile(1), 6);
}

TEST(Lengths, Histogram) {
  const Lengths l = lengths("512:0.3,2048:0.7");
  EXPECT_DOUBLE_EQ(l.mean(), 0.3 * 512 + 0.7 * 2048);
  EXPECT_EQ(l.quantile(0.3), 512);
  EXPECT_EQ(l.quantile(0.31), 2048);
  EXPECT_EQ(l.at(0.29), 512);
  EXPECT_EQ(l.at(0.31), 2048);
}

TEST(Lengths, SharesAreDividedByTheirSum) {
  EXPECT_DOUBLE_EQ(lengths("100:3,300:1").mean(), 150);
  EXPECT_DOUBLE_EQ(lengths("1..3:1,10:1").mean(), 6);
}

TEST(Lengths, TextReadsBack) {
  for (const std::string text : {"8192", "1024..8192", "512:0.3,2048:0.7", "1..512:0.25,4096:0.75"}) {
    EXPECT_EQ(lengths_text(lengths(text)), text);
  }
}

TEST(Lengths, OfValues) {
  const Lengths l = Lengths::of({5, 1, 5, 9});
  EXPECT_EQ(l.bins().size(), 3U);
  EXPECT_EQ(l.mean(), 5);
  EXPECT_EQ(l.quantile(0.75), 5);
}

TEST(Lengths, ProblemsSayWhatIsWrong) {
  EXPECT_EQ(problem("0"), "'0' is no length: the shortest is one token");
  EXPECT_EQ(problem("8192..1024"), "'8192..1024' ends below its start");
  EXPECT_EQ(problem("8,192"), "'8,192' has several lengths without shares");
  EXPECT_EQ(problem("512:0.3,2048"), "'512:0.3,2048' gives '2048' no share");
  EXPECT_EQ(problem("512:0"), "'512:0' has no share: leave it out");
  EXPECT_NE(problem("512:x").find("is not a number"), std::string::npos);
  EXPECT_NE(problem("1.5").find("not a whole number"), std::string::npos);
  EXPECT_NE(problem(""), "");
  EXPECT_NE(problem("..8"), "");
  EXPECT_NE(problem("512:0.5,"), "");
}

TEST(RandomStream, IsTheSameEverywhere) {
  // The 10,000th number of mt19937_64 is in the C++ standard ([rand.predef]).
  RandomStream stream(5489);
  for (int i = 0; i < 9999; ++i) stream.uniform();
  EXPECT_EQ(stream.uniform(), static_cast<double>(9981545732273789042ULL >> 11) * 0x1.0p-53);
}

TEST(RandomStream, ExponentialHasItsMomentsAndTail) {
  RandomStream stream(7);
  constexpr int kDraws = 200'000;
  double sum = 0;
  double squares = 0;
  int beyond_two = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = stream.exponential();
    sum += x;
    squares += x * x;
    beyond_two += x > 2 ? 1 : 0;
  }
  EXPECT_NEAR(sum / kDraws, 1, 0.01);
  EXPECT_NEAR(squares / kDraws, 2, 0.05);
  EXPECT_NEAR(static_cast<double>(beyond_two) / kDraws, 0.1353, 0.003);
}

}  // namespace
}  // namespace scalecalc
