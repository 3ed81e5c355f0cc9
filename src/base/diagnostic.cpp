// Shows an error with its source line and a caret under the place, for every message to the user. Texts come from
// files and command lines of unknown origin, so control characters are made visible before they reach a terminal.
#include "base/diagnostic.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/quoting.h"
#include "base/text.h"

namespace scalecalc {
namespace {

/// A source line as single characters, each printable and as wide as it will be shown. A tab becomes one space, so
/// that columns and carets agree.
std::vector<std::string> characters(std::string_view line) {
  std::vector<std::string> out;
  while (!line.empty()) {
    const std::string_view before = line;
    const char32_t c = next_code_point(line);
    const std::string_view one = before.substr(0, before.size() - line.size());
    if (c == U'\t') {
      out.emplace_back(" ");
    } else if (c == U'\uFFFD' || printable(one) != one) {
      out.emplace_back("?");
    } else {
      out.emplace_back(one);
    }
  }
  return out;
}

struct Window {
  std::size_t begin;
  std::size_t end;
};

/// The part of a line to show: all of it, or as much as fits with the marked place inside.
Window visible_part(std::size_t size, std::size_t marked) {
  constexpr std::size_t kWidest = 110;
  constexpr std::size_t kBeforeMark = 60;
  if (size <= kWidest) return {0, size};
  const std::size_t begin = marked > kBeforeMark ? std::min(marked - kBeforeMark, size - kWidest) : 0;
  return {begin, begin + kWidest};
}

/// The source line and the carets under the span, each behind the line number's gutter.
std::string source_display(const SourceSpan& where) {
  const std::vector<std::string> line = characters(where.line_text);
  const auto column = static_cast<std::size_t>(std::max(where.column, 1)) - 1;
  const Window part = visible_part(line.size(), std::min(column, line.size()));
  const std::string number = where.line > 0 ? std::to_string(where.line) : "";
  std::string shown = part.begin > 0 ? "..." : "";
  std::string marks(shown.size(), ' ');
  const std::size_t length = static_cast<std::size_t>(std::max(where.length, 1));
  for (std::size_t i = part.begin; i < part.end; ++i) {
    const std::size_t width = display_width(line[i]);
    shown += line[i];
    if (i < column) marks.append(width, ' ');
    if (i == column) marks += '^' + std::string(width > 1 ? width - 1 : 0, '~');
    if (i > column && i - column < length) marks.append(width, '~');
  }
  if (column >= part.end) marks += '^';
  if (part.end < line.size()) shown += "...";
  std::string out = fmt::format("  {:>2} | {}\n", number, shown);
  if (where.column > 0) out += fmt::format("  {:>{}} | {}\n", "", std::max<std::size_t>(number.size(), 2), marks);
  return out;
}

}  // namespace

UserError::UserError(std::vector<Diagnostic> diagnostics, ExitCode code)
    : diagnostics_(std::move(diagnostics)), code_(code) {}

UserError::UserError(std::string message, std::string hint, ExitCode code)
    : diagnostics_{{SourceSpan{}, std::move(message), std::move(hint)}}, code_(code) {}

const char* UserError::what() const noexcept {
  return diagnostics_.empty() ? "user error" : diagnostics_.front().message.c_str();
}

std::string render(const Diagnostic& diagnostic) {
  const SourceSpan& where = diagnostic.where;
  std::string out = printable(where.file);
  if (!where.file.empty()) {
    if (where.line > 0) out += fmt::format(":{}", where.line);
    if (where.line > 0 && where.column > 0) out += fmt::format(":{}", where.column);
    out += ": ";
  }
  out += "error: " + printable(diagnostic.message) + "\n";
  if (!where.line_text.empty()) out += source_display(where);
  if (!diagnostic.hint.empty()) out += "hint: " + printable(diagnostic.hint) + "\n";
  return out;
}

}  // namespace scalecalc
