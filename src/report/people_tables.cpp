// Chooses the columns and rows of a block that people read, brief or whole.
#include "report/people_tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/diagnostic.h"
#include "base/text.h"
#include "report/side_by_side.h"

namespace scalecalc {
namespace {

Column people_column(const Figure& f, int importance) {
  // A number with its unit stays whole.
  const bool flexible = f.format == Format::kText && !f.rigid;
  return {f.label, column_of(f), f.shown.empty() ? f.format : Format::kText, importance, flexible};
}

/// The columns a block names, or every figure with a label.
std::vector<Column> usual_columns(const Block& block, bool brief) {
  std::vector<Column> out;
  for (const ShownColumn& shown : block.columns) {
    if (brief && !shown.brief) continue;
    for (const Record& record : block.records) {
      const Figure* f = find_figure(people_figures(record), shown.column);
      if (f == nullptr) continue;
      out.push_back(people_column(*f, shown.importance));
      if (!shown.title.empty()) out.back().title = shown.title;
      break;
    }
  }
  if (block.columns.empty()) {
    for (const Figure* f : people_figures(widest_record(block.records))) {
      out.push_back(people_column(*f, f->importance));
    }
  }
  return out;
}

/// A figure by the names it has in files: its path in JSON, "time_s.compute", and its column in CSV, if it has one.
struct NamedFigure {
  std::string path;
  std::string column;
  const Figure* figure;

  const std::string& name() const { return column.empty() ? path : column; }
};

void collect_named(const Record& record, const std::string& at, const std::vector<const Figure*>& csv,
                   std::vector<NamedFigure>& out) {
  for (const Figure& f : record.figures) {
    if (f.key.empty()) continue;
    if (f.is_object && !f.records.empty()) {
      collect_named(f.records.front(), at + f.key + ".", csv, out);
    } else if (!f.is_object && (!f.is_list || f.records.empty())) {
      const bool in_csv = std::find(csv.begin(), csv.end(), &f) != csv.end();
      out.push_back({at + f.key, in_csv ? column_of(f) : "", &f});
    }
  }
}

std::vector<NamedFigure> named_figures(const Record& record) {
  std::vector<NamedFigure> out;
  collect_named(record, "", csv_figures(record), out);
  return out;
}

/// Of several with this name the first that people read.
const Figure* figure_named(const std::vector<NamedFigure>& figures, const std::string& name) {
  const Figure* out = nullptr;
  for (const NamedFigure& f : figures) {
    if (f.path != name && f.column != name) continue;
    if (out == nullptr || (out->label.empty() && !f.figure->label.empty())) out = f.figure;
  }
  return out;
}

}  // namespace

void check_columns(const Block& block, const std::vector<std::string>& columns) {
  const std::vector<NamedFigure> figures =
      named_figures(block.records.empty() ? block.header : widest_record(block.records));
  for (const std::string& name : columns) {
    if (figure_named(figures, name) != nullptr) continue;
    std::vector<std::string> known;
    for (const NamedFigure& f : figures) {
      if (std::find(known.begin(), known.end(), f.name()) == known.end()) known.push_back(f.name());
    }
    const std::string hint = did_you_mean(nearest(name, known));
    throw UserError(fmt::format("--columns: the table has no {}", in_quotes(name)),
                    fmt::format("{}{}columns: {}", hint, hint.empty() ? "" : " ", join(known, ", ")));
  }
}

Table chosen_table(const Block& block, const std::vector<std::string>& columns) {
  Table out;
  if (block.records.empty()) return out;
  for (const std::string& name : columns) {
    const Figure* f = nullptr;
    for (const Record& record : block.records) {
      if (f == nullptr || f->label.empty()) f = figure_named(named_figures(record), name);
    }
    if (f == nullptr) continue;
    out.columns.push_back(people_column(*f, 0));
    if (f->label.empty()) out.columns.back().title = name;
  }
  for (const Record& record : block.records) {
    const std::vector<NamedFigure> figures = named_figures(record);
    Row row{.role = record.role};
    for (const std::string& name : columns) {
      const Figure* f = figure_named(figures, name);
      row.cells.push_back(f == nullptr ? Cell{} : shown_cell(*f));
    }
    out.rows.push_back(std::move(row));
  }
  return out;
}

Block chosen_figures(Block block, const std::vector<std::string>& columns) {
  for (Record& record : block.records) {
    const std::vector<NamedFigure> figures = named_figures(record);
    std::vector<Figure> kept;
    // The first names the column of a chip or a plan.
    if (block.by_figure && block.is_list) kept.push_back(record.figures.front());
    for (const std::string& name : columns) {
      const Figure* f = figure_named(figures, name);
      if (f == nullptr) continue;
      kept.push_back(*f);
      if (f->label.empty()) kept.back().label = name;
    }
    record.figures = std::move(kept);
  }
  return block;
}

Table people_table(const Block& block, bool brief) {
  if (block.by_figure) return side_by_side(block.records);
  Table out;
  if (block.records.empty()) return out;
  out.columns = usual_columns(block, brief);
  for (const Record& record : block.records) {
    const std::vector<const Figure*> figures = people_figures(record);
    Row row{.role = record.role};
    for (const Column& column : out.columns) {
      const Figure* f = find_figure(figures, column.key);
      row.cells.push_back(f == nullptr ? Cell{} : shown_cell(*f));
    }
    out.rows.push_back(std::move(row));
  }
  return out;
}

Table pairs_table(const Record& record) {
  Table out;
  out.columns = {{"", "figure", Format::kText, 0, false}, {"", "value", Format::kText, 0, true}};
  for (const Figure& f : record.figures) {
    if (f.label.empty() || std::holds_alternative<std::monostate>(f.value)) continue;
    out.rows.push_back({{f.label, text_of(shown_cell(f), f.format)}});
  }
  return out;
}

Block brief_block(Block block) {
  if (block.brief_rows > 0) {
    std::erase_if(block.records, [](const Record& r) { return !r.brief; });
    if (block.records.size() > block.brief_rows) block.records.resize(block.brief_rows);
  }
  if (block.brief_keys.empty()) return block;
  const auto shown = [&](const Figure& f) {
    return f.key.empty() || std::any_of(block.brief_keys.begin(), block.brief_keys.end(), [&](std::string_view key) {
             return key.ends_with('.') || key.ends_with('_') ? f.key.starts_with(key) : f.key == key;
           });
  };
  for (Record& record : block.records) {
    // The first names the column of a chip or a plan.
    auto from = record.figures.begin() + (block.by_figure && block.is_list && !record.figures.empty() ? 1 : 0);
    record.figures.erase(std::remove_if(from, record.figures.end(), [&](const Figure& f) { return !shown(f); }),
                         record.figures.end());
  }
  return block;
}

namespace {

/// "mb 1, remat none, zero 1" in parts.
std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(", ", at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 2;
  }
  return out;
}

bool has_part(const Cell& cell, const std::string& part) {
  const std::string* text = std::get_if<std::string>(&cell);
  if (text == nullptr) return false;
  const std::vector<std::string> parts = parts_of(*text);
  return std::find(parts.begin(), parts.end(), part) != parts.end();
}

/// Takes out of a column of lists the parts that every row has, and says them.
std::string fold_parts(Table& table, std::size_t column) {
  const std::string* first = std::get_if<std::string>(&table.rows.front().cells[column]);
  if (first == nullptr || table.columns[column].importance == 0) return "";
  std::vector<std::string> shared = parts_of(*first);
  std::erase_if(shared, [&](const std::string& part) {
    return !std::all_of(table.rows.begin(), table.rows.end(),
                        [&](const Row& row) { return has_part(row.cells[column], part); });
  });
  if (shared.empty()) return "";
  std::vector<std::string> cells;
  cells.reserve(table.rows.size());
  for (const Row& row : table.rows) {
    std::vector<std::string> left = parts_of(std::get<std::string>(row.cells[column]));
    std::erase_if(
        left, [&](const std::string& part) { return std::find(shared.begin(), shared.end(), part) != shared.end(); });
    if (left.empty()) return "";  // a row without a word would not read
    cells.push_back(join(left, ", "));
  }
  for (std::size_t r = 0; r < cells.size(); ++r) table.rows[r].cells[column] = std::move(cells[r]);
  return join(shared, ", ");
}

}  // namespace

