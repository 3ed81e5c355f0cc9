// Compares two files of results row by row for `scalecalc batch diff`.
#include "batch/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "base/diagnostic.h"
#include "base/limits.h"
#include "base/text.h"
#include "base/units.h"
#include "batch/files.h"
#include "batch/row.h"
#include "config/fields.h"
#include "report/json_text.h"

namespace scalecalc {
namespace {

/// Members that say which row it is, or may change without a difference in the answer.
constexpr std::array<std::string_view, 7> kNoAnswers{"schema", "tool_version", "command", "case",
                                                     "record", "warnings",     "question"};

bool is_input(std::string_view name) { return name.starts_with("in_"); }

bool is_answer(std::string_view name) {
  return !is_input(name) && std::find(kNoAnswers.begin(), kNoAnswers.end(), name) == kNoAnswers.end();
}

std::string text_of_json(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

std::string inputs_of(const Json& row) {
  std::string out;
  for (const auto& [name, value] : row.items()) {
    if (is_input(name)) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", name.substr(3), text_of_json(value));
  }
  if (const auto record = row.find("record"); record != row.end()) out += fmt::format(", record {}", record->dump());
  return out;
}

Json parsed(std::string_view line, const std::string& path, std::uint64_t number) {
  const SourceSpan where{.file = path, .line = static_cast<int>(number), .column = 1};
  if (limits::json_exceeds(line, limits::kTreeLevels, limits::kRowValues)) {
    throw UserError(
        {Diagnostic{where,
                    fmt::format("not a row of a study's results: {}, or {}", limits::too_deep(limits::kTreeLevels),
                                limits::too_many(limits::kRowValues, "values")),
                    "batch diff compares the JSON Lines that scalecalc batch wrote"}});
  }
  Json out = Json::parse(line, nullptr, false);
  if (const auto schema = out.is_object() ? out.find("schema") : out.end();
      schema != out.end() && schema->is_string()) {
    refuse_other_version(schema->get<std::string>(), where, kRowSchema);
  }
  if (out.is_object() && out.contains("command") && out.contains("status")) return out;
  throw UserError({Diagnostic{where, "not a row of a study's results",
                              "batch diff compares the JSON Lines that scalecalc batch wrote"}});
}

/// Calls `use` with every row, its key, and its line.
template <class Use>
std::uint64_t each_row(const std::string& path, Use use) {
  LineReader lines(OpenFile::for_reading(path));
  std::uint64_t number = 0;
  while (const auto line = lines.next()) {
    const Json row = parsed(*line, path, ++number);
    use(row, text_of_json(row.at("command")) + ": " + inputs_of(row), *line);
  }
  if (number == 0) throw UserError({Diagnostic{SourceSpan{.file = path}, "there are no rows in it", ""}});
  return number;
}

Cell cell(const Json* value) {
  if (value == nullptr || value->is_null()) return {};
  return value->is_number() ? Cell(value->get<double>()) : Cell(text_of_json(*value));
}

/// Shares of the old value; what was nothing and is something differs in any case.
bool differ(const Cell& before, const Cell& now, double tolerance) {
  const double* a = std::get_if<double>(&before);
  const double* b = std::get_if<double>(&now);
  if (a == nullptr || b == nullptr) return before != now;
  return std::fabs(*b - *a) > tolerance * std::fabs(*a);
}

/// Of a figure by its name: -1 where less is better, 1 where more is, 0 where neither is, as of what a chip is or what
/// was asked for.
int better_way(std::string_view column) {
  const auto has = [&](std::string_view part) { return column.find(part) != std::string_view::npos; };
  const auto begins = [&](std::string_view part) { return column.starts_with(part); };
  const auto ends = [&](std::string_view part) { return column.ends_with(part); };
  if (has("capacity") || has("usable") || has("slo_") || has("mtbf") || ends("_error")) return 0;
  if (has("_per_s") || has("_per_usd") || begins("mfu") || begins("hfu") || begins("tflops_per_chip")) return 1;
  const bool less = ends("_s") || ends("_bytes") || ends("_usd") || ends("_j") || ends("_kwh") || ends("chips") ||
                    ends("_chip_hours") || ends("usd_per_hour") || begins("usd_per_") || has("_usd_per_") ||
                    begins("time_s_") || begins("memory_bytes_") || has("energy_j");
  return less ? -1 : 0;
}

bool became_worse(std::string_view column, const Cell& before, const Cell& now) {
  if (column == "status") return before == Cell(std::string(status_name(RowStatus::kOk)));
  const int way = better_way(column);
  const double* a = std::get_if<double>(&before);
  const double* b = std::get_if<double>(&now);
  if (way == 0 || a == nullptr) return false;
  return b == nullptr || (*b - *a) * way < 0;
}

class Comparison {
 public:
  explicit Comparison(const DiffOptions& options) : options_(options) {}

  ResultDiff run(const std::string& before, const std::string& now) {
    out_.before = each_row(before, [&](const Json& row, const std::string& key, std::string_view line) {
      if (!known_.emplace(key, line).second) twice(before, key);
      note_columns(row);
    });
    out_.now = each_row(now, [&](const Json& row, const std::string& key, std::string_view) {
      note_columns(row);
      const auto found = known_.find(key);
      if (found == known_.end()) {
        if (!options_.worse) out_.differences.push_back({inputs_of(row), "row", {}, Cell("new")});
        return;
      }
      compare(Json::parse(found->second), row);
      known_.erase(found);
    });
    std::vector<std::string> gone;
    for (const auto& [key, line] : known_) gone.push_back(inputs_of(Json::parse(line)));
    std::sort(gone.begin(), gone.end());
    for (std::string& inputs : gone)
      out_.differences.push_back({std::move(inputs), "row", Cell("there"), Cell("gone")});
    check_columns();
    return std::move(out_);
  }

 private:
  [[noreturn]] static void twice(const std::string& path, const std::string& key) {
    throw UserError({Diagnostic{SourceSpan{.file = path}, fmt::format("two rows have the inputs {}", in_quotes(key)),
                                "a file of one study"}});
  }

  void note_columns(const Json& row) {
    for (const auto& [name, value] : row.items()) {
      if (is_answer(name) && seen_.insert(name).second) names_.push_back(name);
    }
  }

  /// A misspelled column would never differ.
  void check_columns() const {
    for (const std::string& column : options_.columns) {
      if (seen_.contains(column)) continue;
      const std::string hint = did_you_mean(nearest(column, names_));
      throw UserError(fmt::format("no row has a column {}", in_quotes(column)),
                      hint.empty() ? fmt::format("columns: {}", join(names_, ", ")) : hint);
    }
  }

  bool compared(std::string_view name) const {
    return options_.columns.empty() ||
           std::find(options_.columns.begin(), options_.columns.end(), name) != options_.columns.end();
  }

  void compare(const Json& before, const Json& now) {
    const std::string inputs = inputs_of(now);
    for (const auto& [name, value] : before.items()) {
      if (!is_answer(name) || !compared(name)) continue;
      const auto found = now.find(name);
      add(inputs, name, cell(&value), found == now.end() ? Cell{} : cell(&*found));
    }
    for (const auto& [name, value] : now.items()) {
      if (is_answer(name) && compared(name) && !before.contains(name)) add(inputs, name, {}, cell(&value));
    }
  }

  void add(const std::string& inputs, const std::string& column, const Cell& before, const Cell& now) {
    if (!differ(before, now, options_.tolerance)) return;
    if (!options_.worse || became_worse(column, before, now)) {
      out_.differences.push_back({inputs, column, before, now});
    }
  }

  const DiffOptions& options_;
  std::unordered_map<std::string, std::string> known_;  ///< old rows not met yet
  std::vector<std::string> names_;                      ///< of columns, as they were met
  std::unordered_set<std::string> seen_;
  ResultDiff out_;
};

Figure value_figure(std::string_view key, std::string_view label, const Cell& value) {
  return figure(key, label, std::holds_alternative<double>(value) ? Format::kNumber : Format::kText, value);
}

}  // namespace

ResultDiff diff_results(const std::string& before, const std::string& now, const DiffOptions& options) {
  return Comparison(options).run(before, now);
}

Output diff_output(const ResultDiff& diff, const DiffOptions& options) {
  Output out{.command = "batch-diff", .title = "Differences of two results"};
  const std::string within = options.tolerance > 0 ? fmt::format(" beyond {}", fraction_text(options.tolerance)) : "";
  out.summary.push_back({fmt::format("{} differences{}{} between {} rows and {}", diff.differences.size(),
                                     options.worse ? " for the worse" : "", within, diff.before, diff.now),
                         diff.differences.empty() ? Role::kGood : Role::kBad});
  out.query.figures.push_back(figure("tolerance", "tolerance", Format::kFraction, Cell(options.tolerance)));
  out.query.figures.push_back(flag_figure("worse", options.worse));
  Block rows{.key = "differences"};
  for (const Difference& d : diff.differences) {
    const double* a = std::get_if<double>(&d.before);
    const double* b = std::get_if<double>(&d.now);
    Cell change;
    if (a != nullptr && b != nullptr && *a != 0) change = *b / *a - 1;
    Record record;
    record.figures = {figure("inputs", "row", Format::kText, Cell(d.inputs)),
                      figure("column", "column", Format::kText, Cell(d.column)),
                      value_figure("before", "before", d.before), value_figure("now", "now", d.now),
                      figure("change", "change", Format::kFraction, std::move(change))};
    // A column of the table has one format: values as text, each in its own.
    for (std::size_t i : {std::size_t{2}, std::size_t{3}}) {
      if (std::holds_alternative<double>(record.figures[i].value)) {
        record.figures[i].shown = text_of(record.figures[i].value, Format::kNumber);
      }
    }
    rows.records.push_back(std::move(record));
  }
  out.blocks.push_back(std::move(rows));
  return out;
}

}  // namespace scalecalc
