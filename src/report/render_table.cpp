// A Report for a terminal or a pipe. Escapes and box lines only where the stream can show them.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "report/render.h"
#include "report/table_layout.h"

namespace scalecalc {
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
  }
  return "";
}

class Page {
 public:
  explicit Page(const TextOptions& options) : options_(options) {
    if (options_.width > 0) options_.width = std::max(options_.width, kNarrowest);
  }

  void blank() {
    if (!text_.empty()) text_ += '\n';
  }

  /// One paragraph; continuation lines stand `hang` further right.
  void paragraph(const std::string& text, Role role, std::size_t indent = 0, std::size_t hang = 0) {
    const std::size_t room = options_.width > indent ? options_.width - indent : 0;
    std::string rest = fold_text(text, room, hang);
    while (true) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      line(rest.substr(0, end), role, indent);
      if (end == rest.size()) return;
      rest.erase(0, end + 1);
    }
  }

  /// The titles of columns that did not fit.
  std::vector<std::string> table(const Table& table, std::size_t indent) {
    const TableText laid = lay_out(table, options_.width > indent ? options_.width - indent : 0);
    bool header = true;
    for (const Line& row : laid.lines) {
      const bool heading = row.role == Role::kHeading;
      if (header && !heading && options_.unicode && &row != &laid.lines.front()) rule(laid.width, indent);
      header = header && heading;
      line(row.text, row.role, indent);
    }
    return laid.dropped;
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

void write_section(Page& page, const Section& section) {
  page.blank();
  page.paragraph(section.title, Role::kHeading);
  if (!section.table.rows.empty()) {
    const std::vector<std::string> dropped = page.table(section.table, kIndent);
    if (!dropped.empty()) {
      page.paragraph(fmt::format("(not shown at this width: {})", join(dropped, ", ")), Role::kDim, kIndent);
    }
  }
  for (const Line& line : section.lines) page.paragraph(line.text, line.role, kIndent, kIndent);
}

}  // namespace

std::string render_table(const Report& report, const TextOptions& options) {
  Page page(options);
  page.paragraph(report.title, Role::kHeading);
  for (const Line& line : report.summary) page.paragraph(line.text, line.role, 0, kIndent);
  for (const std::string& warning : report.warnings) {
    page.paragraph("warning: " + warning, Role::kWarning, 0, kIndent);
  }
  if (!report.plans.rows.empty()) {
    page.blank();
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
