// Makes figures and records of an answer and turns them into CSV and flat rows.
#include "report/output.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"

namespace scalecalc {
namespace {

Cell plain_cell(const Figure& f, bool for_people) {
  if (for_people && !f.shown.empty()) return f.shown;
  if (!f.is_list || !f.items.empty() || std::holds_alternative<std::string>(f.value)) return f.value;
  return {};
}

/// The figures that people or CSV read, objects opened: of an object for JSON those that name their column.
void open_objects(const Record& record, Readers reader, bool named_only, std::vector<const Figure*>& out) {
  for (const Figure& f : record.figures) {
    const bool read = f.readers == Readers::kAll || f.readers == reader;
    if (f.is_object && !f.records.empty()) {
      open_objects(f.records.front(), reader, named_only || !read, out);
    } else if (read && !f.is_object && (!named_only || !f.column.empty())) {
      out.push_back(&f);
    }
  }
}

/// A formula that several figures share is told once.
void collect_steps(const Record& record, std::vector<ExplainedStep>& out) {
  for (const Figure& f : record.figures) {
    for (const ExplainedStep& step : f.steps()) {
      const bool known = std::any_of(out.begin(), out.end(), [&](const ExplainedStep& other) {
        return other.name == step.name && other.numbers == step.numbers;
      });
      if (!known) out.push_back(step);
    }
    for (const Record& inner : f.records) collect_steps(inner, out);
  }
}

/// The points of a curve: the same figures computed the same way.
bool alike(const std::vector<Record>& records) {
  const auto last_names = [](const Record& record) {
    std::vector<std::string> names;
    for (const Figure& f : record.figures) names.push_back(f.working ? f.working->node()->name : "");
    return names;
  };
  return records.size() < 2 || last_names(records[0]) == last_names(records[1]);
}

}  // namespace

Figure heading(std::string_view label) { return figure("", label, Format::kText, Cell{}); }

Cell shown_cell(const Figure& f) { return plain_cell(f, true); }

std::string column_of(const Figure& f) {
  if (!f.column.empty()) return f.column;
  constexpr std::string_view kLayout = "layout.";
  std::string out = f.key.starts_with(kLayout) ? f.key.substr(kLayout.size()) : f.key;
  std::replace(out.begin(), out.end(), '.', '_');
  return out;
}

namespace {

/// Whether column_of(f) is that.
bool is_column(const Figure& f, std::string_view column) {
  if (!f.column.empty()) return f.column == column;
  constexpr std::string_view kLayout = "layout.";
  std::string_view key = f.key;
  if (key.starts_with(kLayout)) key.remove_prefix(kLayout.size());
  return std::equal(key.begin(), key.end(), column.begin(), column.end(),
                    [](char in_key, char c) { return (in_key == '.' ? '_' : in_key) == c; });
}

}  // namespace

const Figure* find_figure(const std::vector<const Figure*>& figures, const std::string& column) {
  const auto at = std::find_if(figures.begin(), figures.end(), [&](const Figure* f) { return is_column(*f, column); });
  return at == figures.end() ? nullptr : *at;
}

const Record& widest_record(const std::vector<Record>& records) {
  return *std::max_element(records.begin(), records.end(),
                           [](const Record& a, const Record& b) { return a.figures.size() < b.figures.size(); });
}

std::vector<Block> grouped_blocks(const Block& block) {
  std::vector<Block> out;
  const auto part = [&](const std::string& title) {
    return Block{.key = block.key,
                 .title = title,
                 .is_list = block.is_list,
                 .for_people = block.for_people,
                 .by_figure = block.by_figure,
                 .columns = block.columns,
                 .section = block.section,
                 .brief_rows = block.brief_rows,
                 .brief_lines = block.brief_lines,
                 .brief_keys = block.brief_keys};
  };
  for (const Record& record : block.records) {
    const std::string& title = record.group.empty() ? block.title : record.group;
    auto at = std::find_if(out.begin(), out.end(), [&](const Block& b) { return b.title == title; });
    if (at == out.end()) at = out.insert(out.end(), part(title));
    at->records.push_back(record);
  }
  if (out.empty()) out.push_back(part(block.title));
  out.back().lines = block.lines;
  return out;
}

std::vector<const Figure*> people_figures(const Record& record) {
  std::vector<const Figure*> out;
  open_objects(record, Readers::kPeople, false, out);
  std::erase_if(out, [](const Figure* f) { return f->key.empty() || f->label.empty(); });
  return out;
}

std::vector<const Figure*> csv_figures(const Record& record) {
  std::vector<const Figure*> out;
  open_objects(record, Readers::kCsv, false, out);
  std::erase_if(out, [](const Figure* f) { return column_of(*f).empty(); });
  return out;
}

namespace {

/// The first list, or the first block, that `wanted` takes.
template <class Wanted>
const Block* first_block(const Output& output, Wanted wanted) {
  const Block* out = nullptr;
  for (const Block& b : output.blocks) {
    if (!wanted(b)) continue;
    if (b.is_list) return &b;
    if (out == nullptr) out = &b;
  }
  return out;
}

}  // namespace

const Block* record_block(const Output& output) {
  return first_block(
      output, [&](const Block& b) { return !b.for_people && (output.lines_of.empty() || b.key == output.lines_of); });
}

namespace {

/// Columns that say the same in every row.
void add_everywhere(const Output& output, Table& out) {
  const auto add = [&](const char* name, Format format, const Cell& value) {
    out.columns.push_back({"", name, format, 0, false});
    for (Row& row : out.rows) row.cells.push_back(value);
  };
  if (output.elapsed_s) add("elapsed_s", Format::kNumber, *output.elapsed_s);
  if (!output.question.empty()) add("question", Format::kText, output.question);
}

}  // namespace

namespace {

Table whole_records(const Output& output) {
  Table out;
  const Block* found = record_block(output);
  if (found == nullptr) return out;
  const Block& block = *found;
  if (block.records.empty() && block.header.figures.empty()) return out;
  for (const Figure* f : csv_figures(block.header.figures.empty() ? widest_record(block.records) : block.header)) {
    out.columns.push_back({f->label, column_of(*f), f->format, f->importance, false});
  }
  for (const Record& record : block.records) {
    std::map<std::string, const Figure*> named;  // of equal names the first
    for (const Figure* f : csv_figures(record)) named.try_emplace(column_of(*f), f);
    Row row;
    for (const Column& column : out.columns) {
      const auto at = named.find(column.key);
      row.cells.push_back(at == named.end() ? Cell{} : plain_cell(*at->second, false));
    }
    out.rows.push_back(std::move(row));
  }
  add_everywhere(output, out);
  return out;
}

}  // namespace

Table csv_records(const Output& output) {
  Table out = whole_records(output);
  if (output.complete) return out;
  out.columns.push_back({"partial", "partial"});
  for (Row& row : out.rows) row.cells.emplace_back("true");
  return out;
}

Figure figure(std::string_view key, std::string_view label, Format format, Cell value) {
  Figure out;
  out.key = key;
  out.label = label;
  out.format = format;
  out.value = std::move(value);
  return out;
}

const Block* leading_block(const Output& output) {
  return first_block(output, [](const Block& b) { return !b.for_people && !b.for_files; });
}

Figure figure(std::string_view key, std::string_view label, Format format, const Traced& value,
              std::string_view source) {
  Figure out = figure(key, label, format, Cell(value.value()));
  using Op = TraceNode::Op;
  const Op op = value.node()->op;
  if (op == Op::kInput || op == Op::kConstant) return out;
  out.working = op == Op::kNamed ? value : value.with_name(label.empty() ? key : label, source);
  return out;
}

Figure with_importance(Figure figure, int importance) {
  figure.importance = importance;
  return figure;
}

Figure text_figure(std::string_view key, std::string_view label, std::string_view text, int importance) {
  return with_importance(figure(key, label, Format::kText, Cell(std::string(text))), importance);
}

Figure number_figure(std::string_view key, std::string_view label, Format format, const std::optional<double>& value,
                     int importance) {
  return with_importance(figure(key, label, format, cell_of(value)), importance);
}

Figure list_figure(std::string_view key, std::string_view label, std::vector<Cell> items) {
  Figure out = figure(key, label, Format::kText, Cell{});
  std::string shown;
  for (const Cell& item : items) shown += (shown.empty() ? "" : ", ") + text_of(item, Format::kNumber);
  if (!shown.empty()) out.value = std::move(shown);
  out.is_list = true;
  out.items = std::move(items);
  return out;
}

Figure records_figure(std::string_view key, std::string_view label, std::string shown, std::vector<Record> records) {
  Figure out = figure(key, label, Format::kText, Cell(std::move(shown)));
  out.is_list = true;
  out.records = std::move(records);
  return out;
}

Figure datum(std::string_view key, Cell value) {
  const bool text = std::holds_alternative<std::string>(value);
  return figure(key, "", text ? Format::kText : Format::kNumber, std::move(value));
}

Figure object_figure(std::string_view key, std::optional<Record> members) {
  Figure out = figure(key, "", Format::kText, Cell{});
  out.is_object = true;
  if (members) out.records.push_back(std::move(*members));
  return out;
}

Figure changes_figure(std::string_view key, const std::vector<FlagChange>& changes) {
  std::vector<Record> out;
  out.reserve(changes.size());
  for (const FlagChange& change : changes) out.push_back({{datum("flag", change.flag), datum("value", change.value)}});
  return records_figure(key, "", either_of(changes), std::move(out));
}

Figure read_by(Readers readers, Figure figure) {
  figure.readers = readers;
  return figure;
}

Figure in_column(std::string_view column, Figure figure) {
  figure.column = column;
  return figure;
}

Block best_block(const Block& ranking) {
  Block out{.key = "best", .is_list = false, .for_files = true};
  // Records of a group are those that are not ranked: not possible.
  if (!ranking.records.empty() && ranking.records.front().group.empty()) out.records.push_back(ranking.records.front());
  return out;
}

Block lines_block(std::string_view title, std::vector<Line> lines) {
  return {.title = std::string(title), .for_people = true, .lines = std::move(lines)};
}

Record parts_record(const PartsTable& table, std::string_view part, double value, Role role) {
  return {.figures = {figure("part", table.what, Format::kText, Cell(std::string(part))),
                      figure("value", table.value, table.format, Cell(value)),
                      figure("share", table.share, Format::kFraction, Cell(value / table.whole))},
          .role = role};
}

std::vector<ExplainSection> output_explanation(const Output& output) {
  // A curve repeats one formula at every point; a dozen is what one reads.
  constexpr std::size_t kMostExplained = 12;
  std::vector<ExplainSection> out = output.explanation;
  for (const Block& whole : output.blocks) {
    if (whole.for_people) continue;
    for (const Block& block : grouped_blocks(whole)) {
      ExplainSection section{.title = block.title.empty() ? output.title : block.title};
      const bool all = block.records.size() <= kMostExplained || !alike(block.records);
      const std::size_t shown = all ? block.records.size() : 1;
      for (std::size_t i = 0; i < shown; ++i) collect_steps(block.records[i], section.steps);
      if (!all) {
        section.remarks.push_back(
            fmt::format("the first of {} rows; the others differ in their inputs", block.records.size()));
      }
      if (!section.steps.empty()) out.push_back(std::move(section));
    }
  }
  return out;
}

}  // namespace scalecalc
