// Places in a text: byte offsets to lines, columns and underlines, and the extent of what stands at an offset.
// yaml-cpp gives where things start, in bytes; people count characters and want to see where things end.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"

namespace scalecalc {

class SourceText {
 public:
  SourceText(std::string_view text, std::string file);

  std::string_view text() const { return text_; }
  /// The span from `begin` to `end`, cut at the end of its first line. An offset past the end means the last character.
  SourceSpan span(std::size_t begin, std::size_t end) const;
  SourceSpan span(std::size_t begin) const { return span(begin, begin + 1); }

  /// The same where another parser has counted: a line and a column of characters, both from 1.
  SourceSpan counted_span(std::size_t line, std::size_t column, std::size_t length) const;

  /// Where the value after anchors and tags (&a !t value) starts.
  std::size_t skip_properties(std::size_t at) const;
  /// One past a scalar that starts at `at` and reads as `value`; the end of the line if it runs over several.
  std::size_t scalar_end(std::size_t at, std::string_view value) const;
  /// Whether a quoted scalar that starts at `at` runs off the end of the text.
  bool is_unclosed_quote(std::size_t at) const;
  /// The first character from `at` on that is not blank, or '\n' at the end of a line or of the text.
  char next_on_line(std::size_t at) const;
  /// Whether nothing but blanks and line ends follows.
  bool only_blank_after(std::size_t at) const;
  /// Opening place of the quote after `from` that never closes, or npos.
  std::size_t unclosed_quote(std::size_t from) const;

 private:
  void show_line(SourceSpan& out, std::size_t line, std::size_t stop) const;
  std::size_t line_of(std::size_t offset) const;
  std::size_t line_end(std::size_t offset) const;
  std::size_t quote_end(std::size_t opening) const;
  std::size_t column_of(std::size_t line, std::size_t offset) const;

  std::string_view text_;
  SharedText file_;
  std::vector<std::size_t> line_starts_;
  // The place asked for last: the next one is mostly close by, and a minified document is one long line.
  struct Place {
    std::size_t line = 0;
    std::size_t offset = 0;
    std::size_t column = 0;
  };
  mutable Place last_;
  mutable std::size_t shown_line_ = 0;  ///< from 1; 0: none yet
  mutable SharedText shown_;            ///< its text, for all that stands on it
};

}  // namespace scalecalc
