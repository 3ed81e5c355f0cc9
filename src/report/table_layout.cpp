// Fits a table into the width of a terminal: folds texts and leaves out the least important columns.
#include "report/table_layout.h"

#include <algorithm>

#include "base/text.h"

namespace scalecalc {
namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kNarrowText = 20;  // a broken column is not made narrower while others can be left out
constexpr std::size_t kNarrowestText = 8;
constexpr int kExpendable = 4;  // columns of this importance go before any text is broken

struct Placed {
  std::size_t index;  ///< in the table
  std::size_t width;
};

/// Of each row its cells, as many as there are columns: put into words once, for their widths and to be shown.
using CellTexts = std::vector<std::vector<std::string>>;

CellTexts texts_of(const Table& table) {
  CellTexts out(table.rows.size());
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    const std::vector<Cell>& cells = table.rows[r].cells;
    out[r].reserve(table.columns.size());
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      out[r].push_back(text_of(i < cells.size() ? cells[i] : Cell{}, table.columns[i].format));
    }
  }
  return out;
}

std::vector<Placed> natural(const Table& table, const CellTexts& texts) {
  std::vector<Placed> out;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    std::size_t widest = 0;
    for (std::size_t r = 0; r < table.rows.size(); ++r) {
      if (i < table.rows[r].cells.size()) widest = std::max(widest, display_width(texts[r][i]));
    }
    if (widest == 0) continue;
    out.push_back({i, std::max(widest, display_width(table.columns[i].title))});
  }
  return out;
}

std::size_t total_width(const std::vector<Placed>& placed) {
  std::size_t sum = 0;
  for (const Placed& column : placed) sum += column.width + kGap;
  return sum == 0 ? 0 : sum - kGap;
}

/// The column to leave out next: the highest importance, the rightmost of equals. End if all must stay.
std::vector<Placed>::iterator least_important(const Table& table, std::vector<Placed>& placed, int at_least) {
  auto found = placed.end();
  int highest = at_least - 1;
  for (auto it = placed.begin(); it != placed.end(); ++it) {
    const int importance = table.columns[it->index].importance;
    if (importance < highest || importance < at_least) continue;
    highest = importance;
    found = it;
  }
  return found;
}

/// Narrows the widest flexible column until the table fits, but not below `floor`. True if it fits.
bool shrink(const Table& table, std::vector<Placed>& placed, std::size_t width, std::size_t floor) {
  std::vector<Placed> trial = placed;
  while (total_width(trial) > width) {
    auto widest = trial.end();
    for (auto it = trial.begin(); it != trial.end(); ++it) {
      if (!table.columns[it->index].flexible || it->width <= floor) continue;
      if (widest == trial.end() || it->width > widest->width) widest = it;
    }
    if (widest == trial.end()) return false;
    --widest->width;
  }
  placed = std::move(trial);
  return true;
}

std::vector<Placed> fit(const Table& table, const CellTexts& texts, std::size_t width,
                        std::vector<std::string>& dropped) {
  std::vector<Placed> placed = natural(table, texts);
  if (width == 0) return placed;
  while (total_width(placed) > width) {
    auto out = least_important(table, placed, kExpendable);
    if (out == placed.end() && shrink(table, placed, width, kNarrowText)) break;
    if (out == placed.end()) out = least_important(table, placed, 1);
    if (out == placed.end()) {
      shrink(table, placed, width, kNarrowestText);
      break;
    }
    dropped.insert(dropped.begin(), table.columns[out->index].title);
    placed.erase(out);
  }
  return placed;
}

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> out;
  std::size_t start = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', start)) {
    out.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  out.push_back(text.substr(start));
  return out;
}

/// One row of the table as one line or several.
std::vector<std::string> row_lines(const std::vector<std::vector<std::string>>& texts, const Table& table,
                                   const std::vector<Placed>& placed) {
  std::size_t height = 1;
  for (const auto& text : texts) height = std::max(height, text.size());
  std::vector<std::string> out;
  for (std::size_t line = 0; line < height; ++line) {
    std::string joined;
    for (std::size_t i = 0; i < placed.size(); ++i) {
      const std::string_view text = line < texts[i].size() ? std::string_view(texts[i][line]) : std::string_view();
      const std::size_t width = display_width(text);
      const std::size_t fill = placed[i].width > width ? placed[i].width - width : 0;
      const bool number = is_number(table.columns[placed[i].index].format);
      if (number) joined.append(fill, ' ');
      joined += text;
      if (!number) joined.append(fill, ' ');
      if (i + 1 < placed.size()) joined.append(kGap, ' ');
    }
    joined.erase(joined.find_last_not_of(' ') + 1);
    out.push_back(std::move(joined));
  }
  return out;
}

/// Breaks a word into pieces of at most `width` columns.
std::string break_word(std::string_view word, std::size_t width) {
  std::string out;
  std::size_t column = 0;
  while (!word.empty()) {
    const std::string_view before = word;
    next_code_point(word);
    const std::string_view character = before.substr(0, before.size() - word.size());
    const std::size_t taken = display_width(character);
    if (column + taken > width) {
      out += ' ';
      column = 0;
    }
    out += character;
    column += taken;
  }
  return out;
}

/// A cell's text in lines of at most `width` columns; blanks before the text stay before each line.
std::vector<std::string> folded(const std::string& text, std::size_t width) {
  const std::size_t indent = std::min(text.find_first_not_of(' '), text.size());
  const std::size_t room = width > indent ? width - indent : width;
  std::vector<std::string> lines = split_lines(fold_text(text.substr(indent), room, 0));
  for (std::string& line : lines) line.insert(0, indent, ' ');
  return lines;
}

}  // namespace

std::string fold_text(const std::string& text, std::size_t width, std::size_t indent) {
  const std::size_t unlimited = std::string::npos / 2;
  if (width == 0) return wrap(text, unlimited, indent);
  const std::size_t room = width > indent + kNarrowestText ? width - indent : kNarrowestText;
  std::string words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of(" \n", at), text.size());
    const std::string_view word = std::string_view(text).substr(at, end - at);
    words += display_width(word) > room ? break_word(word, room) : std::string(word);
    if (end < text.size()) words += text[end];
    at = end + 1;
  }
  return wrap(words, width, indent);
}

TableText lay_out(const Table& table, std::size_t width) {
  TableText out;
  CellTexts texts = texts_of(table);
  const std::vector<Placed> placed = fit(table, texts, width, out.dropped);
  const auto add = [&](const std::vector<std::vector<std::string>>& lines, Role role) {
    for (std::string& line : row_lines(lines, table, placed)) {
      out.width = std::max(out.width, display_width(line));
      out.lines.push_back({std::move(line), role});
    }
  };
  std::vector<std::vector<std::string>> header;
  bool titled = false;
  for (const Placed& column : placed) {
    const Column& as_given = table.columns[column.index];
    titled = titled || as_given.title.find_first_not_of(' ') != std::string::npos;
    header.push_back(split_lines(fold_text(as_given.title, column.width, 0)));
  }
  if (titled) add(header, Role::kHeading);
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    std::vector<std::vector<std::string>> lines(placed.size());
    for (std::size_t i = 0; i < placed.size(); ++i) {
      std::string& text = texts[r][placed[i].index];
      if (table.columns[placed[i].index].flexible) {
        lines[i] = folded(text, placed[i].width);
      } else {
        lines[i].push_back(std::move(text));
      }
    }
    add(lines, table.rows[r].role);
  }
  return out;
}

}  // namespace scalecalc
