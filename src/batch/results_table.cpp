#include "batch/results_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "batch/answer_check.h"
#include "report/people_tables.h"

namespace scalecalc {
namespace {

/// Names of figures end with their units.
Format format_of(const RowColumn& column) {
  const std::string& name = column.name;
  if (column.kind == ColumnKind::kText || column.kind == ColumnKind::kNothing) return Format::kText;
  if (column.kind == ColumnKind::kFlag) return Format::kFlag;
  if (name.starts_with("in_")) return column.kind == ColumnKind::kInteger ? Format::kInteger : Format::kNumber;
  if (name.find("_usd") != std::string::npos || name.starts_with("usd_")) return Format::kUsd;
  if (name.find("bytes_per_s") != std::string::npos) return Format::kBytesPerSecond;
  if (name.find("flops_per_s") != std::string::npos) return Format::kFlopsPerSecond;
  if (name.find("_per_") != std::string::npos) return Format::kNumber;
  if (name.find("bytes") != std::string::npos) return Format::kBytes;
  if (name.ends_with("_s")) return Format::kSeconds;
  return column.kind == ColumnKind::kInteger ? Format::kInteger : Format::kNumber;
}

}  // namespace

ResultsTable::ResultsTable(std::string title, const std::vector<RowColumn>& columns,
                           const std::vector<std::string>& figures) {
  report_.title = std::move(title);
  int importance = 0;
  const auto add = [&](const RowColumn& column) {
    const bool asked = column.name.starts_with("in_");
    const Format format = format_of(column);
    report_.plans.columns.push_back({asked ? column.name.substr(3) : column.name, column.name, format,
                                     asked ? 0 : ++importance, format == Format::kText});
  };
  const auto named = [&](const std::string& name) {
    const auto found = std::find_if(columns.begin(), columns.end(), [&](const auto& c) { return c.name == name; });
    if (found != columns.end()) add(*found);
  };
  for (const RowColumn& column : columns) {
    if (column.name.starts_with("in_")) add(column);
  }
  named("status");
  for (const std::string& name : figures) named(name);
  named("reason");
}

void ResultsTable::add(const Json& row) {
  Row out;
  for (const Column& column : report_.plans.columns) {
    const auto found = row.find(column.key);
    out.cells.push_back(found == row.end() ? Cell{} : cell_of(*found));
  }
  report_.plans.rows.push_back(std::move(out));
}

Report ResultsTable::report() && {
  const std::string equal = fold_equal(report_.plans);
  if (!equal.empty()) report_.plans_heading = fmt::format("In every row: {}", equal);
  return std::move(report_);
}

}  // namespace scalecalc
