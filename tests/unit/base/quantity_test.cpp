#include "base/quantity.h"

#include <gtest/gtest.h>

namespace scalecalc {
namespace {

TEST(UnitName, NamesTheCommonDimensions) {
  EXPECT_EQ(unit_name(Dim{}), "");
  EXPECT_EQ(unit_name(Bytes::dim), "bytes");
  EXPECT_EQ(unit_name(Flops::dim), "FLOPs");
  EXPECT_EQ(unit_name(Seconds::dim), "s");
  EXPECT_EQ(unit_name(BytesPerSecond::dim), "bytes/s");
  EXPECT_EQ(unit_name(FlopsPerSecond::dim), "FLOP/s");
  EXPECT_EQ(unit_name(FlopsPerByte::dim), "FLOP/byte");
  EXPECT_EQ(unit_name(SecondsPerByte::dim), "s/byte");
  EXPECT_EQ(unit_name(Usd::dim), "USD");
  EXPECT_EQ(unit_name(UsdPerSecond::dim), "USD/s");
  EXPECT_EQ(unit_name(Joules::dim), "J");
  EXPECT_EQ(unit_name(Watts::dim), "W");
}

TEST(UnitName, SpellsOutOtherDimensions) {
  EXPECT_EQ(unit_name(Dim{.byte = 2, .second = -1}), "byte^2/s");
  EXPECT_EQ(unit_name(Dim{.second = -1}), "1/s");
  EXPECT_EQ(unit_name(Dim{.byte = -1, .flop = 1, .second = -2}), "FLOP/(byte s^2)");
  EXPECT_EQ(unit_name(Dim{.usd = 1, .joule = 1}), "USD J");
}

TEST(Quantity, ComputesAsItsEquationsRead) {
  const Flops work(2e15);
  const FlopsPerSecond rate(1e15);
  const Bytes moved(1e12);
  EXPECT_EQ((work / rate).value(), 2.0);
  EXPECT_EQ((work / moved).value(), 2000.0);
  EXPECT_EQ(work / Flops(1e15), 2.0);
  EXPECT_EQ((1.0 / Seconds(4)).value(), 0.25);
  EXPECT_EQ(max(Seconds(1), Seconds(2)).value(), 2.0);
  EXPECT_EQ(min(Seconds(1), Seconds(2)).value(), 1.0);
  Seconds total;
  total += Seconds(3);
  total -= Seconds(1);
  EXPECT_EQ(total.value(), 2.0);
  EXPECT_TRUE(Seconds(1) < Seconds(2));
}

}  // namespace
}  // namespace scalecalc
