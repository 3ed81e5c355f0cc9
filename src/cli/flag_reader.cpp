#include "cli/flag_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/text.h"

namespace scalecalc::cli {

void FlagReader::problem(std::string message, std::string hint) {
  problems_.push_back({SourceSpan{}, std::move(message), std::move(hint)});
}

void FlagReader::problems(std::vector<Diagnostic> found) {
  std::move(found.begin(), found.end(), std::back_inserter(problems_));
}

void FlagReader::finish() {
  if (!problems_.empty()) throw UserError(std::move(problems_));
}

std::optional<std::int64_t> FlagReader::count_of(std::string_view name, std::string_view text, CountRange range) {
  const std::string limits = fmt::format("from {} to {}", group_thousands(range.least), group_thousands(range.most));
  // Read as a plain number first: 1e18 is a good count, only far too large, and should be told so.
  const auto number = parse_quantity(text, UnitKind::kNumber);
  const double* size = std::get_if<double>(&number);
  if (size != nullptr && (*size < static_cast<double>(range.least) || *size > static_cast<double>(range.most)) &&
      *size == std::floor(*size)) {
    problem(fmt::format("{} {} is out of range", name, in_quotes(text)), fmt::format("a whole number {}", limits));
    return std::nullopt;
  }
  const auto parsed = parse_quantity(text, UnitKind::kCount);
  if (const UnitError* error = std::get_if<UnitError>(&parsed)) {
    problem(fmt::format("{}: {}", name, error->message), fmt::format("{}; {}", error->hint, limits));
    return std::nullopt;
  }
  return static_cast<std::int64_t>(std::get<double>(parsed));
}

std::optional<std::int64_t> FlagReader::count(std::string_view flag, CountRange range) {
  const std::optional<std::string> text = arguments_.value(flag);
  if (!text) return std::nullopt;
  return count_of(flag, *text, range);
}

std::optional<double> FlagReader::fraction(std::string_view flag) {
  const std::optional<std::string> text = arguments_.value(flag);
  if (!text) return std::nullopt;
  const auto parsed = parse_quantity(*text, UnitKind::kFraction);
  if (const double* value = std::get_if<double>(&parsed)) return *value;
  const UnitError& error = std::get<UnitError>(parsed);
  problem(fmt::format("{}: {}", flag, error.message), error.hint);
  return std::nullopt;
}

std::optional<double> FlagReader::positive(std::string_view flag, UnitKind kind) {
  const std::optional<std::string> text = arguments_.value(flag);
  if (!text) return std::nullopt;
  const auto parsed = parse_quantity(*text, kind);
  if (const UnitError* error = std::get_if<UnitError>(&parsed)) {
    problem(fmt::format("{}: {}", flag, error->message), error->hint);
    return std::nullopt;
  }
  const double value = std::get<double>(parsed);
  if (value <= 0) {
    problem(fmt::format("{} {} is not above zero", flag, in_quotes(*text)), std::string(accepted_forms(kind)));
    return std::nullopt;
  }
  return value;
}

std::optional<std::size_t> FlagReader::word_of(std::string_view name, std::string_view text,
                                               std::span<const std::string_view> words) {
  const auto found = std::find(words.begin(), words.end(), text);
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  const std::vector<std::string> known(words.begin(), words.end());
  std::string hint = did_you_mean(nearest(text, known));
  if (!hint.empty()) hint += ' ';
  problem(fmt::format("{} cannot be {}", name, in_quotes(text)),
          fmt::format("{}accepted: {}", hint, join(known, ", ")));
  return std::nullopt;
}

std::optional<std::size_t> FlagReader::word(std::string_view flag, std::span<const std::string_view> words) {
  const std::optional<std::string> text = arguments_.value(flag);
  if (!text) return std::nullopt;
  return word_of(flag, *text, words);
}

}  // namespace scalecalc::cli
