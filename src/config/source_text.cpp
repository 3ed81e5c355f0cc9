// Finds lines and quoted texts in the source of a YAML or JSON document, for the places of errors.
#include "config/source_text.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace scalecalc {
namespace {

constexpr std::size_t kNone = std::string_view::npos;

bool is_blank(char c) { return c == ' ' || c == '\t'; }
bool is_space(char c) { return is_blank(c) || c == '\n' || c == '\r'; }

/// Characters after which a quote opens a quoted text, and is no apostrophe.
bool opens_value(char before) {
  return is_space(before) || before == '[' || before == '{' || before == ',' || before == ':';
}

}  // namespace

SourceText::SourceText(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {
  line_starts_.push_back(0);
  for (std::size_t at = text_.find('\n'); at != kNone; at = text_.find('\n', at + 1)) line_starts_.push_back(at + 1);
}

std::size_t SourceText::line_of(std::size_t offset) const {
  const auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  return static_cast<std::size_t>(after - line_starts_.begin()) - 1;
}

std::size_t SourceText::line_end(std::size_t offset) const {
  // Not by a search: in a minified document every one would run to the end of the text.
  const std::size_t next = line_of(offset) + 1;
  std::size_t end = next < line_starts_.size() ? line_starts_[next] - 1 : text_.size();
  if (end < offset) end = offset;
  if (end > offset && text_[end - 1] == '\r') --end;
  return end;
}

std::size_t SourceText::column_of(std::size_t line, std::size_t offset) const {
  if (last_.line != line) last_ = {line, line_starts_[line], 0};
  if (offset >= last_.offset) {
    last_.column += count_characters(text_.substr(last_.offset, offset - last_.offset));
  } else {
    last_.column -= count_characters(text_.substr(offset, last_.offset - offset));
  }
  last_.offset = offset;
  return last_.column;
}

SourceSpan SourceText::span(std::size_t begin, std::size_t end) const {
  if (begin >= text_.size()) {
    begin = text_.size();
    while (begin > 0 && is_space(text_[begin - 1])) --begin;
    if (begin > 0) --begin;
    while (begin > 0 && (static_cast<unsigned char>(text_[begin]) & 0xC0U) == 0x80U) --begin;
    end = text_.size();
  }
  const std::size_t line = line_of(begin);
  const std::size_t stop = line_end(begin);
  const std::size_t cut = std::clamp(end, begin, std::max(begin, stop));
  SourceSpan out;
  out.file = file_;
  out.line = static_cast<int>(line + 1);
  out.column = static_cast<int>(column_of(line, begin) + 1);
  out.length = std::max(1, static_cast<int>(count_characters(text_.substr(begin, cut - begin))));
  show_line(out, line, stop);
  return out;
}

SourceSpan SourceText::counted_span(std::size_t line, std::size_t column, std::size_t length) const {
  SourceSpan out;
  out.file = file_;
  const std::size_t index = std::clamp(line, std::size_t{1}, line_starts_.size()) - 1;
  out.line = static_cast<int>(index + 1);
  out.column = static_cast<int>(column);
  out.length = static_cast<int>(std::max(std::size_t{1}, length));
  show_line(out, index, line_end(line_starts_[index]));
  return out;
}

/// Adds the text of a line that ends at `stop`.
void SourceText::show_line(SourceSpan& out, std::size_t line, std::size_t stop) const {
  // Copies of a minified document's long lines would fill the memory.
  constexpr std::size_t kLarge = 1 << 20;
  const std::size_t longest_shown = text_.size() > kLarge ? 200 : 2000;
  const std::size_t start = line_starts_[line];
  if (stop - start > longest_shown) return;
  if (shown_line_ != line + 1 || shown_.str().size() != stop - start) {
    shown_ = SharedText(text_.substr(start, stop - start));
    shown_line_ = line + 1;
  }
  out.line_text = shown_;
}

std::size_t SourceText::skip_properties(std::size_t at) const {
  std::size_t value = at;
  while (value < text_.size() && (text_[value] == '&' || text_[value] == '!')) {
    while (value < text_.size() && !is_space(text_[value])) ++value;
    while (value < text_.size() && is_blank(text_[value])) ++value;
  }
  return value < text_.size() && !is_space(text_[value]) ? value : at;
}

std::size_t SourceText::quote_end(std::size_t opening) const {
  const char quote = text_[opening];
  for (std::size_t at = opening + 1; at < text_.size(); ++at) {
    if (quote == '"' && text_[at] == '\\') {
      ++at;
    } else if (text_[at] == quote) {
      const bool doubled = quote == '\'' && at + 1 < text_.size() && text_[at + 1] == '\'';
      if (!doubled) return at + 1;
      ++at;
    }
  }
  return kNone;
}

std::size_t SourceText::scalar_end(std::size_t at, std::string_view value) const {
  if (at >= text_.size()) return text_.size();
  if (text_[at] == '"' || text_[at] == '\'') return std::min(quote_end(at), text_.size());
  const bool as_written = !value.empty() && text_.substr(at).starts_with(value);
  return as_written ? at + value.size() : line_end(at);
}

bool SourceText::is_unclosed_quote(std::size_t at) const {
  return at < text_.size() && (text_[at] == '"' || text_[at] == '\'') && quote_end(at) == kNone;
}

char SourceText::next_on_line(std::size_t at) const {
  while (at < text_.size() && is_blank(text_[at])) ++at;
  return at < text_.size() ? text_[at] : '\n';
}

bool SourceText::only_blank_after(std::size_t at) const {
  return text_.find_first_not_of(" \t\r\n", std::min(at, text_.size())) == kNone;
}

std::size_t SourceText::unclosed_quote(std::size_t from) const {
  for (std::size_t at = from; at < text_.size(); ++at) {
    const bool starts = at == 0 || opens_value(text_[at - 1]);
    if (text_[at] == '#' && starts) {
      at = line_end(at);
    } else if (starts && (text_[at] == '"' || text_[at] == '\'')) {
      const std::size_t end = quote_end(at);
      if (end == kNone) return at;
      at = end - 1;
    }
  }
  return kNone;
}

}  // namespace scalecalc
