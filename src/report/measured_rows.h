// What the sheets of validate and calibrate share: figures of measured rows and of errors over them.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "report/sheet.h"

namespace scalecalc {

inline Figure row_text(std::string_view key, std::string_view label, std::string_view value, int importance = 0) {
  return with_importance(text_figure(key, label, value), importance);
}

inline Figure row_number(std::string_view key, std::string_view label, Format format,
                         const std::optional<double>& value, int importance = 0) {
  return with_importance(maybe_figure(key, label, format, value), importance);
}

inline Figure row_count(std::string_view key, std::string_view label, std::integral auto value, int importance = 0) {
  return row_number(key, label, Format::kInteger, static_cast<double>(value), importance);
}

inline Figure row_flag(std::string_view key, bool value) {
  return number_figure(key, "", Format::kFlag, value ? 1 : 0);
}

/// A share of one: an error, a bias, a coverage.
inline Figure error_share(std::string_view key, std::string_view label, const std::optional<double>& value,
                          int importance = 0) {
  return row_number(key, label, Format::kFraction, value, importance);
}

/// Rows that were left out; `more(figures, row)` adds what stands between the id and the reason.
template <class Skipped, class More>
Block skipped_block(const std::vector<Skipped>& rows, int importance, const More& more) {
  Block out{.key = "skipped_rows", .title = "Left out"};
  for (const Skipped& s : rows) {
    Record record{{row_text("id", "row", s.row.id)}};
    more(record.figures, s.row);
    record.figures.push_back(row_text("reason", "reason", s.reason));
    record.figures.push_back(row_text("detail", "here", s.detail, importance));
    out.records.push_back(std::move(record));
  }
  return out;
}

}  // namespace scalecalc
