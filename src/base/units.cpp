// Reads quantities with their units from files and flags, and writes them for people. Powers of ten are applied to the
// decimal exponent of the text, before rounding, so 3.35TB/s is exactly the double 3.35e12 and 4.5k exactly 4500.
// Nothing here depends on the locale.

#include "base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/text.h"

namespace scalecalc {
namespace {

/// One accepted spelling: the number times 10^exponent times factor is in base units.
struct Unit {
  std::string_view spelling;
  int exponent = 0;
  double factor = 1;
};

constexpr double kKi = 1024.0;
constexpr double kMi = kKi * kKi;
constexpr double kGi = kMi * kKi;
constexpr double kTi = kGi * kKi;
constexpr double kPi = kTi * kKi;
constexpr double kBit = 1.0 / 8;

// The first spelling of a size is the one suggested.
constexpr std::array kCountUnits = {Unit{"k", 3},       Unit{"K", 3},       Unit{"M", 6},       Unit{"B", 9},
                                    Unit{"G", 9},       Unit{"T", 12},      Unit{"Ki", 0, kKi}, Unit{"ki", 0, kKi},
                                    Unit{"Mi", 0, kMi}, Unit{"Gi", 0, kGi}, Unit{"Ti", 0, kTi}};
constexpr std::array kByteUnits = {Unit{"B", 0},        Unit{"kB", 3},       Unit{"KB", 3},       Unit{"MB", 6},
                                   Unit{"GB", 9},       Unit{"TB", 12},      Unit{"PB", 15},      Unit{"KiB", 0, kKi},
                                   Unit{"kiB", 0, kKi}, Unit{"MiB", 0, kMi}, Unit{"GiB", 0, kGi}, Unit{"TiB", 0, kTi},
                                   Unit{"PiB", 0, kPi}};
constexpr std::array kBandwidthUnits = {
    Unit{"B/s", 0},         Unit{"kB/s", 3},        Unit{"KB/s", 3},       Unit{"MB/s", 6},       Unit{"GB/s", 9},
    Unit{"TB/s", 12},       Unit{"PB/s", 15},       Unit{"KiB/s", 0, kKi}, Unit{"kiB/s", 0, kKi}, Unit{"MiB/s", 0, kMi},
    Unit{"GiB/s", 0, kGi},  Unit{"TiB/s", 0, kTi},  Unit{"PiB/s", 0, kPi}, Unit{"Gbps", 9, kBit}, Unit{"Gb/s", 9, kBit},
    Unit{"Tbps", 12, kBit}, Unit{"Tb/s", 12, kBit}, Unit{"Mbps", 6, kBit}, Unit{"Mb/s", 6, kBit}, Unit{"kbps", 3, kBit},
    Unit{"kb/s", 3, kBit},  Unit{"Kbps", 3, kBit},  Unit{"Kb/s", 3, kBit}, Unit{"bps", 0, kBit},  Unit{"b/s", 0, kBit}};
constexpr std::array kTimeUnits = {Unit{"s", 0},        Unit{"ms", -3},      Unit{"us", -6},
                                   Unit{"\u00B5s", -6}, Unit{"\u03BCs", -6}, Unit{"ns", -9},
                                   Unit{"min", 0, 60},  Unit{"h", 0, 3600},  Unit{"d", 0, 86400}};
constexpr std::array kFractionUnits = {Unit{"%", -2}};
constexpr std::array kWattUnits = {Unit{"W", 0},  Unit{"mW", -3}, Unit{"kW", 3},
                                   Unit{"KW", 3}, Unit{"MW", 6},  Unit{"GW", 9}};
constexpr std::array kHertzUnits = {Unit{"Hz", 0}, Unit{"kHz", 3}, Unit{"MHz", 6}, Unit{"GHz", 9}};
constexpr std::array kCarbonUnits = {Unit{"g/kWh", 0}, Unit{"gCO2/kWh", 0}, Unit{"kg/kWh", 3}, Unit{"kg/MWh", 0},
                                     Unit{"t/MWh", 3}};
constexpr std::array kPriceUnits = {Unit{"USD/h"}, Unit{"$/h"}, Unit{"/h"}, Unit{"USD"}};

constexpr std::array kFlopPrefixes = {Unit{"", 0},  Unit{"k", 3},  Unit{"K", 3},  Unit{"M", 6},
                                      Unit{"G", 9}, Unit{"T", 12}, Unit{"P", 15}, Unit{"E", 18}};
constexpr std::array<std::string_view, 7> kFlopNames = {"FLOP/s", "FLOPs/s", "FLOPS", "FLOPs", "OP/s", "OPs/s", "OPS"};

/// What messages say about a kind.
struct KindText {
  std::string_view noun;      ///< "'x' is not <noun>"
  std::string_view unit_of;   ///< "'GB' is a unit of <unit_of>"; empty where suffixes are shared with other kinds
  std::string_view examples;  ///< "accepted: <examples>"
  std::string_view forms;     ///< accepted_forms()
};

constexpr std::array<KindText, 11> kKindTexts{{
    {"a count", "", "8960, 4M, 70B, 15T, 128k, 16e6, 4Mi", "a whole number such as 8960, 4M, 70B, 15T or 4Mi"},
    {"a number", "", "4, 0.25, 1.5e3, 10k", "a number such as 4, 0.25 or 1.5e3"},
    {"a size", "size", "96GB, 80GiB, 512KiB, 16 MB", "a size such as 96GB, 80GiB or 512KiB"},
    {"a bandwidth", "bandwidth", "3.35TB/s, 900 GB/s, 400Gbps", "a bandwidth such as 3.35TB/s, 900 GB/s or 400Gbps"},
    {"a compute rate", "compute rate", "459TFLOP/s, 1.98PFLOP/s, 1979TOP/s",
     "a compute rate such as 459TFLOP/s, 1.98PFLOP/s or 1979TOP/s"},
    {"a time", "time", "17ms, 1us, 2.5s, 10min, 3h, 30d", "a time such as 17ms, 1us, 2.5s, 3h or 30d"},
    {"a fraction", "", "0.4, 40%", "a fraction from 0 to 1 such as 0.4 or 40%"},
    {"a power", "power", "700W, 1.2kW", "a power such as 700W or 1.2kW"},
    {"a price per hour", "price", "4.2, $4.20, 4.2USD/h", "a price in dollars per hour such as 4.2, $4.20 or 4.2USD/h"},
    {"a frequency", "frequency", "1.75GHz, 1410MHz", "a frequency such as 1.75GHz or 1410MHz"},
    {"a carbon intensity", "carbon intensity", "57, 400g/kWh, 0.4kg/kWh",
     "grams of CO2 per kWh such as 57, 400g/kWh or 0.4kg/kWh"},
}};

constexpr std::array kAllKinds = {UnitKind::kCount,          UnitKind::kNumber,         UnitKind::kBytes,
                                  UnitKind::kBytesPerSecond, UnitKind::kFlopsPerSecond, UnitKind::kSeconds,
                                  UnitKind::kFraction,       UnitKind::kWatts,          UnitKind::kUsdPerHour,
                                  UnitKind::kHertz,          UnitKind::kGramsPerKwh};

const KindText& text_of(UnitKind kind) { return kKindTexts.at(static_cast<std::size_t>(kind)); }

/// Units of a kind; of compute rates the prefixes, which stand before one of the names.
std::span<const Unit> units_of(UnitKind kind) {
  switch (kind) {
    case UnitKind::kCount:
    case UnitKind::kNumber: return kCountUnits;
    case UnitKind::kBytes: return kByteUnits;
    case UnitKind::kBytesPerSecond: return kBandwidthUnits;
    case UnitKind::kSeconds: return kTimeUnits;
    case UnitKind::kFraction: return kFractionUnits;
    case UnitKind::kWatts: return kWattUnits;
    case UnitKind::kUsdPerHour: return kPriceUnits;
    case UnitKind::kHertz: return kHertzUnits;
    case UnitKind::kGramsPerKwh: return kCarbonUnits;
    case UnitKind::kFlopsPerSecond: return kFlopPrefixes;
  }
  return {};
}

std::span<const std::string_view> names_behind(UnitKind kind) {
  static constexpr std::array<std::string_view, 1> kNoName = {""};
  if (kind == UnitKind::kFlopsPerSecond) return kFlopNames;
  return kNoName;
}

std::vector<std::string> spellings(UnitKind kind) {
  std::vector<std::string> out;
  for (const std::string_view name : names_behind(kind)) {
    for (const Unit& unit : units_of(kind)) out.push_back(std::string(unit.spelling).append(name));
  }
  return out;
}

std::optional<Unit> find_unit(UnitKind kind, std::string_view unit) {
  for (const std::string_view name : names_behind(kind)) {
    if (!unit.ends_with(name)) continue;
    const std::string_view before = unit.substr(0, unit.size() - name.size());
    for (const Unit& found : units_of(kind)) {
      if (found.spelling == before) return found;
    }
  }
  return std::nullopt;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool needs_unit(UnitKind kind) {
  return kind == UnitKind::kBytes || kind == UnitKind::kBytesPerSecond || kind == UnitKind::kFlopsPerSecond ||
         kind == UnitKind::kSeconds || kind == UnitKind::kWatts || kind == UnitKind::kHertz;
}

/// A text split into its decimal number and what follows.
struct Split {
  std::string mantissa;     ///< digits and at most one point, separators removed
  long exponent = 0;        ///< as written, clamped
  std::string_view number;  ///< as written
  std::string_view unit;    ///< after the number and blanks
};

/// Digits with single '_' between them; returns how many characters were taken.
std::size_t take_digits(std::string_view text, std::string& digits) {
  std::size_t at = 0;
  while (at < text.size()) {
    const bool separator =
        text[at] == '_' && at > 0 && is_digit(text[at - 1]) && at + 1 < text.size() && is_digit(text[at + 1]);
    if (!is_digit(text[at]) && !separator) break;
    if (!separator) digits += text[at];
    ++at;
  }
  return at;
}

/// Takes "e12", "E+3" off the front of `rest`, if one is there; a lone e is left for the unit.
long take_exponent(std::string_view& rest) {
  constexpr long kBeyondAnyDouble = 100000;
  if (rest.empty() || (rest.front() != 'e' && rest.front() != 'E')) return 0;
  std::size_t at = 1;
  const bool minus = rest.size() > 1 && rest[1] == '-';
  if (rest.size() > 1 && (rest[1] == '-' || rest[1] == '+')) ++at;
  if (at >= rest.size() || !is_digit(rest[at])) return 0;
  long value = 0;
  for (; at < rest.size() && is_digit(rest[at]); ++at)
    value = std::min(value * 10 + (rest[at] - '0'), kBeyondAnyDouble);
  rest.remove_prefix(at);
  return minus ? -value : value;
}

/// The number at the start of `text`, which starts with a digit.
Split split(std::string_view text) {
  Split out;
  std::string_view rest = text;
  rest.remove_prefix(take_digits(rest, out.mantissa));
  if (rest.size() > 1 && rest[0] == '.' && is_digit(rest[1])) {
    out.mantissa += '.';
    rest.remove_prefix(1);
    rest.remove_prefix(take_digits(rest, out.mantissa));
  }
  out.exponent = take_exponent(rest);
  out.number = text.substr(0, text.size() - rest.size());
  const std::size_t unit_at = rest.find_first_not_of(' ');
  out.unit = unit_at == std::string_view::npos ? std::string_view{} : rest.substr(unit_at);
  return out;
}

UnitError wrong(std::string_view text, UnitKind kind, std::string_view why, std::string hint = "") {
  const KindText& words = text_of(kind);
  if (!hint.empty()) hint += ' ';
  return {fmt::format("{} is not {}: {}", in_quotes(text), words.noun, why),
          fmt::format("{}accepted: {}", hint, words.examples)};
}

UnitError wrong_instead(std::string_view text, UnitKind kind, std::string_view why, const std::string& instead) {
  return wrong(text, kind, why, did_you_mean({instead}));
}

/// Spellings from other fields of computing, and words people write out.
std::string_view range(UnitKind kind, std::string_view unit) {
  struct ShapeRange {
    UnitKind kind;
    std::string_view written;
    std::string_view accepted;
  };
  static constexpr std::array<ShapeRange, 17> kShapeRanges{{{UnitKind::kBytes, "byte", "B"},
                                                            {UnitKind::kSeconds, "sec", "s"},
                                                            {UnitKind::kSeconds, "secs", "s"},
                                                            {UnitKind::kSeconds, "seconds", "s"},
                                                            {UnitKind::kSeconds, "m", "min"},
                                                            {UnitKind::kSeconds, "mins", "min"},
                                                            {UnitKind::kSeconds, "minutes", "min"},
                                                            {UnitKind::kSeconds, "hr", "h"},
                                                            {UnitKind::kSeconds, "hours", "h"},
                                                            {UnitKind::kSeconds, "days", "d"},
                                                            {UnitKind::kBytes, "bytes", "B"},
                                                            {UnitKind::kBytes, "G", "GB"},
                                                            {UnitKind::kBytesPerSecond, "bytes/s", "B/s"},
                                                            {UnitKind::kBytesPerSecond, "TBps", "TB/s"},
                                                            {UnitKind::kBytesPerSecond, "GBps", "GB/s"},
                                                            {UnitKind::kBytesPerSecond, "MBps", "MB/s"},
                                                            {UnitKind::kUsdPerHour, "/hr", "/h"}}};
  for (const ShapeRange& entry : kShapeRanges) {
    if (entry.kind == kind && entry.written == unit) return entry.accepted;
  }
  return {};
}

/// Characters of `word` that `spelling` lacks, case counting: breaks ties between TB/s and Tb/s.
std::size_t letters_missing(std::string_view word, std::string_view spelling) {
  return static_cast<std::size_t>(
      std::count_if(word.begin(), word.end(), [&](char c) { return spelling.find(c) == std::string_view::npos; }));
}

/// The accepted spelling nearest to a wrong unit, or nothing if none is near.
std::string nearest_unit(UnitKind kind, std::string_view unit) {
  constexpr std::size_t kLongest = 16;
  if (unit.size() > kLongest) return "";
  if (const std::string_view known = range(kind, unit); !known.empty()) return std::string(known);
  std::string best;
  std::pair<std::size_t, std::size_t> best_cost{std::max<std::size_t>(1, unit.size() / 2) + 1, 0};
  for (const std::string& spelling : spellings(kind)) {
    const bool unit_cut_short = unit.size() > 1 && spelling.starts_with(unit);
    const std::pair<std::size_t, std::size_t> cost{unit_cut_short ? 0 : edit_distance(unit, spelling),
                                                   letters_missing(unit, spelling)};
    if (cost.first >= std::max(unit.size(), spelling.size())) continue;  // nothing in common
    if (cost < best_cost) {
      best = spelling;
      best_cost = cost;
    }
  }
  return best;
}

UnitError unknown_unit(std::string_view text, UnitKind kind, const Split& parts) {
  std::string why = fmt::format("unknown unit {}", in_quotes(parts.unit));
  for (const UnitKind other : kAllKinds) {
    const std::string_view unit_of = text_of(other).unit_of;
    if (other == kind || unit_of.empty() || !find_unit(other, parts.unit)) continue;
    why = fmt::format("{} is a unit of {}", in_quotes(parts.unit), unit_of);
    // 4GB is no mistyped 4B: a count has no unit to be near to.
    if (!needs_unit(kind)) return wrong(text, kind, why);
    break;
  }
  const std::string unit = nearest_unit(kind, parts.unit);
  if (unit.empty()) return wrong(text, kind, why);
  const std::string_view number = text.substr(0, text.size() - parts.unit.size());  // with its '$' and its blank
  return wrong_instead(text, kind, why, std::string(number) + unit);
}

/// 1,000 and 1,5: the first is meant as 1000, the second as 1.5.
UnitError comma_error(std::string_view text, UnitKind kind) {
  std::string plain;
  bool groups = true;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != ',') {
      plain += text[at];
      continue;
    }
    const std::size_t end = std::min(text.find_first_not_of("0123456789", at + 1), text.size());
    groups = groups && end - at == 4;
  }
  if (groups) return wrong_instead(text, kind, "a number has no commas", plain);
  return wrong(text, kind, "a number has no commas; the decimal sign is a point");
}

/// Why a text that does not start with a digit is no quantity.
UnitError no_digit_error(std::string_view text, std::string_view body, UnitKind kind) {
  if (text.empty()) return wrong(text, kind, "it is empty");
  const bool digit_follows = body.size() > 1 && is_digit(body[1]);
  if (digit_follows && body[0] == '-') return wrong(text, kind, "it is negative");
  if (digit_follows && body[0] == '+') {
    return wrong_instead(text, kind, "a number has no '+' sign", std::string(body.substr(1)));
  }
  if (digit_follows && body[0] == '.') {
    return wrong_instead(text, kind, "a digit must stand before the point", "0" + std::string(body));
  }
  return wrong(text, kind, "it does not start with a digit");
}

/// What follows a number and cannot be a unit; nothing if the rest may be one.
std::optional<UnitError> trailing_error(std::string_view text, UnitKind kind, const Split& parts) {
  if (parts.unit.empty()) return std::nullopt;
  const char next = parts.unit.front();
  if (parts.number == "0" && (next == 'x' || next == 'X')) {
    return wrong(text, kind, "hexadecimal numbers are not accepted");
  }
  if (next == ',') return comma_error(text, kind);
  if (is_digit(next) || next == '.' || next == '_' || next == '-' || next == '+') {
    return wrong(text, kind, fmt::format("unexpected {} after {}", in_quotes(parts.unit), in_quotes(parts.number)));
  }
  return std::nullopt;
}

/// Digits before the point, leading zeros left out, plus the exponent: the order of magnitude.
long magnitude(const std::string& mantissa, long exponent) {
  const std::size_t first = std::min(mantissa.find_first_not_of('0'), mantissa.size());
  const std::size_t point = std::min(mantissa.find('.'), mantissa.size());
  return (point > first ? static_cast<long>(point - first) : 0L) + exponent;
}

std::variant<double, UnitError> evaluate(std::string_view text, UnitKind kind, const Split& parts, const Unit& unit) {
  const long exponent = parts.exponent + unit.exponent;
  const std::string decimal = fmt::format("{}e{}", parts.mantissa, exponent);
  double value = 0;
  const auto [end, error] = std::from_chars(decimal.data(), decimal.data() + decimal.size(), value);
  const bool out_of_range = error == std::errc::result_out_of_range;
  if (out_of_range && magnitude(parts.mantissa, exponent) < 0) return wrong(text, kind, "it is too small");
  value *= unit.factor;
  // Beyond anything of this world, so that products of a few quantities stay numbers.
  constexpr double kLargest = 1e36;
  if (out_of_range || value > kLargest) return wrong(text, kind, "it is too large");
  if (value != 0 && value < 1 / kLargest) return wrong(text, kind, "it is too small");
  check(error == std::errc{} && end == decimal.data() + decimal.size(), "a decimal number reads whole");
  return value;
}

/// Rules of a kind about the value itself.
std::optional<UnitError> value_error(std::string_view text, UnitKind kind, const Split& parts, double value) {
  constexpr double kLargestWhole = 9007199254740992.0;  // 2^53: above it doubles skip whole numbers
  if (kind == UnitKind::kCount) {
    if (value > kLargestWhole) return wrong(text, kind, "it is above 2^53");
    if (value != std::floor(value)) return wrong(text, kind, "it is not a whole number");
  }
  if (kind == UnitKind::kFraction && value > 1) {
    if (parts.unit.empty() && value <= 100) {
      return wrong_instead(text, kind, "it is above 1", std::string(parts.number) + "%");
    }
    return wrong(text, kind, "it is above 1");
  }
  return std::nullopt;
}

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

}  // namespace

