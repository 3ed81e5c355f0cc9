// Collects rows of a study into the table and the pictures that people read.
#include "batch/results_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
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

namespace {

bool is_input(const Column& column) { return column.key.starts_with("in_"); }

/// Whether its cells are at least two different numbers.
bool takes_numbers(const Table& table, std::size_t column) {
  std::set<double> seen;
  for (const Row& row : table.rows) {
    const double* value = std::get_if<double>(&row.cells[column]);
    if (value == nullptr) return false;
    seen.insert(*value);
  }
  return seen.size() > 1;
}

std::string others_of(const Table& table, const Row& row, std::size_t x) {
  std::vector<std::string> parts;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    if (c == x || !is_input(table.columns[c])) continue;
    const std::string text = text_of(row.cells[c], table.columns[c].format);
    if (!text.empty()) parts.push_back(fmt::format("{} {}", table.columns[c].title, text));
  }
  return join(parts, ", ");
}

Plot curves(const Table& table, std::size_t x, std::size_t y) {
  const Column &across = table.columns[x], &up = table.columns[y];
  Plot out{.title = fmt::format("{} by {}", up.title, across.title),
           .x = {.title = across.title, .format = across.format, .log = true},
           .y = {.title = up.title, .format = up.format}};
  for (const Row& row : table.rows) {
    const double* value = std::get_if<double>(&row.cells[y]);
    if (value == nullptr) continue;
    const std::string name = others_of(table, row, x);
    auto series = std::find_if(out.series.begin(), out.series.end(), [&](const auto& s) { return s.name == name; });
    if (series == out.series.end()) series = out.series.insert(series, PlotSeries{.name = name});
    const double at = std::get<double>(row.cells[x]);
    if (std::find(out.x.ticks.begin(), out.x.ticks.end(), at) == out.x.ticks.end()) out.x.ticks.push_back(at);
    series->points.push_back({std::get<double>(row.cells[x]), *value, name});
  }
  for (PlotSeries& series : out.series) {
    std::stable_sort(series.points.begin(), series.points.end(),
                     [](const PlotPoint& a, const PlotPoint& b) { return a.x < b.x; });
  }
  return out;
}

}  // namespace

std::vector<Plot> ResultsTable::plots() const {
  constexpr std::size_t kMostPlots = 3, kMostSeries = 14;
  const Table& table = report_.plans;
  std::vector<Plot> out;
  for (std::size_t x = 0; x < table.columns.size(); ++x) {
    if (!is_input(table.columns[x]) || !takes_numbers(table, x)) continue;
    for (std::size_t y = 0; y < table.columns.size() && out.size() < kMostPlots; ++y) {
      const Column& column = table.columns[y];
      if (is_input(column) || !is_number(column.format) || column.format == Format::kFlag) continue;
      if (column.title == table.columns[x].title) continue;  // what was asked, answered
      Plot plot = curves(table, x, y);
      if (has_data(plot) && plot.series.size() <= kMostSeries) out.push_back(std::move(plot));
    }
    break;
  }
  return out;
}

Report ResultsTable::report() && {
  const std::string equal = fold_equal(report_.plans);
  if (!equal.empty()) report_.plans_heading = fmt::format("In every row: {}", equal);
  return std::move(report_);
}

}  // namespace scalecalc
