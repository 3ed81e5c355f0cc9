// What the outputs of validate and calibrate share: figures of measured rows and of errors over them.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "report/output.h"

namespace scalecalc {

inline Figure row_count(std::string_view key, std::string_view label, std::integral auto value, int importance = 0) {
  return number_figure(key, label, Format::kInteger, static_cast<double>(value), importance);
}

/// A share of one: an error, a bias, a coverage.
inline Figure error_share(std::string_view key, std::string_view label, const std::optional<double>& value,
                          int importance = 0) {
  return number_figure(key, label, Format::kFraction, value, importance);
}

/// Rows that were left out; `more(figures, row)` adds what stands between the id and the reason.
template <class Skipped, class More>
Block skipped_block(const std::vector<Skipped>& rows, int importance, const More& more) {
  Block out{.key = "skipped_rows", .title = "Left out"};
  for (const Skipped& s : rows) {
    Record record{{text_figure("id", "row", s.row.id)}};
    more(record.figures, s.row);
    record.figures.push_back(text_figure("reason", "reason", s.reason));
    record.figures.push_back(text_figure("detail", "here", s.detail, importance));
    out.records.push_back(std::move(record));
  }
  return out;
}

}  // namespace scalecalc
