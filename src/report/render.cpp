// Writes a report as text for terminals, as Markdown or as CSV.
#include "report/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/quoting.h"
#include "base/text.h"
#include "report/table_layout.h"

namespace scalecalc {

namespace {

/// Spreadsheets compute what starts with one of these.
bool is_formula(const std::string& text) {
  if (text.empty() || std::string_view("=+-@").find(text.front()) == std::string_view::npos) return false;
  double ignored = 0;
  const char* first = text.data() + (text.front() == '+' ? 1 : 0);
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(first, last, ignored);
  return error != std::errc() || end != last;  // a number with its sign is one
}

void make_printable(std::string& text) { text = printable_lines(text); }

void make_printable(std::vector<Line>& lines) {
  for (Line& line : lines) make_printable(line.text);
}

void make_printable(Table& table) {
  for (Column& column : table.columns) make_printable(column.title);
  for (Row& row : table.rows) {
    for (Cell& cell : row.cells) {
      if (std::string* text = std::get_if<std::string>(&cell)) make_printable(*text);
    }
  }
}

/// What people are shown, without what a terminal would obey: names come from files.
Report printable_report(Report report) {
  make_printable(report.title);
  make_printable(report.summary);
  make_printable(report.plans_heading);
  make_printable(report.plans);
  for (std::string& warning : report.warnings) make_printable(warning);
  for (std::string& note : report.notes) make_printable(note);
  for (Section& section : report.sections) {
    make_printable(section.title);
    make_printable(section.table);
    make_printable(section.lines);
  }
  return report;
}

}  // namespace

std::string csv_field(const std::string& given) {
  const std::string text = (is_formula(given) ? "'" : "") + printable_lines(given);
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

std::string render_csv(const Table& table) {
  std::string out;
  for (std::size_t i = 0; i < table.columns.size(); ++i) out += (i > 0 ? "," : "") + csv_field(table.columns[i].key);
  out += '\n';
  for (const Row& row : table.rows) {
    for (std::size_t i = 0; i < row.cells.size(); ++i) out += (i > 0 ? "," : "") + csv_field(raw_text_of(row.cells[i]));
    out += '\n';
  }
  return out;
}

// GitHub-flavoured Markdown, for issues and design documents.

namespace {

/// Text that Markdown must not read as markup or as a cell border.
std::string markdown_escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += ' ';
      continue;
    }
    if (c == '|' || c == '*' || c == '`' || c == '\\' || c == '[' || c == ']' || c == '<') out += '\\';
    out += c;
  }
  return out;
}

void write_markdown_table(std::string& out, const Table& table) {
  if (table.rows.empty()) return;
  out += '|';
  for (const Column& column : table.columns) out += " " + markdown_escaped(column.title) + " |";
  out += "\n|";
  for (const Column& column : table.columns) out += is_number(column.format) ? "---:|" : "---|";
  out += '\n';
  for (const Row& row : table.rows) {
    out += '|';
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      out +=
          " " + (i < row.cells.size() ? markdown_escaped(text_of(row.cells[i], table.columns[i].format)) : "") + " |";
    }
    out += '\n';
  }
  out += '\n';
}

}  // namespace

std::string render_markdown(const Report& given) {
  const Report report = printable_report(given);
  std::string out = "# " + markdown_escaped(report.title) + "\n\n";
  for (const Line& line : report.summary) out += markdown_escaped(line.text) + "\n\n";
  for (const std::string& warning : report.warnings) out += "**Warning:** " + markdown_escaped(warning) + "\n\n";
  write_markdown_table(out, report.plans);
  for (const std::string& note : report.notes) out += markdown_escaped(note) + "\n\n";
  for (const Section& section : report.sections) {
    if (!section.title.empty()) out += "## " + markdown_escaped(section.title) + "\n\n";
    write_markdown_table(out, section.table);
    for (std::size_t i = 0; i < section.lines.size(); ++i) {
      const Line& line = section.lines[i];
      if (line.role == Role::kCommand) {
        out += fmt::format("{}```sh\n{}\n```\n", i > 0 ? "\n" : "", line.text);
      } else {
        out += "- " + markdown_escaped(line.text) + "\n";
      }
    }
    if (!section.lines.empty()) out += '\n';
  }
  out.pop_back();  // each block ends with a blank line; a file does not
  return out;
}

// A Report for a terminal or a pipe. Escapes and box lines only where the stream can show them.

