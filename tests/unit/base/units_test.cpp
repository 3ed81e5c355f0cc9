#include "base/units.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace scalecalc {
namespace {

struct Accepted {
  const char* text;
  UnitKind kind;
  double value;
};

class ParseAccepted : public testing::TestWithParam<Accepted> {};

TEST_P(ParseAccepted, GivesExactBaseValue) {
  const auto parsed = parse_quantity(GetParam().text, GetParam().kind);
  const UnitError* error = std::get_if<UnitError>(&parsed);
  ASSERT_EQ(error, nullptr) << error->message;
  EXPECT_EQ(std::get<double>(parsed), GetParam().value) << GetParam().text;
}

INSTANTIATE_TEST_SUITE_P(
    Counts, ParseAccepted,
    testing::Values(Accepted{"8960", UnitKind::kCount, 8960}, Accepted{"4M", UnitKind::kCount, 4e6},
                    Accepted{"15T", UnitKind::kCount, 15e12}, Accepted{"70.6B", UnitKind::kCount, 70.6e9},
                    Accepted{"128k", UnitKind::kCount, 128e3}, Accepted{"128 K", UnitKind::kCount, 128e3},
                    Accepted{"16e6", UnitKind::kCount, 16e6}, Accepted{"1.5E+3", UnitKind::kCount, 1500},
                    Accepted{"4Mi", UnitKind::kCount, 4194304}, Accepted{"0.5Ki", UnitKind::kCount, 512},
                    Accepted{"4.5k", UnitKind::kCount, 4500},
                    // 1.001 * 1e3 is 1000.9999999999999 in doubles.
                    Accepted{"1.001k", UnitKind::kCount, 1001}, Accepted{"010", UnitKind::kCount, 10},
                    Accepted{"1_000_000", UnitKind::kCount, 1e6}, Accepted{" 5 ", UnitKind::kCount, 5},
                    Accepted{"9007199254740992", UnitKind::kCount, 9007199254740992.0},
                    Accepted{"0", UnitKind::kCount, 0}, Accepted{"0.25", UnitKind::kNumber, 0.25},
                    Accepted{"1e-3", UnitKind::kNumber, 0.001}));

INSTANTIATE_TEST_SUITE_P(
    Units, ParseAccepted,
    testing::Values(
        Accepted{"96GB", UnitKind::kBytes, 96e9}, Accepted{"80GiB", UnitKind::kBytes, 85899345920.0},
        Accepted{"512 KiB", UnitKind::kBytes, 524288}, Accepted{"3.35TB/s", UnitKind::kBytesPerSecond, 3.35e12},
        Accepted{"900 GB/s", UnitKind::kBytesPerSecond, 900e9}, Accepted{"400Gbps", UnitKind::kBytesPerSecond, 50e9},
        Accepted{"400Gb/s", UnitKind::kBytesPerSecond, 50e9}, Accepted{"459TFLOP/s", UnitKind::kFlopsPerSecond, 459e12},
        Accepted{"989TFLOPs/s", UnitKind::kFlopsPerSecond, 989e12},
        Accepted{"1.98PFLOP/s", UnitKind::kFlopsPerSecond, 1.98e15},
        Accepted{"1979TOP/s", UnitKind::kFlopsPerSecond, 1979e12},
        Accepted{"1979 TOPS", UnitKind::kFlopsPerSecond, 1979e12}, Accepted{"17ms", UnitKind::kSeconds, 0.017},
        Accepted{"1us", UnitKind::kSeconds, 1e-6}, Accepted{"1\u00B5s", UnitKind::kSeconds, 1e-6},
        Accepted{"10min", UnitKind::kSeconds, 600}, Accepted{"3h", UnitKind::kSeconds, 10800},
        Accepted{"30d", UnitKind::kSeconds, 2592000}, Accepted{"0.4", UnitKind::kFraction, 0.4},
        Accepted{"40%", UnitKind::kFraction, 0.4}, Accepted{"100 %", UnitKind::kFraction, 1},
        Accepted{"57g/kWh", UnitKind::kGramsPerKwh, 57}, Accepted{"0.4kg/kWh", UnitKind::kGramsPerKwh, 400},
        Accepted{"1.75GHz", UnitKind::kHertz, 1.75e9}, Accepted{"1410 MHz", UnitKind::kHertz, 1.41e9},
        Accepted{"700W", UnitKind::kWatts, 700}, Accepted{"1.2kW", UnitKind::kWatts, 1200},
        Accepted{"4.2", UnitKind::kUsdPerHour, 4.2}, Accepted{"$4.20", UnitKind::kUsdPerHour, 4.2},
        Accepted{"4.2USD/h", UnitKind::kUsdPerHour, 4.2}, Accepted{"$0.836/h", UnitKind::kUsdPerHour, 0.836}));

struct Refused {
  const char* text;
  UnitKind kind;
  const char* message;
  const char* hint;
};

class ParseRefused : public testing::TestWithParam<Refused> {};

TEST_P(ParseRefused, SaysWhyAndWhatToWrite) {
  const auto parsed = parse_quantity(GetParam().text, GetParam().kind);
  const UnitError* error = std::get_if<UnitError>(&parsed);
  ASSERT_NE(error, nullptr) << std::get<double>(parsed);
  EXPECT_EQ(error->message, GetParam().message);
  EXPECT_EQ(error->hint, GetParam().hint);
}

constexpr const char* kCounts = "accepted: 8960, 4M, 70B, 15T, 128k, 16e6, 4Mi";
constexpr const char* kRates = "accepted: 3.35TB/s, 900 GB/s, 400Gbps";

INSTANTIATE_TEST_SUITE_P(
    Numbers, ParseRefused,
    testing::Values(
        Refused{"", UnitKind::kCount, "'' is not a count: it is empty", kCounts},
        Refused{"-", UnitKind::kCount, "'-' is not a count: it does not start with a digit", kCounts},
        Refused{"nan", UnitKind::kCount, "'nan' is not a count: it does not start with a digit", kCounts},
        Refused{"inf", UnitKind::kCount, "'inf' is not a count: it does not start with a digit", kCounts},
        Refused{"-5", UnitKind::kCount, "'-5' is not a count: it is negative", kCounts},
        Refused{"0x10", UnitKind::kCount, "'0x10' is not a count: hexadecimal numbers are not accepted", kCounts},
        Refused{"12 34", UnitKind::kCount, "'12 34' is not a count: unexpected '34' after '12'", kCounts},
        Refused{"1.2.3", UnitKind::kCount, "'1.2.3' is not a count: unexpected '.3' after '1.2'", kCounts},
        Refused{"1__0", UnitKind::kCount, "'1__0' is not a count: unexpected '__0' after '1'", kCounts},
        Refused{"5.", UnitKind::kCount, "'5.' is not a count: unexpected '.' after '5'", kCounts},
        Refused{"1e", UnitKind::kCount, "'1e' is not a count: unknown unit 'e'", kCounts},
        Refused{"4.5", UnitKind::kCount, "'4.5' is not a count: it is not a whole number", kCounts},
        Refused{"1e17", UnitKind::kCount, "'1e17' is not a count: it is above 2^53", kCounts},
        Refused{"1e400", UnitKind::kCount, "'1e400' is not a count: it is too large", kCounts},
        Refused{"1e99999999999999999999", UnitKind::kCount, "'1e99999999999999999999' is not a count: it is too large",
                kCounts},
        Refused{"2e36", UnitKind::kNumber, "'2e36' is not a number: it is too large", "accepted: 4, 0.25, 1.5e3, 10k"},
        Refused{"9e-37", UnitKind::kNumber, "'9e-37' is not a number: it is too small",
                "accepted: 4, 0.25, 1.5e3, 10k"},
        Refused{"1e-400", UnitKind::kNumber, "'1e-400' is not a number: it is too small",
                "accepted: 4, 0.25, 1.5e3, 10k"},
        Refused{"4GB", UnitKind::kCount, "'4GB' is not a count: 'GB' is a unit of size", kCounts},
        Refused{"1,5", UnitKind::kCount, "'1,5' is not a count: a number has no commas; the decimal sign is a point",
                kCounts},
        Refused{"1,000", UnitKind::kCount, "'1,000' is not a count: a number has no commas",
                "did you mean '1000'? accepted: 8960, 4M, 70B, 15T, 128k, 16e6, 4Mi"},
        Refused{"+5", UnitKind::kCount, "'+5' is not a count: a number has no '+' sign",
                "did you mean '5'? accepted: 8960, 4M, 70B, 15T, 128k, 16e6, 4Mi"},
        Refused{"4m", UnitKind::kCount, "'4m' is not a count: unknown unit 'm'",
                "did you mean '4M'? accepted: 8960, 4M, 70B, 15T, 128k, 16e6, 4Mi"}));

INSTANTIATE_TEST_SUITE_P(
    Units, ParseRefused,
    testing::Values(
        Refused{"2.8 TBs", UnitKind::kBytesPerSecond, "'2.8 TBs' is not a bandwidth: unknown unit 'TBs'",
                "did you mean '2.8 TB/s'? accepted: 3.35TB/s, 900 GB/s, 400Gbps"},
        Refused{"400GBps", UnitKind::kBytesPerSecond, "'400GBps' is not a bandwidth: unknown unit 'GBps'",
                "did you mean '400GB/s'? accepted: 3.35TB/s, 900 GB/s, 400Gbps"},
        Refused{"400gbps", UnitKind::kBytesPerSecond, "'400gbps' is not a bandwidth: unknown unit 'gbps'",
                "did you mean '400Gbps'? accepted: 3.35TB/s, 900 GB/s, 400Gbps"},
        Refused{"5 GB", UnitKind::kBytesPerSecond, "'5 GB' is not a bandwidth: 'GB' is a unit of size",
                "did you mean '5 GB/s'? accepted: 3.35TB/s, 900 GB/s, 400Gbps"},
        Refused{"5", UnitKind::kBytesPerSecond, "'5' is not a bandwidth: the unit is missing", kRates},
        Refused{"5 XYZ", UnitKind::kBytesPerSecond, "'5 XYZ' is not a bandwidth: unknown unit 'XYZ'", kRates},
        Refused{"5tb", UnitKind::kBytes, "'5tb' is not a size: unknown unit 'tb'",
                "did you mean '5TB'? accepted: 96GB, 80GiB, 512KiB, 16 MB"},
        Refused{"5 TF", UnitKind::kFlopsPerSecond, "'5 TF' is not a compute rate: unknown unit 'TF'",
                "did you mean '5 TFLOP/s'? accepted: 459TFLOP/s, 1.98PFLOP/s, 1979TOP/s"},
        Refused{"5 m", UnitKind::kSeconds, "'5 m' is not a time: unknown unit 'm'",
                "did you mean '5 min'? accepted: 17ms, 1us, 2.5s, 10min, 3h, 30d"},
        Refused{"40", UnitKind::kFraction, "'40' is not a fraction: it is above 1",
                "did you mean '40%'? accepted: 0.4, 40%"},
        Refused{"100", UnitKind::kFraction, "'100' is not a fraction: it is above 1",
                "did you mean '100%'? accepted: 0.4, 40%"},
        Refused{"101", UnitKind::kFraction, "'101' is not a fraction: it is above 1", "accepted: 0.4, 40%"},
        Refused{"140%", UnitKind::kFraction, "'140%' is not a fraction: it is above 1", "accepted: 0.4, 40%"},
        Refused{"$4/hr", UnitKind::kUsdPerHour, "'$4/hr' is not a price per hour: unknown unit '/hr'",
                "did you mean '$4/h'? accepted: 4.2, $4.20, 4.2USD/h"},
        Refused{"$-3", UnitKind::kUsdPerHour, "'$-3' is not a price per hour: it is negative",
                "accepted: 4.2, $4.20, 4.2USD/h"}));

INSTANTIATE_TEST_SUITE_P(
    Edges, ParseRefused,
    testing::Values(Refused{"5-3", UnitKind::kCount, "'5-3' is not a count: unexpected '-3' after '5'", kCounts},
                    Refused{"5+3", UnitKind::kCount, "'5+3' is not a count: unexpected '+3' after '5'", kCounts},
                    Refused{"1_k", UnitKind::kCount, "'1_k' is not a count: unexpected '_k' after '1'", kCounts},
                    Refused{"1_", UnitKind::kCount, "'1_' is not a count: unexpected '_' after '1'", kCounts},
                    Refused{" -5 ", UnitKind::kCount, "'-5' is not a count: it is negative", kCounts},
                    Refused{".5", UnitKind::kNumber, "'.5' is not a number: a digit must stand before the point",
                            "did you mean '0.5'? accepted: 4, 0.25, 1.5e3, 10k"},
                    Refused{"*5", UnitKind::kNumber, "'*5' is not a number: it does not start with a digit",
                            "accepted: 4, 0.25, 1.5e3, 10k"},
                    // An exponent has digits; a lone e is a unit that nobody knows.
                    Refused{"1e+", UnitKind::kBytes, "'1e+' is not a size: unknown unit 'e+'",
                            "accepted: 96GB, 80GiB, 512KiB, 16 MB"},
                    Refused{"1ex", UnitKind::kBytes, "'1ex' is not a size: unknown unit 'ex'",
                            "accepted: 96GB, 80GiB, 512KiB, 16 MB"},
                    // Three letters of four are another word.
                    Refused{"5 hxyz", UnitKind::kSeconds, "'5 hxyz' is not a time: unknown unit 'hxyz'",
                            "accepted: 17ms, 1us, 2.5s, 10min, 3h, 30d"}));

TEST(ParseQuantity, TakesABareNumberInBaseUnitsWhenAllowed) {
  EXPECT_EQ(std::get<double>(parse_quantity("5", UnitKind::kSeconds, true)), 5);
  EXPECT_TRUE(std::holds_alternative<UnitError>(parse_quantity("5", UnitKind::kSeconds, false)));
}

TEST(ParseQuantity, ShortensAHugeTextInItsMessage) {
  const auto parsed = parse_quantity(std::string(100000, 'x'), UnitKind::kCount);
  EXPECT_EQ(std::get<UnitError>(parsed).message, "'" + std::string(28, 'x') + "..." + std::string(28, 'x') +
                                                     "' is not a count: it does not start with a digit");
}

struct Printed {
  double value;
  UnitKind kind;
  int digits;
  const char* text;
};

class Format : public testing::TestWithParam<Printed> {};

TEST_P(Format, PicksTheNaturalPrefix) {
  EXPECT_EQ(format_quantity(GetParam().value, GetParam().kind, GetParam().digits), GetParam().text);
}

INSTANTIATE_TEST_SUITE_P(
    All, Format,
    testing::Values(Printed{1.234e12, UnitKind::kBytesPerSecond, 3, "1.23 TB/s"},
                    Printed{4194304, UnitKind::kCount, 3, "4.19 M"}, Printed{0.0172, UnitKind::kSeconds, 3, "17.2 ms"},
                    Printed{11520, UnitKind::kSeconds, 3, "3.2 h"}, Printed{8960, UnitKind::kCount, 4, "8.96 k"},
                    Printed{64, UnitKind::kCount, 3, "64"},
                    // Rounding carries into the next prefix.
                    Printed{999999, UnitKind::kBytes, 3, "1 MB"}, Printed{59.96, UnitKind::kSeconds, 3, "1 min"},
                    Printed{3599.9, UnitKind::kSeconds, 3, "1 h"}, Printed{0, UnitKind::kSeconds, 3, "0 s"},
                    Printed{0, UnitKind::kBytes, 3, "0 B"}, Printed{0, UnitKind::kFraction, 3, "0%"},
                    Printed{0.412, UnitKind::kFraction, 3, "41.2%"}, Printed{-0.03, UnitKind::kFraction, 3, "-3%"},
                    Printed{4.2, UnitKind::kUsdPerHour, 3, "$4.20/h"},
                    Printed{0.836, UnitKind::kUsdPerHour, 3, "$0.836/h"}, Printed{1234567, UnitKind::kNumber, 1, "1e6"},
                    Printed{1e24, UnitKind::kNumber, 3, "1e24"}, Printed{0.00012, UnitKind::kNumber, 3, "0.00012"},
                    Printed{459e12, UnitKind::kFlopsPerSecond, 3, "459 TFLOP/s"},
                    Printed{1234, UnitKind::kWatts, 3, "1.23 kW"}, Printed{1.98e9, UnitKind::kHertz, 3, "1.98 GHz"},
                    Printed{57, UnitKind::kGramsPerKwh, 3, "57 g/kWh"},
                    Printed{std::numeric_limits<double>::infinity(), UnitKind::kSeconds, 3, "unbounded"},
                    Printed{std::numeric_limits<double>::quiet_NaN(), UnitKind::kSeconds, 3, "unknown"}));

TEST(GroupThousands, HandlesSignsAndExtremes) {
  EXPECT_EQ(group_thousands(0), "0");
  EXPECT_EQ(group_thousands(999), "999");
  EXPECT_EQ(group_thousands(8960), "8,960");
  EXPECT_EQ(group_thousands(-123456), "-123,456");
  EXPECT_EQ(group_thousands(std::numeric_limits<long long>::min()), "-9,223,372,036,854,775,808");
}

TEST(AcceptedForms, ReadAfterAKeyName) {
  EXPECT_EQ(accepted_forms(UnitKind::kBytesPerSecond), "a bandwidth such as 3.35TB/s, 900 GB/s or 400Gbps");
}

}  // namespace
}  // namespace scalecalc
