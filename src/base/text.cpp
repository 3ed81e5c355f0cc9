// Folds, trims, splits and compares texts, for readers of files and flags. Everything here is locale-free: only ASCII
// letters change case.
#include "base/text.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace scalecalc {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// Lower case without the separators people confuse: llama3-70b, Llama_3 70B and llama370b become one.
std::string bare_form(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c != '-' && c != '_' && c != '.' && c != ' ') out += lower(c);
  }
  return out;
}

struct CodeRange {
  char32_t first;
  char32_t last;
};

constexpr std::array<CodeRange, 10> kZeroWidth{{{0x300, 0x36F},
                                                {0x483, 0x489},
                                                {0x591, 0x5BD},
                                                {0x610, 0x61A},
                                                {0x64B, 0x65F},
                                                {0x1AB0, 0x1AFF},
                                                {0x200B, 0x200F},
                                                {0x20D0, 0x20FF},
                                                {0xFE00, 0xFE0F},
                                                {0xFE20, 0xFE2F}}};

constexpr std::array<CodeRange, 12> kDoubleWidth{{{0x1100, 0x115F},
                                                  {0x2E80, 0x303E},
                                                  {0x3041, 0x4DBF},
                                                  {0x4E00, 0xA4CF},
                                                  {0xA960, 0xA97C},
                                                  {0xAC00, 0xD7A3},
                                                  {0xF900, 0xFAFF},
                                                  {0xFE30, 0xFE6F},
                                                  {0xFF00, 0xFF60},
                                                  {0xFFE0, 0xFFE6},
                                                  {0x1F300, 0x1FAFF},
                                                  {0x20000, 0x3FFFD}}};

bool within(char32_t c, std::span<const CodeRange> ranges) {
  return std::any_of(ranges.begin(), ranges.end(), [c](const CodeRange& r) { return c >= r.first && c <= r.last; });
}

/// Length of the valid UTF-8 sequence at the start of `text`, with its value; 0 if there is none.
std::size_t decode(std::string_view text, char32_t& value) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) {
    value = lead;
    return 1;
  }
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  value = lead & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return 0;
    value = (value << 6U) | (byte(i) & 0x3FU);
  }
  const bool overlong = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  return overlong || surrogate || value > 0x10FFFF ? 0 : length;
}

/// Edits from `word` to `candidate` if they are alike enough to be the same name mistyped.
std::size_t likeness(std::string_view word, std::string_view candidate) {
  constexpr std::size_t kUnlike = std::numeric_limits<std::size_t>::max();
  const std::size_t longer = std::max(word.size(), candidate.size());
  const std::size_t allowed = std::min(std::max<std::size_t>(2, word.size() / 3), longer / 2);
  const std::size_t shorter = std::min(word.size(), candidate.size());
  if (longer - shorter > allowed) return kUnlike;
  const std::size_t distance = edit_distance(word, candidate);
  return distance <= allowed ? distance : kUnlike;
}

void keep_first(std::vector<std::string>& names, const std::string& name) {
  constexpr std::size_t kMost = 3;
  if (names.size() < kMost && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> two_back(b.size() + 1);
  std::vector<std::size_t> back(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(two_back, back);
    std::swap(back, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1;
      row[j] = std::min({back[j] + 1, row[j - 1] + 1, back[j - 1] + change});
      const bool swapped = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], two_back[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::vector<std::string> nearest(std::string_view word, std::span<const std::string> candidates) {
  constexpr std::size_t kLongestName = 200;  // a longer word is no mistyped name, and distances take its length squared
  constexpr std::size_t kShortestStart = 3;
  std::vector<std::string> near;
  if (word.empty() || word.size() > kLongestName) return near;
  const std::string start = bare_form(word);
  std::vector<std::string> longer;
  for (const std::string& candidate : candidates) {
    const std::string bare = bare_form(candidate);
    if (bare == start) keep_first(near, candidate);
    if (start.size() >= kShortestStart && bare.starts_with(start)) longer.push_back(candidate);
  }
  if (!near.empty()) return near;
  // One that was not typed to its end is likelier than one with other letters: of llama3 llama3-70b, not llama-33b, and
  // of head heads, not head_dim.
  const std::string typed = lower_case(word);
  const auto unlikely = [&](const std::string& name) {
    return std::pair(!lower_case(name).starts_with(typed), name.size() > word.size() + 1);
  };
  std::stable_sort(longer.begin(), longer.end(), [&](const auto& a, const auto& b) {
    return std::pair(unlikely(a), a.size()) < std::pair(unlikely(b), b.size());
  });
  std::erase_if(longer, [&, least = longer.empty() ? std::pair(true, true) : unlikely(longer.front())](
                            const auto& name) { return least < unlikely(name); });
  for (const std::string& candidate : longer) keep_first(near, candidate);
  if (!near.empty()) return near;
  std::size_t best = std::numeric_limits<std::size_t>::max() - 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = likeness(word, candidate);
    if (distance > best) continue;
    if (distance < best) near.clear();
    best = distance;
    keep_first(near, candidate);
  }
  return near;
}

std::optional<std::size_t> word_like(std::string_view text, std::span<const std::string_view> words) {
  const auto exact = std::find(words.begin(), words.end(), text);
  if (exact != words.end()) return static_cast<std::size_t>(exact - words.begin());
  const std::string wanted = bare_form(text);
  const auto same = [&](std::string_view word) { return bare_form(word) == wanted; };
  if (wanted.empty() || std::count_if(words.begin(), words.end(), same) != 1) return std::nullopt;
  return static_cast<std::size_t>(std::find_if(words.begin(), words.end(), same) - words.begin());
}

std::string did_you_mean(const std::vector<std::string>& names) {
  if (names.empty()) return "";
  std::string out = "did you mean ";
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) out += i + 1 == names.size() ? " or " : ", ";
    out += "'" + names[i] + "'";
  }
  return out + "?";
}

char32_t next_code_point(std::string_view& rest) {
  char32_t value = 0;
  const std::size_t length = decode(rest, value);
  rest.remove_prefix(std::max<std::size_t>(length, 1));
  return length == 0 ? U'\uFFFD' : value;
}

std::size_t invalid_utf8_at(std::string_view text) {
  char32_t value = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = decode(text.substr(at), value);
    if (length == 0) return at;
    at += length;
  }
  return std::string_view::npos;
}

