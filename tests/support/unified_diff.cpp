#include "support/unified_diff.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace scalecalc::test {
namespace {

/// The table of a comparison has a cell for each pair of lines.
constexpr std::size_t kMostPairs = 16'000'000;

struct Line {
  char mark;  ///< ' ' in both, '-' only expected, '+' only found
  std::string_view text;
};

/// With their line feeds, so that a missing one is a difference.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    out.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return out;
}

using Lines = std::vector<std::string_view>::const_iterator;

/// A longest common subsequence by its table (Wagner and Fischer 1974); removals stand before additions.
void compare(Lines a, Lines a_end, Lines b, Lines b_end, std::vector<Line>& out) {
  const auto rows = static_cast<std::size_t>(a_end - a);
  const auto columns = static_cast<std::size_t>(b_end - b);
  const bool exact = rows * columns <= kMostPairs;
  std::vector<std::uint32_t> common(exact ? (rows + 1) * (columns + 1) : 0);  // of a[i..] and b[j..]
  const auto at = [&](std::size_t i, std::size_t j) -> std::uint32_t& { return common[i * (columns + 1) + j]; };
  const auto line = [](Lines from, std::size_t i) { return from[static_cast<std::ptrdiff_t>(i)]; };
  for (std::size_t i = exact ? rows : 0; i-- > 0;) {
    for (std::size_t j = columns; j-- > 0;) {
      at(i, j) = line(a, i) == line(b, j) ? at(i + 1, j + 1) + 1 : std::max(at(i + 1, j), at(i, j + 1));
    }
  }
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < rows || j < columns) {
    if (exact && i < rows && j < columns && line(a, i) == line(b, j)) {
      out.push_back({' ', line(a, i++)});
      ++j;
    } else if (i < rows && (!exact || j == columns || at(i + 1, j) >= at(i, j + 1))) {
      out.push_back({'-', line(a, i++)});
    } else {
      out.push_back({'+', line(b, j++)});
    }
  }
}

std::vector<Line> script(std::string_view expected, std::string_view found) {
  const std::vector<std::string_view> a = lines_of(expected);
  const std::vector<std::string_view> b = lines_of(found);
  const auto [a_from, b_from] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  Lines a_to = a.end();
  Lines b_to = b.end();
  while (a_to != a_from && b_to != b_from && *(a_to - 1) == *(b_to - 1)) {
    --a_to;
    --b_to;
  }
  std::vector<Line> out;
  for (Lines i = a.begin(); i != a_from; ++i) out.push_back({' ', *i});
  compare(a_from, a_to, b_from, b_to, out);
  for (Lines i = a_to; i != a.end(); ++i) out.push_back({' ', *i});
  return out;
}

/// "12,5": lines are numbered from 1; an empty range names the line before it.
std::string range(std::size_t before, std::size_t count) {
  return std::to_string(count == 0 ? before : before + 1) + "," + std::to_string(count);
}

}  // namespace

std::string unified_diff(std::string_view expected, std::string_view found, std::size_t context,
                         std::size_t most_lines) {
  const std::vector<Line> all = script(expected, found);
  std::vector<std::string> out;
  std::size_t a = 0;  // lines of each text before `at`
  std::size_t b = 0;
  const auto pass = [&](const Line& line) {
    a += line.mark != '+' ? 1U : 0U;
    b += line.mark != '-' ? 1U : 0U;
  };
  for (std::size_t at = 0; at < all.size();) {
    const auto changed = [](const Line& line) { return line.mark != ' '; };
    const auto from = all.begin() + static_cast<std::ptrdiff_t>(at);
    const auto first = static_cast<std::size_t>(std::find_if(from, all.end(), changed) - all.begin());
    if (first == all.size()) break;
    const std::size_t start = first - std::min(context, first - at);
    std::size_t end = first;  // of the hunk: changes that lie at most 2 * context apart, and the context after them
    for (std::size_t i = first; i < all.size() && i <= end + 2 * context; ++i) {
      if (changed(all[i])) end = i + 1;
    }
    end = std::min(end + context, all.size());
    for (; at < start; ++at) pass(all[at]);
    const std::size_t a_before = a;
    const std::size_t b_before = b;
    const std::size_t header = out.size();
    out.emplace_back();
    for (; at < end; ++at) {
      pass(all[at]);
      const bool ends = all[at].text.ends_with('\n');
      out.push_back(all[at].mark + std::string(all[at].text) + (ends ? "" : "\n\\ No newline at end of text\n"));
    }
    out[header] = "@@ -" + range(a_before, a - a_before) + " +" + range(b_before, b - b_before) + " @@\n";
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(out.size(), most_lines); ++i) text += out[i];
  if (out.size() > most_lines) text += "... and " + std::to_string(out.size() - most_lines) + " more lines\n";
  return text;
}

}  // namespace scalecalc::test
