#include "report/output.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "report/side_by_side.h"

namespace scalecalc {
namespace {

std::string value_text(const ExplainedStep& step) {
  if (step.unit == kByteDim) return format_quantity(step.value, UnitKind::kBytes, 4);
  if (step.unit == kSecondDim) return format_quantity(step.value, UnitKind::kSeconds, 4);
  if (step.unit == kByteDim - kSecondDim) return format_quantity(step.value, UnitKind::kBytesPerSecond, 4);
  if (step.unit == kFlopDim - kSecondDim) return format_quantity(step.value, UnitKind::kFlopsPerSecond, 4);
  const std::string unit = unit_name(step.unit);
  return format_quantity(step.value, UnitKind::kNumber, 4) + (unit.empty() ? "" : " " + unit);
}

Line explained_line(const ExplainedStep& step) {
  std::string text = fmt::format("{} = {}\n= {}\n= {}", step.name, step.formula, step.numbers, value_text(step));
  if (!step.source.empty()) text += fmt::format(" [{}]", step.source);
  return {std::move(text)};
}

// Assumptions and workings as people read them, the same below every command's table.

/// The section "Assumed": a line each, with its source and the flag that changes it.
Section assumed_section(const std::vector<Assumption>& assumptions) {
  Section out{.title = "Assumed"};
  for (const Assumption& assumption : assumptions) {
    std::string text = assumption.warning ? "warning: " + assumption.text : assumption.text;
    if (!assumption.source.empty()) text += fmt::format(" [{}]", assumption.source);
    if (!assumption.flag.empty()) text += fmt::format(" (change: {})", assumption.flag);
    out.lines.push_back({std::move(text), assumption.warning ? Role::kWarning : Role::kPlain});
  }
  return out;
}

/// Of the assumptions those that warn or that `deciding` flags change, without their sources.
Section deciding_section(const std::vector<Assumption>& assumptions, const std::vector<std::string>& deciding) {
  Section out;
  std::vector<std::string> texts;
  for (const Assumption& a : assumptions) {
    const bool decides = std::find(deciding.begin(), deciding.end(), a.flag) != deciding.end();
    std::string text = a.flag.empty() ? a.text : fmt::format("{} ({})", a.text, a.flag);
    if (a.warning) {
      out.lines.push_back({"warning: " + text, Role::kWarning});
    } else if (decides) {
      texts.push_back(std::move(text));
    }
  }
  if (!texts.empty()) out.lines.insert(out.lines.begin(), {join(texts, "; ")});
  out.title = fmt::format("Assumed (all {} with their sources: --verbose)", assumptions.size());
  return out;
}

/// name = formula = numbers = value [source], a line each, then the remarks.
Section explained_section(const ExplainSection& part, std::string title) {
  Section out{.title = std::move(title)};
  for (const ExplainedStep& step : part.steps) out.lines.push_back(explained_line(step));
  for (const std::string& remark : part.remarks) out.lines.push_back({remark, Role::kDim});
  return out;
}

Cell plain_cell(const Figure& f, bool for_people) {
  if (for_people && !f.shown.empty()) return f.shown;
  if (!f.is_list || !f.items.empty() || std::holds_alternative<std::string>(f.value)) return f.value;
  return {};
}

/// Columns are those of the longest record: a figure that some records lack stands in it.
const Record& widest(const std::vector<Record>& records) {
  return *std::max_element(records.begin(), records.end(),
                           [](const Record& a, const Record& b) { return a.figures.size() < b.figures.size(); });
}

const std::string& column_of(const Figure& f) { return f.column.empty() ? f.key : f.column; }

const Figure* find(const std::vector<const Figure*>& figures, const std::string& column) {
  const auto at =
      std::find_if(figures.begin(), figures.end(), [&](const Figure* f) { return column_of(*f) == column; });
  return at == figures.end() ? nullptr : *at;
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

std::vector<const Figure*> people_figures(const Record& record) {
  std::vector<const Figure*> out;
  open_objects(record, Readers::kPeople, false, out);
  std::erase_if(out, [](const Figure* f) { return f->key.empty() || f->label.empty(); });
  return out;
}

/// A record of CSV: every figure with a column.
Table csv_table(const Block& block) {
  Table out;
  if (block.records.empty() && block.header.figures.empty()) return out;
  for (const Figure* f : csv_figures(block.header.figures.empty() ? widest(block.records) : block.header)) {
    out.columns.push_back({f->label, column_of(*f), f->format, f->importance, false});
  }
  for (const Record& record : block.records) {
    const std::vector<const Figure*> figures = csv_figures(record);
    Row row;
    for (const Column& column : out.columns) {
      const Figure* f = find(figures, column.key);
      row.cells.push_back(f == nullptr ? Cell{} : plain_cell(*f, false));
    }
    out.rows.push_back(std::move(row));
  }
  return out;
}

Column people_column(const Figure& f, int importance) {
  // A number with its unit stays whole.
  const bool flexible = f.format == Format::kText && !f.rigid;
  return {f.label, column_of(f), f.shown.empty() ? f.format : Format::kText, importance, flexible};
}

/// What people read: every figure with a label, or the columns the block names.
Table table_of(const Block& block, bool brief) {
  Table out;
  if (block.records.empty()) return out;
  std::vector<std::vector<const Figure*>> rows;
  for (const Record& record : block.records) rows.push_back(people_figures(record));
  for (const ShownColumn& shown : block.columns) {
    if (brief && !shown.brief) continue;
    for (const std::vector<const Figure*>& figures : rows) {
      const Figure* f = find(figures, shown.column);
      if (f == nullptr) continue;
      out.columns.push_back(people_column(*f, shown.importance));
      if (!shown.title.empty()) out.columns.back().title = shown.title;
      break;
    }
  }
  if (block.columns.empty()) {
    for (const Figure* f : people_figures(widest(block.records))) {
      out.columns.push_back(people_column(*f, f->importance));
    }
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Row row{.role = block.records[i].role};
    for (const Column& column : out.columns) {
      const Figure* f = find(rows[i], column.key);
      row.cells.push_back(f == nullptr ? Cell{} : plain_cell(*f, true));
    }
    out.rows.push_back(std::move(row));
  }
  return out;
}

/// One object as label and value, in text because its figures differ in unit.
Table pairs_of(const Record& record) {
  Table out;
  out.columns = {{"", "figure", Format::kText, 0, false}, {"", "value", Format::kText, 0, true}};
  for (const Figure& f : record.figures) {
    if (f.label.empty() || std::holds_alternative<std::monostate>(f.value)) continue;
    out.rows.push_back({{f.label, text_of(plain_cell(f, true), f.format)}});
  }
  return out;
}

/// The records of a list by their group, in the order in which the groups first appear; its lines stand below the last.
std::vector<Block> by_group(const Block& block) {
  std::vector<Block> out;
  const auto part = [&](const std::string& title) {
    return Block{.key = block.key,
                 .title = title,
                 .is_list = block.is_list,
                 .for_people = block.for_people,
                 .by_figure = block.by_figure,
                 .columns = block.columns,
                 .brief_rows = block.brief_rows,
                 .brief_lines = block.brief_lines};
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

Table people_table(const Block& block, bool brief = false) {
  return block.by_figure ? side_by_side(block.records) : table_of(block, brief);
}

Section section_of(const Block& block) {
  Section out{.title = block.title, .lines = block.lines};
  if (block.is_list) {
    out.table = people_table(block);
    if (block.records.empty() && block.lines.empty()) out.lines.push_back({"none", Role::kDim});
  } else if (!block.records.empty()) {
    check(block.records.size() == 1, "an object block has one record");
    out.table = pairs_of(block.records.front());
  }
  return out;
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

Figure figure(std::string_view key, std::string_view label, Format format, Cell value) {
  Figure out;
  out.key = key;
  out.label = label;
  out.format = format;
  out.value = std::move(value);
  return out;
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

Figure read_by(Readers readers, Figure figure) {
  figure.readers = readers;
  return figure;
}

Figure in_column(std::string_view column, Figure figure) {
  figure.column = column;
  return figure;
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
    for (const Block& block : by_group(whole)) {
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

namespace {

/// Takes the columns out that are equal in every row of a table, and says what they hold: "in every row: chips 64".
/// Those of importance 0 stay.
std::string fold_equal(Table& table) {
  std::vector<std::string> equal;
  for (std::size_t c = table.columns.size(); table.rows.size() > 1 && c-- > 0;) {
    const Cell& first = table.rows.front().cells[c];
    const bool same =
        std::all_of(table.rows.begin(), table.rows.end(), [&](const Row& row) { return row.cells[c] == first; });
    if (!same || table.columns[c].importance == 0) continue;
    const std::string text = text_of(first, table.columns[c].format);
    if (!text.empty()) equal.insert(equal.begin(), table.columns[c].title + " " + text);
    const auto at = static_cast<std::ptrdiff_t>(c);
    table.columns.erase(table.columns.begin() + at);
    for (Row& row : table.rows) row.cells.erase(row.cells.begin() + at);
  }
  return equal.empty() ? "" : fmt::format("In every row: {}.", join(equal, ", "));
}

void mark_partial(Report& report) {
  report.summary.insert(report.summary.begin(), {std::string(kPartial), Role::kBad});
  report.records.columns.push_back({"partial", "partial"});
  for (Row& row : report.records.rows) row.cells.emplace_back("true");
}

}  // namespace

Report output_report(const Output& output, bool explain, Depth depth) {
  const bool brief = depth == Depth::kBrief;
  Report out{.title = output.title, .summary = output.summary, .warnings = output.warnings};
  if (brief) out.summary.insert(out.summary.end(), output.headline.begin(), output.headline.end());
  if (const Block* records = record_block(output)) out.records = csv_table(*records);
  if (!output.complete) mark_partial(out);
  const auto hidden = [&](const Block& b) { return b.for_files || b.shown == (brief ? Shown::kFull : Shown::kBrief); };
  // The first list stands right below the summary.
  const Block* leading = first_block(output, [](const Block& b) { return !b.for_people && !b.for_files; });
  const auto add = [&](const Block& block) {
    const bool first = &block == leading && block.is_list && block.title.empty();
    for (const Block& part : by_group(block)) {
      if (first && part.title.empty()) {
        const bool shortened = brief && part.brief_rows > 0;
        out.plans = people_table(part, shortened);
        if (shortened) {
          out.plans.rows.resize(std::min(out.plans.rows.size(), part.brief_rows));
          if (std::string equal = fold_equal(out.plans); !equal.empty()) out.notes.push_back(std::move(equal));
        }
        for (const Line& line : shortened ? part.brief_lines : part.lines) out.notes.push_back(line.text);
        continue;
      }
      Section section = section_of(part);
      const bool silent = section.title.empty() && section.table.rows.empty() && section.lines.empty();
      if (!silent) out.sections.push_back(std::move(section));
    }
  };
  for (const Block& block : output.blocks) {
    if (!block.last && !hidden(block)) add(block);
  }
  out.notes.insert(out.notes.end(), output.notes.begin(), output.notes.end());
  if (explain) {
    const std::string of = output.explained.empty() ? "" : ", " + output.explained;
    for (const ExplainSection& part : output_explanation(output)) {
      out.sections.push_back(explained_section(part, fmt::format("Explained{}: {}", of, part.title)));
    }
  }
  if (!output.assumptions.empty()) {
    const bool some = brief && !output.deciding.empty();
    out.sections.push_back(some ? deciding_section(output.assumptions, output.deciding)
                                : assumed_section(output.assumptions));
  }
  for (const Block& block : output.blocks) {
    if (block.last && !hidden(block)) add(block);
  }
  return out;
}

}  // namespace scalecalc
