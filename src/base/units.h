// The one unit grammar of YAML files and of the command line, in both directions.
//
// number [space] unit?   where number = decimal digits with optional '_' between digits, fraction and exponent;
// no octal, no hex, no commas. Prefixes are case-sensitive except k/K. GB is 10^9 bytes, GiB is 2^30.
//   count      8960  4M  15T  70B  128k  16e6  4Mi      (powers of ten; Ki Mi Gi Ti are powers of two)
//   bytes      96GB  80GiB  512KiB                       (B kB MB GB TB PB, KiB..PiB)
//   bytes/s    3.35TB/s  900 GB/s  400Gbps  400Gb/s      (b = bits, divided by 8)
//   FLOP/s     459TFLOP/s  1.98PFLOP/s  989TFLOPs/s      (also OP/s)
//   seconds    17ms  1us  2.5s  10min  3h  30d
//   fraction   0.4  40%
//   watts      700W  1.2kW          dollars per hour  4.2  $4.20  4.2USD/h
//   hertz      1.75GHz  1410MHz                           grams per kWh  400  57g/kWh  0.4kg/kWh
#pragma once

#include <string>
#include <string_view>
#include <variant>

namespace scalecalc {

enum class UnitKind {
  kCount,
  kNumber,
  kBytes,
  kBytesPerSecond,
  kFlopsPerSecond,
  kSeconds,
  kFraction,
  kWatts,
  kUsdPerHour,
  kHertz,
  kGramsPerKwh
};

/// Why a text is not a quantity of the kind asked for.
struct UnitError {
  std::string message;  ///< e.g. "'2.8 TBs' is not a bandwidth: unknown unit 'TBs'"
  std::string hint;     ///< e.g. "did you mean '2.8 TB/s'? accepted: 3.35TB/s, 900 GB/s, 400Gbps"
};

/// Text to a number in the SI base unit of `kind`. A count must be whole and fit 2^53; `kNumber` is a plain
/// dimensionless number that may be fractional; a fraction lies in 0..1; prices are in dollars per hour, carbon
/// intensities in grams per kWh. With `bare_ok`
/// a plain number is taken in the base unit; otherwise a missing unit is an error (counts, numbers and fractions never
/// need one). What is not 0 lies within 1e-36 and 1e36: what is beyond is refused, never NaN or infinity.
std::variant<double, UnitError> parse_quantity(std::string_view text, UnitKind kind, bool bare_ok = false);

/// Number to text with `digits` significant digits and the natural prefix: 1.23 TB/s, 4.19 M, 17.2 ms, 3.2 h.
/// parse_quantity(format_quantity(x, kind), kind) gives x back to the printed precision (seconds may print as
/// min, h, d; counts as k, M, B (10^9), T).
std::string format_quantity(double value, UnitKind kind, int digits = 3);

/// "4.19M", "8.26M": a count with its prefix, no blank between.
std::string compact_count(double value, int digits = 3);

inline constexpr double kSecondsPerHour = 3600;
inline constexpr double kSecondsPerDay = 86400;
inline constexpr double kSecondsPerYear = 365 * kSecondsPerDay;

/// "17.2 ms", "1.23 GB", "3.35 TB/s", "12.5%".
inline std::string seconds_text(double seconds) { return format_quantity(seconds, UnitKind::kSeconds); }
inline std::string bytes_text(double bytes) { return format_quantity(bytes, UnitKind::kBytes); }
inline std::string rate_text(double bytes_per_s) { return format_quantity(bytes_per_s, UnitKind::kBytesPerSecond); }
inline std::string fraction_text(double share) { return format_quantity(share, UnitKind::kFraction); }

/// 8960 -> "8,960"; for whole counts in tables.
std::string group_thousands(long long value);

/// What `kind` accepts, for hints: "a bandwidth such as 3.35TB/s, 900 GB/s or 400Gbps".
std::string_view accepted_forms(UnitKind kind);

}  // namespace scalecalc