std::variant<double, UnitError> parse_quantity(std::string_view text, UnitKind kind, bool bare_ok) {
  const std::string_view whole = trim(text);
  std::string_view body = whole;
  if (kind == UnitKind::kUsdPerHour && body.starts_with('$')) body.remove_prefix(1);
  if (body.empty() || !is_digit(body.front())) return no_digit_error(whole, body, kind);
  const Split parts = split(body);
  if (auto error = trailing_error(whole, kind, parts)) return *error;
  Unit unit;
  if (!parts.unit.empty()) {
    const std::optional<Unit> found = find_unit(kind, parts.unit);
    if (!found) return unknown_unit(whole, kind, parts);
    unit = *found;
  } else if (needs_unit(kind) && !bare_ok) {
    return wrong(whole, kind, "the unit is missing");
  }
  std::variant<double, UnitError> value = evaluate(whole, kind, parts, unit);
  if (const double* number = std::get_if<double>(&value)) {
    if (auto error = value_error(whole, kind, parts, *number)) return *error;
  }
  return value;
}

std::string_view accepted_forms(UnitKind kind) { return text_of(kind).forms; }

// Printing quantities in the natural prefix, in forms that parse_quantity reads back. Nothing depends on the locale.

namespace {

/// A prefix to print with: the number is divided by the scale.
struct Scale {
  double size;
  std::string_view unit;
};

constexpr std::array kCountScales = {Scale{1, ""}, Scale{1e3, "k"}, Scale{1e6, "M"}, Scale{1e9, "B"}, Scale{1e12, "T"}};
constexpr std::array kByteScales = {Scale{1, "B"},    Scale{1e3, "kB"},  Scale{1e6, "MB"},
                                    Scale{1e9, "GB"}, Scale{1e12, "TB"}, Scale{1e15, "PB"}};
constexpr std::array kBandwidthScales = {Scale{1, "B/s"},    Scale{1e3, "kB/s"},  Scale{1e6, "MB/s"},
                                         Scale{1e9, "GB/s"}, Scale{1e12, "TB/s"}, Scale{1e15, "PB/s"}};
constexpr std::array kFlopScales = {Scale{1, "FLOP/s"},    Scale{1e3, "kFLOP/s"},  Scale{1e6, "MFLOP/s"},
                                    Scale{1e9, "GFLOP/s"}, Scale{1e12, "TFLOP/s"}, Scale{1e15, "PFLOP/s"},
                                    Scale{1e18, "EFLOP/s"}};
constexpr std::array kTimeScales = {Scale{1e-9, "ns"}, Scale{1e-6, "us"}, Scale{1e-3, "ms"}, Scale{1, "s"},
                                    Scale{60, "min"},  Scale{3600, "h"},  Scale{86400, "d"}};
constexpr std::array kWattScales = {Scale{1e-3, "mW"}, Scale{1, "W"}, Scale{1e3, "kW"}, Scale{1e6, "MW"},
                                    Scale{1e9, "GW"}};
constexpr std::array kHertzScales = {Scale{1, "Hz"}, Scale{1e3, "kHz"}, Scale{1e6, "MHz"}, Scale{1e9, "GHz"}};

std::span<const Scale> scales(UnitKind kind) {
  switch (kind) {
    case UnitKind::kCount: return kCountScales;
    case UnitKind::kBytes: return kByteScales;
    case UnitKind::kBytesPerSecond: return kBandwidthScales;
    case UnitKind::kFlopsPerSecond: return kFlopScales;
    case UnitKind::kSeconds: return kTimeScales;
    case UnitKind::kWatts: return kWattScales;
    case UnitKind::kHertz: return kHertzScales;
    case UnitKind::kNumber:
    case UnitKind::kFraction:
    case UnitKind::kUsdPerHour:
    case UnitKind::kGramsPerKwh: break;
  }
  return {};
}

/// `digits` significant digits, in plain notation between 1e-4 and 1e6, without trailing zeros.
std::string significant(double value, int digits) {
  if (value == 0) return "0";
  const std::string scientific = fmt::format("{:.{}e}", value, std::max(digits, 1) - 1);
  const int exponent = std::stoi(scientific.substr(scientific.find('e') + 1));
  const bool plain = exponent >= -4 && exponent < 6;
  std::string number = plain ? fmt::format("{:.{}f}", value, std::max(0, digits - 1 - exponent))
                             : scientific.substr(0, scientific.find('e'));
  if (number.find('.') != std::string::npos) {
    number.erase(number.find_last_not_of('0') + 1);
    if (number.back() == '.') number.pop_back();
  }
  return plain ? number : fmt::format("{}e{}", number, exponent);
}

/// The number in the largest unit that leaves at least one of it, after rounding: 999,999 bytes are 1 MB.
std::string scaled(double value, std::span<const Scale> units, int digits) {
  std::size_t i = 0;
  while (i + 1 < units.size() && value >= units[i + 1].size) ++i;
  std::string number = significant(value / units[i].size, digits);
  double printed = 0;
  std::from_chars(number.data(), number.data() + number.size(), printed);
  if (i + 1 < units.size() && printed * units[i].size >= units[i + 1].size) {
    number = "1";
    ++i;
  }
  return units[i].unit.empty() ? number : fmt::format("{} {}", number, units[i].unit);
}

/// Cents always, and more places where `digits` asks for them.
std::string price(double value, int digits) {
  const std::string shortest = significant(value, digits);
  const std::size_t point = shortest.find('.');
  if (shortest.find('e') != std::string::npos) return fmt::format("${}/h", shortest);
  const std::size_t places = point == std::string::npos ? 0 : shortest.size() - point - 1;
  return fmt::format("${:.{}f}/h", value, std::max<std::size_t>(places, 2));
}

}  // namespace