std::size_t count_characters(std::string_view utf8) {
  std::size_t count = 0;
  for (; !utf8.empty(); ++count) next_code_point(utf8);
  return count;
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kMost = 60;
  constexpr std::size_t kKept = 28;
  if (text.size() <= kMost) return "'" + std::string(text) + "'";
  const auto continues = [&](std::size_t at) { return (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U; };
  std::size_t head = kKept;
  while (head > 0 && continues(head)) --head;
  std::size_t tail = text.size() - kKept;
  while (tail < text.size() && continues(tail)) ++tail;
  return "'" + std::string(text.substr(0, head)) + "..." + std::string(text.substr(tail)) + "'";
}

std::size_t display_width(std::string_view utf8) {
  std::size_t width = 0;
  while (!utf8.empty()) {
    if (utf8.front() >= ' ' && utf8.front() <= '~') {  // most of what is shown
      utf8.remove_prefix(1);
      ++width;
      continue;
    }
    const char32_t c = next_code_point(utf8);
    if (within(c, kZeroWidth)) continue;
    width += within(c, kDoubleWidth) ? 2U : 1U;
  }
  return width;
}

namespace {

/// 57, 4,096, 1.16, $24.9, (50: a number that a unit follows, and no more of the sentence.
bool is_number(std::string_view word) {
  const std::size_t first = word.find_first_not_of("($+-<>~");
  if (first == std::string_view::npos) return false;
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const std::string_view rest = word.substr(first);
  return digit(rest.front()) && digit(rest.back()) &&
         std::all_of(rest.begin(), rest.end(), [&](char c) { return digit(c) || c == '.' || c == ','; });
}

/// The first word of the text, and the words that are not to part from it.
std::string_view first_piece(std::string_view text) {
  std::size_t begin = 0;
  for (;;) {
    const std::size_t end = std::min(text.find_first_of(" \n", begin), text.size());
    const bool goes_on = end + 1 < text.size() && text[end] == ' ' && text[end + 1] != ' ' && text[end + 1] != '\n';
    if (!goes_on || !is_number(text.substr(begin, end - begin))) return text.substr(0, end);
    begin = end + 1;
  }
}

}  // namespace

std::string with_fixed_units(std::string_view text) {
  constexpr std::string_view kNoBreak = "\u00A0";
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(" \n"), text.size());
    out += text.substr(0, end);
    const bool goes_on = end + 1 < text.size() && text[end] == ' ' && text[end + 1] != ' ' && text[end + 1] != '\n';
    if (goes_on && is_number(text.substr(0, end))) {
      out += kNoBreak;
    } else if (end < text.size()) {
      out += text[end];
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string wrap(std::string_view text, std::size_t width, std::size_t indent) {
  std::string out;
  std::size_t column = 0;
  bool line_start = true;
  const auto new_line = [&] {
    out += '\n' + std::string(indent, ' ');
    column = indent;
    line_start = true;
  };
  while (!text.empty()) {
    if (text.front() == '\n') new_line();
    if (text.front() == '\n' || text.front() == ' ') {
      text.remove_prefix(1);
      continue;
    }
    std::string_view word = first_piece(text);
    if (indent + display_width(word) > width) word = text.substr(0, text.find_first_of(" \n"));
    text.remove_prefix(word.size());
    const std::size_t word_width = display_width(word);
    if (!line_start && column + 1 + word_width > width) new_line();
    if (!line_start) out += ' ';
    out += word;
    column += word_width + (line_start ? 0 : 1);
    line_start = false;
  }
  return out;
}

std::string markup_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += static_cast<unsigned char>(c) < ' ' && c != '\n' ? ' ' : c;
    }
  }
  return out;
}

bool contains_in_any_case(std::string_view text, std::string_view part) {
  return lower_case(text).find(lower_case(part)) != std::string::npos;
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), lower);
  return out;
}

std::string join_and(const std::vector<std::string>& items) {
  std::string out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += i + 1 == items.size() ? " and " : ", ";
    out += items[i];
  }
  return out;
}

std::string join(const std::vector<std::string>& items, std::string_view separator) {
  std::string out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += separator;
    out += items[i];
  }
  return out;
}

}  // namespace scalecalc
