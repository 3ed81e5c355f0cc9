// GitHub-flavoured Markdown, for issues and design documents.
#include "report/render.h"

namespace scalecalc {
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

std::string render_markdown(const Report& report) {
  std::string out = "# " + markdown_escaped(report.title) + "\n\n";
  for (const Line& line : report.summary) out += markdown_escaped(line.text) + "\n\n";
  for (const std::string& warning : report.warnings) out += "**Warning:** " + markdown_escaped(warning) + "\n\n";
  write_markdown_table(out, report.plans);
  for (const std::string& note : report.notes) out += markdown_escaped(note) + "\n\n";
  for (const Section& section : report.sections) {
    out += "## " + markdown_escaped(section.title) + "\n\n";
    write_markdown_table(out, section.table);
    for (const Line& line : section.lines) out += "- " + markdown_escaped(line.text) + "\n";
    if (!section.lines.empty()) out += '\n';
  }
  out.pop_back();  // each block ends with a blank line; a file does not
  return out;
}

}  // namespace scalecalc
