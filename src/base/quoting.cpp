// Quotes and escapes texts of unknown origin for terminals and shells, so that a name in a file cannot run or hide
// anything.
#include "base/quoting.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace scalecalc {
namespace {

bool is_control(char32_t c) { return c < 0x20 || (c >= 0x7F && c < 0xA0); }

/// Marks that make what follows be shown from right to left, or end it: a line would read otherwise than it is.
bool turns_direction(char32_t c) {
  return (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) || c == 0x200E || c == 0x200F;
}

bool is_plain_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c < 0x7F; });
}

std::string printable_but(std::string_view text, char32_t kept) {
  if (is_plain_ascii(text)) return std::string(text);
  std::string out;
  while (!text.empty()) {
    const std::string_view before = text;
    const char32_t c = next_code_point(text);
    const bool invalid = c == U'\uFFFD' && before.size() - text.size() == 1;
    if (invalid) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(before.front())));
    } else if (is_control(c) && c != kept) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    } else if (turns_direction(c)) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += before.substr(0, before.size() - text.size());
    }
  }
  return out;
}

bool is_plain_word(std::string_view word) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_./=:,+%@").find(c) != std::string_view::npos;
  };
  return !word.empty() && std::all_of(word.begin(), word.end(), plain);
}

}  // namespace

std::string printable(std::string_view text) { return printable_but(text, 0xFFFF'FFFF); }

std::string printable_lines(std::string_view text) { return printable_but(text, U'\n'); }

std::string shell_quoted(std::string_view word) {
  if (is_plain_word(word)) return std::string(word);
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

std::vector<std::string> shell_words(std::string_view line) {
  std::vector<std::string> out;
  char quote = 0;
  bool open = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    char c = line[i];
    if (quote == 0 && c == ' ') {
      open = false;
      continue;
    }
    if (!open) out.emplace_back();
    open = true;
    if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else {
      if (quote == 0 && c == '\\' && i + 1 < line.size()) c = line[++i];
      out.back() += c;
    }
  }
  return out;
}

std::string shell_quoted_line(std::string_view word) {
  if (printable(word) == word && word.find("\u2028") == word.npos && word.find("\u2029") == word.npos) {
    return shell_quoted(word);
  }
  std::string out = "$'";
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\'' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < ' ' || byte >= 0x7F) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(byte));
    } else {
      out += c;
    }
  }
  return out + "'";
}

}  // namespace scalecalc