std::string fold_equal(Table& table) {
  std::vector<std::string> equal;
  for (std::size_t c = table.columns.size(); table.rows.size() > 1 && c-- > 0;) {
    const Cell& first = table.rows.front().cells[c];
    const bool same =
        std::all_of(table.rows.begin(), table.rows.end(), [&](const Row& row) { return row.cells[c] == first; });
    if (!same) {
      if (std::string parts = fold_parts(table, c); !parts.empty()) equal.insert(equal.begin(), std::move(parts));
      continue;
    }
    if (table.columns[c].importance == 0) continue;
    const std::string text = text_of(first, table.columns[c].format);
    if (!text.empty()) equal.insert(equal.begin(), table.columns[c].title + " " + text);
    const auto at = static_cast<std::ptrdiff_t>(c);
    table.columns.erase(table.columns.begin() + at);
    for (Row& row : table.rows) row.cells.erase(row.cells.begin() + at);
  }
  return join(equal, ", ");
}

std::vector<Block> headed_parts(const Block& block) {
  std::vector<Block> out;
  for (const Record& record : block.records) {
    std::string title;
    for (std::size_t i = 1; i < record.figures.size(); ++i) {
      const Figure& f = record.figures[i];
      if (f.key.empty()) {
        title = f.label;
        continue;
      }
      // Records under a label, such as tiers of a network, are a part of their own.
      const std::string& own = !f.label.empty() && !f.records.empty() ? f.label : title;
      if (own.empty()) continue;
      auto at = std::find_if(out.begin(), out.end(), [&](const Block& b) { return b.title == own; });
      if (at == out.end()) {
        at = out.insert(out.end(), {.title = own, .by_figure = true});
        for (const Record& r : block.records) at->records.push_back({{r.figures.front()}});
      }
      const auto nth = static_cast<std::size_t>(&record - block.records.data());
      at->records[nth].figures.push_back(f);
    }
  }
  return out;
}

}  // namespace scalecalc
