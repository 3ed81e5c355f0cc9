// One HTML page without scripts, links or fonts from elsewhere. Every text is escaped: names come from users' files.
#include <fmt/format.h>

#include "report/render.h"

namespace scalecalc {
namespace {

constexpr const char* kStyle =
    "body{font:15px/1.45 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;margin:.5rem 0}"
    "th,td{padding:.2rem .7rem;border-bottom:1px solid #ddd;text-align:left;vertical-align:top;min-width:4.5rem}"
    ".n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}"
    ".good{background:#e8f5e9}.warning{color:#8a5a00}.bad{color:#b00020}.dim{color:#666}"
    "h1{font-size:1.3rem}h2{font-size:1.05rem;margin-top:1.6rem}";

std::string html_escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      case '\n': out += "<br>"; break;
      default: out += c;
    }
  }
  return out;
}

std::string_view class_of(Role role) {
  switch (role) {
    case Role::kGood: return " class=\"good\"";
    case Role::kWarning: return " class=\"warning\"";
    case Role::kBad: return " class=\"bad\"";
    case Role::kDim: return " class=\"dim\"";
    case Role::kPlain:
    case Role::kHeading: break;
  }
  return "";
}

void write_html_table(std::string& out, const Table& table) {
  if (table.rows.empty()) return;
  out += "<table>\n<tr>";
  for (const Column& column : table.columns) {
    out += fmt::format("<th{}>{}</th>", is_number(column.format) ? " class=\"n\"" : "", html_escaped(column.title));
  }
  out += "</tr>\n";
  for (const Row& row : table.rows) {
    out += fmt::format("<tr{}>", class_of(row.role));
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      const Column& column = table.columns[i];
      const std::string text = i < row.cells.size() ? html_escaped(text_of(row.cells[i], column.format)) : "";
      out += fmt::format("<td{}>{}</td>", is_number(column.format) ? " class=\"n\"" : "", text);
    }
    out += "</tr>\n";
  }
  out += "</table>\n";
}

void write_line(std::string& out, const char* tag, const std::string& text, Role role) {
  out += fmt::format("<{0}{1}>{2}</{0}>\n", tag, class_of(role), html_escaped(text));
}

}  // namespace

std::string render_html(const Report& report) {
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{0}</title>\n"
      "<style>{1}</style>\n</head>\n<body>\n<h1>{0}</h1>\n",
      html_escaped(report.title), kStyle);
  for (const Line& line : report.summary) write_line(out, "p", line.text, line.role);
  for (const std::string& warning : report.warnings) write_line(out, "p", "Warning: " + warning, Role::kWarning);
  write_html_table(out, report.plans);
  for (const std::string& note : report.notes) write_line(out, "p", note, Role::kDim);
  for (const Section& section : report.sections) {
    write_line(out, "h2", section.title, Role::kPlain);
    write_html_table(out, section.table);
    if (section.lines.empty()) continue;
    out += "<ul>\n";
    for (const Line& line : section.lines) write_line(out, "li", line.text, line.role);
    out += "</ul>\n";
  }
  return out + "</body>\n</html>\n";
}

}  // namespace scalecalc