std::string format_quantity(double value, UnitKind kind, int digits) {
  if (!std::isfinite(value)) return std::isnan(value) ? "unknown" : value > 0 ? "unbounded" : "-unbounded";
  if (value < 0) return "-" + format_quantity(-value, kind, digits);
  switch (kind) {
    case UnitKind::kNumber: return significant(value, digits);
    case UnitKind::kFraction: return significant(value * 100, digits) + "%";
    case UnitKind::kUsdPerHour: return price(value, digits);
    case UnitKind::kGramsPerKwh: return significant(value, digits) + " g/kWh";
    case UnitKind::kCount:
      if (value < 1000) return fmt::format("{:.0f}", value);
      break;
    case UnitKind::kSeconds:
      if (value == 0) return "0 s";
      break;
    case UnitKind::kWatts:
      if (value == 0) return "0 W";
      break;
    case UnitKind::kBytes:
    case UnitKind::kBytesPerSecond:
    case UnitKind::kFlopsPerSecond:
    case UnitKind::kHertz: break;
  }
  return scaled(value, scales(kind), digits);
}

std::string compact_count(double value, int digits) {
  std::string text = format_quantity(value, UnitKind::kCount, digits);
  std::erase(text, ' ');
  return text;
}

std::string group_thousands(long long value) {
  std::string digits = std::to_string(value);
  const std::size_t first = value < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

}  // namespace scalecalc
