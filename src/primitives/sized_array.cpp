#include "primitives/sized_array.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace scalecalc {
namespace {

constexpr std::string_view kArrayForm =
    "a format and sizes, such as bf16[1024_X,4096] with dimension 1024 cut over axis X";

UnitError wrong(std::string_view text, std::string_view why, std::string hint = std::string(kArrayForm)) {
  return {fmt::format("{} is not an array: {}", in_quotes(text), why), std::move(hint)};
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

bool is_ascii_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// Position of the underscore before a subscript: 16_384 has none, 16_384_X one.
std::size_t subscript_at(std::string_view dim) {
  for (std::size_t i = dim.find('_'); i != std::string_view::npos; i = dim.find('_', i + 1)) {
    if (i + 1 < dim.size() && (is_ascii_letter(dim[i + 1]) || dim[i + 1] == '{')) return i;
  }
  return std::string_view::npos;
}

std::variant<std::int64_t, UnitError> size_of(std::string_view text) {
  const auto parsed = parse_quantity(trimmed(text), UnitKind::kCount);
  if (const UnitError* error = std::get_if<UnitError>(&parsed)) return *error;
  const double value = std::get<double>(parsed);
  if (value < 1) return UnitError{fmt::format("{} is not a dimension", in_quotes(text)), "a whole number above 0"};
  return static_cast<std::int64_t>(value);
}

std::variant<SizedDimension, UnitError> dimension_of(std::string_view text) {
  SizedDimension out;
  const std::size_t subscript = subscript_at(text);
  if (subscript != std::string_view::npos) {
    std::string_view axes = trimmed(text.substr(subscript + 1));
    if (axes.front() == '{') {
      if (axes.back() != '}') return UnitError{fmt::format("the brace in {} stays open", in_quotes(text)), ""};
      axes = axes.substr(1, axes.size() - 2);
    }
    if (axes.empty()) return UnitError{fmt::format("{} names no axis", in_quotes(text)), ""};
    out.subscript = axes;
    text = text.substr(0, subscript);
  }
  const std::size_t slash = text.find('/');
  const auto whole = size_of(text.substr(0, slash));
  if (const UnitError* error = std::get_if<UnitError>(&whole)) return *error;
  out.size = std::get<std::int64_t>(whole);
  if (slash == std::string_view::npos) return out;
  const auto ways = size_of(text.substr(slash + 1));
  if (const UnitError* error = std::get_if<UnitError>(&ways)) return *error;
  if (out.size % std::get<std::int64_t>(ways) != 0) {
    return UnitError{fmt::format("{} leaves a remainder", in_quotes(trimmed(text))), "a divisor of the dimension"};
  }
  out.size /= std::get<std::int64_t>(ways);
  return out;
}

/// At commas, but not inside braces.
std::vector<std::string_view> split_dims(std::string_view text) {
  std::vector<std::string_view> out;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '{') ++depth;
    if (i < text.size() && text[i] == '}') --depth;
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    out.push_back(trimmed(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  return out;
}

}  // namespace

std::variant<SizedArray, UnitError> parse_sized_array(std::string_view text) {
  SizedArray out{.text = std::string(text)};
  const std::size_t open = text.find('[');
  if (open == std::string_view::npos || text.back() != ']') return wrong(text, "its sizes stand in brackets");
  const std::string_view format = trimmed(text.substr(0, open));
  const auto* const known = std::find(kDTypeNames.begin(), kDTypeNames.end(), format);
  if (known == kDTypeNames.end()) {
    const std::vector<std::string> names(kDTypeNames.begin(), kDTypeNames.end());
    std::string hint = did_you_mean(nearest(format, names));
    hint += fmt::format("{}formats: {}", hint.empty() ? "" : " ", join(names, ", "));
    return wrong(text, fmt::format("unknown format {}", in_quotes(format)), hint);
  }
  out.dtype = static_cast<DType>(known - kDTypeNames.begin());
  for (const std::string_view dim : split_dims(text.substr(open + 1, text.size() - open - 2))) {
    if (dim.empty()) return wrong(text, "a dimension is empty");
    const auto parsed = dimension_of(dim);
    if (const UnitError* error = std::get_if<UnitError>(&parsed)) return wrong(text, error->message, error->hint);
    out.dims.push_back(std::get<SizedDimension>(parsed));
  }
  return out;
}

}  // namespace scalecalc
