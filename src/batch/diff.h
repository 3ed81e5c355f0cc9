// Two files of results compared row by row: what became slower, what no longer fits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/output.h"

namespace scalecalc {

struct DiffOptions {
  double tolerance = 0;              ///< numbers may differ by this share of the old one
  std::vector<std::string> columns;  ///< compared alone; empty: all that the rows answer
  bool worse = false;  ///< only what became worse: slower, larger, dearer, less, gone, or no answer any more
};

struct Difference {
  std::string inputs;  ///< "chips 256, hw tpu-v5p"
  std::string column;  ///< "row" for a row that only one file has
  Cell before;
  Cell now;
};

struct ResultDiff {
  std::uint64_t before = 0;  ///< rows
  std::uint64_t now = 0;
  std::vector<Difference> differences;
};

/// Rows belong together if command, inputs and record are the same. UserError for a file that has no such rows.
ResultDiff diff_results(const std::string& before, const std::string& now, const DiffOptions& options);

Output diff_output(const ResultDiff& diff, const DiffOptions& options);

}  // namespace scalecalc
