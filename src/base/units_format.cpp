// Printing quantities in the natural prefix, in forms that parse_quantity reads back. Nothing depends on the locale.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>
#include <string>

#include "base/units.h"

namespace scalecalc {
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
