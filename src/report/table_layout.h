// Fits a table into a number of columns: numbers right, texts left, the least important columns left out first.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "report/report.h"

namespace scalecalc {

struct TableText {
  std::vector<Line> lines;           ///< the first is the header, if any column has a title
  std::vector<std::string> dropped;  ///< titles of columns that did not fit
  std::size_t width = 0;             ///< of the widest line
};

/// `width` 0 = as wide as needed. Columns whose cells are all empty are not shown.
TableText lay_out(const Table& table, std::size_t width);

/// wrap() of base/text that also breaks words wider than a line. `width` 0 = no breaking but at newlines.
std::string fold_text(const std::string& text, std::size_t width, std::size_t indent);

}  // namespace scalecalc
