// Reads a flag's list of values, such as 8..8192*2 or 8,16,64, for the commands that draw a curve.
#include "base/sweep.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"

namespace scalecalc {
namespace {

constexpr std::string_view kForms = "a value, a list 8,16,64, or a range 8..8192*2, 0..4096+512 or 1..512 (doubling)";

UnitError wrong(std::string_view text, std::string_view why) {
  return {fmt::format("{} {}", in_quotes(text), why), std::string(kForms)};
}

struct Range {
  double first = 0;
  double last = 0;
  char sign = '*';
  double step = 2;
};

std::variant<std::vector<double>, UnitError> values_of(const Range& range, std::string_view text, UnitKind kind,
                                                       std::size_t most) {
  if (range.last < range.first) return wrong(text, "ends below its start");
  if (range.sign == '*' && (range.step <= 1 || range.first <= 0)) {
    return wrong(text, "does not rise: a factor is above 1 and its start above 0");
  }
  if (range.sign == '+' && range.step <= 0) return wrong(text, "does not rise: its step must be above 0");
  std::vector<double> out;
  // The end may be missed by a rounding of the steps.
  const double end = range.last * (1 + 1e-12);
  for (std::size_t i = 0;; ++i) {
    const auto n = static_cast<double>(i);
    double value = range.sign == '*' ? range.first * std::pow(range.step, n) : range.first + n * range.step;
    if (value > end) break;
    if (out.size() == most) return wrong(text, "has " + limits::too_many(most, "values"));
    if (kind == UnitKind::kCount) value = std::round(value);
    out.push_back(std::min(value, range.last));
  }
  return out;
}

std::variant<std::vector<double>, UnitError> parse_range(std::string_view text, std::size_t dots, UnitKind kind,
                                                         bool bare_ok, std::size_t most) {
  Range range;
  std::string_view rest = text.substr(dots + 2);
  const std::size_t sign = rest.find_first_of("*+");
  if (sign != std::string_view::npos) {
    range.sign = rest[sign];
    const auto step = parse_quantity(rest.substr(sign + 1), range.sign == '*' ? UnitKind::kNumber : kind, bare_ok);
    if (const UnitError* error = std::get_if<UnitError>(&step)) return *error;
    range.step = std::get<double>(step);
  }
  const auto first = parse_quantity(text.substr(0, dots), kind, bare_ok);
  if (const UnitError* error = std::get_if<UnitError>(&first)) return *error;
  const auto last = parse_quantity(rest.substr(0, sign), kind, bare_ok);
  if (const UnitError* error = std::get_if<UnitError>(&last)) return *error;
  range.first = std::get<double>(first);
  range.last = std::get<double>(last);
  auto values = values_of(range, text, kind, most);
  // Without a step the reader asked for both ends.
  if (auto* list = std::get_if<std::vector<double>>(&values);
      list != nullptr && sign == std::string_view::npos && list->back() < range.last) {
    list->push_back(range.last);
  }
  return values;
}

}  // namespace

std::variant<std::vector<double>, UnitError> parse_sweep(std::string_view text, UnitKind kind, bool bare_ok,
                                                         std::size_t most) {
  std::vector<double> out;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string_view part = text.substr(at, end - at);
    const std::size_t dots = part.find("..");
    if (dots != std::string_view::npos) {
      auto values = parse_range(part, dots, kind, bare_ok, most);
      if (const UnitError* error = std::get_if<UnitError>(&values)) return *error;
      const auto& list = std::get<std::vector<double>>(values);
      out.insert(out.end(), list.begin(), list.end());
    } else {
      const auto value = parse_quantity(part, kind, bare_ok);
      if (const UnitError* error = std::get_if<UnitError>(&value)) return *error;
      out.push_back(std::get<double>(value));
    }
    if (out.size() > most) return wrong(text, "has " + limits::too_many(most, "values"));
    at = end + 1;
  }
  return out;
}

}  // namespace scalecalc