namespace {

constexpr std::size_t kIndent = 2;

std::string_view escape_of(Role role) {
  switch (role) {
    case Role::kPlain: return "";
    case Role::kHeading: return "\x1b[1m";
    case Role::kGood: return "\x1b[32m";
    case Role::kWarning: return "\x1b[33m";
    case Role::kBad: return "\x1b[31m";
    case Role::kDim: return "\x1b[2m";
    case Role::kCommand: return "";
  }
  return "";
}

class TextPage {
 public:
  explicit TextPage(const TextOptions& options) : options_(options) {
    if (options_.width > 0) options_.width = std::max(options_.width, kNarrowest);
  }

  void blank() {
    if (!text_.empty()) text_ += '\n';
  }

  /// One paragraph; continuation lines stand `hang` further right.
  void paragraph(const std::string& text, Role role, std::size_t indent = 0, std::size_t hang = 0) {
    if (role == Role::kCommand) return line(text, role, indent);
    const std::size_t room = options_.width > indent ? options_.width - indent : 0;
    std::string rest = fold_text(text, room, hang);
    while (true) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      line(rest.substr(0, end), role, indent);
      if (end == rest.size()) return;
      rest.erase(0, end + 1);
    }
  }

  /// The titles of columns that did not fit and have one: of bars there is nothing to say.
  std::vector<std::string> table(const Table& table, std::size_t indent) {
    const TableText laid = lay_out(table, options_.width > indent ? options_.width - indent : 0);
    bool header = true;
    for (const Line& row : laid.lines) {
      const bool heading = row.role == Role::kHeading;
      // Below the titles of the main table; those of sections stand close to their rows.
      if (indent == 0 && header && !heading && options_.unicode && &row != &laid.lines.front())
        rule(laid.width, indent);
      header = header && heading;
      line(row.text, row.role, indent);
    }
    std::vector<std::string> dropped = laid.dropped;
    std::erase_if(dropped, [](const std::string& title) { return title.find_first_not_of(' ') == std::string::npos; });
    return dropped;
  }

  std::string take() { return std::move(text_); }

 private:
  void line(const std::string& text, Role role, std::size_t indent) {
    const std::string_view escape = options_.colour && !text.empty() ? escape_of(role) : "";
    if (!text.empty()) text_.append(indent, ' ');
    text_ += escape;
    text_ += text;
    if (!escape.empty()) text_ += "\x1b[0m";
    text_ += '\n';
  }

  void rule(std::size_t width, std::size_t indent) {
    std::string dashes;
    for (std::size_t i = 0; i < width; ++i) dashes += "\u2500";
    line(dashes, Role::kDim, indent);
  }

  TextOptions options_;
  std::string text_;
};

void write_section(TextPage& page, const Section& section) {
  page.blank();
  if (!section.title.empty()) page.paragraph(section.title, Role::kHeading);
  if (!section.table.rows.empty()) {
    const std::vector<std::string> dropped = page.table(section.table, kIndent);
    if (!dropped.empty()) {
      page.paragraph(fmt::format("(not shown at this width: {})", join(dropped, ", ")), Role::kDim, kIndent);
    }
  }
  for (const Line& line : section.lines) page.paragraph(line.text, line.role, kIndent, kIndent);
}

}  // namespace

std::string render_table(const Report& given, const TextOptions& options) {
  const Report report = printable_report(given);
  TextPage page(options);
  if (!report.title.empty()) page.paragraph(report.title, Role::kHeading);
  for (const Line& line : report.summary) page.paragraph(line.text, line.role, 0, kIndent);
  for (const std::string& warning : report.warnings) {
    page.paragraph("warning: " + warning, Role::kWarning, 0, kIndent);
  }
  if (!report.plans.rows.empty()) {
    page.blank();
    if (!report.plans_heading.empty()) page.paragraph(report.plans_heading, Role::kDim, 0, kIndent);
    const std::vector<std::string> dropped = page.table(report.plans, 0);
    if (!dropped.empty()) {
      page.paragraph(
          fmt::format("(not shown at this width: {}; a wider terminal or -o csv has them)", join(dropped, ", ")),
          Role::kDim);
    }
  }
  for (const std::string& note : report.notes) page.paragraph(note, Role::kDim, 0, kIndent);
  for (const Section& section : report.sections) write_section(page, section);
  return page.take();
}

}  // namespace scalecalc
