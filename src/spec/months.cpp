// Reads and compares months, the dates of software releases and of measured runs.
#include "spec/months.h"

#include <fmt/format.h>

#include <cstddef>

#include "base/text.h"

namespace scalecalc {
namespace {

constexpr std::size_t kYear = 4;
constexpr std::size_t kMonth = 7;

/// Two digits of a number from 1 to `most`.
bool counts_to(std::string_view text, std::string_view most) {
  return text.size() == 2 && text.find_first_not_of("0123456789") == std::string_view::npos && text >= "01" &&
         text <= most;
}

std::string checked(Fields& fields, std::string_view key, std::string out) {
  if (out.empty() || out.size() == kYear || out.starts_with('~') || month_of(out).empty()) {
    fields.problems().add(fields.node(key)->span,
                          fmt::format("'{}' is {}; it must be a month such as 2024-05, or a day", key, in_quotes(out)));
  }
  return out;
}

}  // namespace

std::string month_of(std::string_view date) {
  if (date.starts_with('~')) date.remove_prefix(1);
  const std::string_view year = date.substr(0, kYear);
  if (year.size() < kYear || year.find_first_not_of("0123456789") != std::string_view::npos) return "";
  if (date.size() == kYear) return std::string(date) + "-06";
  if (date.size() < kMonth || date[kYear] != '-' || !counts_to(date.substr(kYear + 1, 2), "12")) return "";
  if (date.size() > kMonth && (date[kMonth] != '-' || !counts_to(date.substr(kMonth + 1), "31"))) return "";
  return std::string(date.substr(0, kMonth));
}

bool before(std::string_view month, std::string_view date) {
  return !month.empty() && !date.empty() && month < date.substr(0, kMonth);
}

std::string required_date(Fields& fields, std::string_view key) {
  std::string out = fields.text(key);
  return fields.node(key) == nullptr ? out : checked(fields, key, std::move(out));
}

std::string optional_date(Fields& fields, std::string_view key) {
  auto out = fields.optional_text(key);
  return out ? checked(fields, key, *std::move(out)) : "";
}

}  // namespace scalecalc
