// The output formats of a Report.
#pragma once

#include <cstddef>
#include <string>

#include "report/report.h"

namespace scalecalc {

/// What a stream can show. The defaults are those of a pipe.
struct TextOptions {
  std::size_t width = 0;  ///< columns; 0 = as wide as the text
  bool unicode = false;
  bool colour = false;
};

inline constexpr std::size_t kNarrowest = 60;  ///< columns below which lines are not broken any further

std::string render_table(const Report& report, const TextOptions& options);
/// RFC 4180 quoting, LF endings, one header line; of `csv_records`.
std::string render_csv(const Table& table);
/// One value of a CSV line.
std::string csv_field(const std::string& text);
std::string render_markdown(const Report& report);

}  // namespace scalecalc
