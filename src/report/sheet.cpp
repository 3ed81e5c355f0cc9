#include "report/sheet.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "report/explained_text.h"
#include "report/side_by_side.h"

namespace scalecalc {
namespace {

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

const Figure* find(const Record& record, const std::string& key) {
  const auto at =
      std::find_if(record.figures.begin(), record.figures.end(), [&](const Figure& f) { return f.key == key; });
  return at == record.figures.end() ? nullptr : &*at;
}

Table table_of(const std::vector<Record>& records, bool for_people) {
  Table out;
  if (records.empty()) return out;
  for (const Figure& f : widest(records).figures) {
    if (f.key.empty() || (for_people && f.label.empty())) continue;
    const Format format = for_people && !f.shown.empty() ? Format::kText : f.format;
    const bool breakable = f.format == Format::kText;  // a number with its unit stays whole
    out.columns.push_back({f.label, f.key, format, f.importance, breakable});
  }
  for (const Record& record : records) {
    Row row;
    for (const Column& column : out.columns) {
      const Figure* f = find(record, column.key);
      row.cells.push_back(f == nullptr ? Cell{} : plain_cell(*f, for_people));
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

/// The records of a list by their group, in the order in which the groups first appear.
std::vector<Block> by_group(const Block& block) {
  std::vector<Block> out;
  for (const Record& record : block.records) {
    const std::string& title = record.group.empty() ? block.title : record.group;
    auto at = std::find_if(out.begin(), out.end(), [&](const Block& b) { return b.title == title; });
    if (at == out.end()) {
      at = out.insert(out.end(), {block.key, title, block.is_list, {}, block.for_people, block.by_figure});
    }
    at->records.push_back(record);
  }
  if (out.empty()) out.push_back(block);
  return out;
}

Table people_table(const Block& block) {
  return block.by_figure ? side_by_side(block.records) : table_of(block.records, true);
}

Section section_of(const Block& block) {
  Section out{.title = block.title};
  if (block.is_list) {
    out.table = people_table(block);
    if (block.records.empty()) out.lines.push_back({"none", Role::kDim});
  } else {
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

const Block* record_block(const Sheet& sheet) {
  const auto first = [&](auto wanted) {
    const auto found = std::find_if(sheet.blocks.begin(), sheet.blocks.end(), wanted);
    return found == sheet.blocks.end() ? nullptr : &*found;
  };
  const Block* list = first([](const Block& b) { return b.is_list && !b.for_people; });
  return list != nullptr ? list : first([](const Block& b) { return !b.for_people; });
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

Figure text_figure(std::string_view key, std::string_view label, std::string_view text) {
  return figure(key, label, Format::kText, Cell(std::string(text)));
}

Figure number_figure(std::string_view key, std::string_view label, Format format, double value) {
  return figure(key, label, format, Cell(value));
}

Figure with_importance(Figure figure, int importance) {
  figure.importance = importance;
  return figure;
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

std::vector<ExplainSection> sheet_explanation(const Sheet& sheet) {
  // A curve repeats one formula at every point; a dozen is what one reads.
  constexpr std::size_t kMostExplained = 12;
  std::vector<ExplainSection> out;
  for (const Block& whole : sheet.blocks) {
    if (whole.for_people) continue;
    for (const Block& block : by_group(whole)) {
      ExplainSection section{.title = block.title.empty() ? sheet.title : block.title};
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

Report sheet_report(const Sheet& sheet, bool explain) {
  Report out{.title = sheet.title, .summary = sheet.summary, .notes = sheet.notes};
  const Block* records = record_block(sheet);
  if (records != nullptr) out.records = table_of(records->records, false);
  for (const Block& block : sheet.blocks) {
    const bool first = &block == records && block.is_list && block.title.empty();
    for (const Block& part : by_group(block)) {
      if (first && part.title.empty()) {
        out.plans = people_table(part);
        continue;
      }
      Section section = section_of(part);
      const bool silent = section.title.empty() && section.table.rows.empty() && section.lines.empty();
      if (!silent) out.sections.push_back(std::move(section));
    }
  }
  if (explain) {
    for (const ExplainSection& part : sheet_explanation(sheet))
      out.sections.push_back(explained_section(part, "Explained: " + part.title));
  }
  if (!sheet.assumptions.empty()) out.sections.push_back(assumed_section(sheet.assumptions));
  return out;
}

}  // namespace scalecalc
