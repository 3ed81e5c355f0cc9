// Writes the cells of a report as text, each in its format.
#include "report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"

namespace scalecalc {

bool is_number(Format format) { return format != Format::kText && format != Format::kFlag; }

Line next_line(NextQuestion next) {
  std::vector<std::string> flags;
  for (const FlagChange& flag : next.flags) {
    if (!flag.value.empty()) flags.push_back(flag.text());
  }
  return {join(flags, " "), Role::kCommand, std::move(next)};
}

std::string percent_text(double share) { return fmt::format("{:.1f} %", 100 * share); }
std::string signed_percent_text(double share) { return fmt::format("{:+.1f} %", 100 * share); }

std::string energy_text(double joules) {
  constexpr double kJoulesPerWattHour = 3600;
  return format_quantity(joules / kJoulesPerWattHour, UnitKind::kWatts) + "h";
}

namespace {

/// Three significant digits also where they are zeros, so that a column reads evenly: 1.1 s -> 1.10 s, 65% -> 65.0%.
std::string padded(std::string text) {
  if (text.starts_with('-')) return "-" + padded(text.substr(1));
  const std::size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::size_t point = text.find('.');
  const bool whole = point == std::string::npos || point > end;
  const std::size_t digits = end - (whole ? 0 : 1);
  if (digits >= 3 || text.front() == '0') return text;
  return text.insert(end, (whole ? "." : "") + std::string(3 - digits, '0'));
}

/// "1.10 TFLOP": a rate's text without its "/s".
std::string flops_text(double value) {
  std::string text = padded(format_quantity(value, UnitKind::kFlopsPerSecond));
  return text.substr(0, text.size() - std::string_view("/s").size());
}

}  // namespace

std::string compact_usd(double value) {
  // Cents matter below a thousand dollars and nowhere else.
  if (value < 1000) return fmt::format("${:.2f}", value);
  return "$" + padded(compact_count(value));
}

std::string text_of(const Cell& cell, Format format) {
  if (const std::string* text = std::get_if<std::string>(&cell)) return *text;
  const double* number = std::get_if<double>(&cell);
  if (number == nullptr) return "";
  check(std::isfinite(*number), "a figure in a table is finite");
  switch (format) {
    case Format::kInteger: return group_thousands(std::llround(*number));
    case Format::kCount: return *number < 1000 ? compact_count(*number) : padded(compact_count(*number));
    case Format::kBytes: return padded(bytes_text(*number));
    case Format::kSeconds: return padded(seconds_text(*number));
    case Format::kFraction: return padded(fraction_text(*number));
    case Format::kUsd: return compact_usd(*number);
    case Format::kFlops: return flops_text(*number);
    case Format::kFlopsPerSecond: return padded(format_quantity(*number, UnitKind::kFlopsPerSecond));
    case Format::kBytesPerSecond: return padded(rate_text(*number));
    case Format::kWatts: return padded(format_quantity(*number, UnitKind::kWatts));
    case Format::kHertz: return padded(format_quantity(*number, UnitKind::kHertz));
    case Format::kFlag: return *number != 0 ? "yes" : "no";
    case Format::kText:
    case Format::kNumber: break;
  }
  return format_quantity(*number, UnitKind::kNumber);
}

std::string raw_text_of(const Cell& cell) {
  if (const std::string* text = std::get_if<std::string>(&cell)) return *text;
  const double* number = std::get_if<double>(&cell);
  if (number == nullptr) return "";
  check(std::isfinite(*number), "a figure in a file is finite");
  return fmt::format("{}", *number);
}

}  // namespace scalecalc
