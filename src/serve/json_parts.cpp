// Splits a JSON map or list into its direct members without parsing what is inside, for long traces.
#include "serve/json_parts.h"

#include <algorithm>

namespace scalecalc {
namespace {

/// One past a string that opens at `at`; npos if it never ends.
std::size_t string_end(std::string_view text, std::size_t at) {
  for (std::size_t i = at + 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

std::size_t value_end(std::string_view text, std::size_t at) {
  if (text[at] == '"') return string_end(text, at);
  if (text[at] != '{' && text[at] != '[') return std::min(text.find_first_of(",]} \t\r\n", at), text.size());
  int depth = 0;
  for (std::size_t i = at; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      i = string_end(text, i);
      if (i == std::string_view::npos) return i;
      --i;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

}  // namespace

const JsonPart* JsonParts::find(std::string_view key) const {
  const auto at = std::find_if(parts.begin(), parts.end(), [&](const JsonPart& p) { return p.key == key; });
  return at == parts.end() ? nullptr : &*at;
}

std::size_t skip_blanks(std::string_view text, std::size_t at) {
  return std::min(text.find_first_not_of(" \t\r\n", at), text.size());
}

std::optional<JsonParts> json_parts(std::string_view text, std::size_t begin) {
  if (begin >= text.size() || (text[begin] != '{' && text[begin] != '[')) return std::nullopt;
  JsonParts out{.is_map = text[begin] == '{'};
  const char close = out.is_map ? '}' : ']';
  std::size_t at = skip_blanks(text, begin + 1);
  while (at < text.size()) {
    if (text[at] == close && out.parts.empty()) {
      out.end = at + 1;
      return out;
    }
    JsonPart part{.key_at = at};
    if (out.is_map) {
      if (text[at] != '"') return std::nullopt;
      const std::size_t end = string_end(text, at);
      if (end == std::string_view::npos) return std::nullopt;
      part.key = text.substr(at + 1, end - at - 2);
      at = skip_blanks(text, end);
      if (at >= text.size() || text[at] != ':') return std::nullopt;
      at = skip_blanks(text, at + 1);
      if (at >= text.size()) return std::nullopt;
    }
    part.begin = at;
    part.end = value_end(text, at);
    if (part.end == std::string_view::npos || part.end == part.begin) return std::nullopt;
    out.parts.push_back(part);
    at = skip_blanks(text, part.end);
    if (at >= text.size()) return std::nullopt;
    if (text[at] == close) {
      out.end = at + 1;
      return out;
    }
    if (text[at] != ',') return std::nullopt;
    at = skip_blanks(text, at + 1);
  }
  return std::nullopt;
}

std::int64_t json_characters(std::string_view written) {
  std::int64_t out = 0;
  for (std::size_t i = 0; i < written.size(); ++i) {
    const auto byte = static_cast<unsigned char>(written[i]);
    if (byte == '\\' && i + 1 < written.size()) {
      const bool unicode = written[i + 1] == 'u';
      // The second half of a surrogate pair, \uDC00 to \uDFFF, belongs to the first.
      const bool second = unicode && i + 3 < written.size() && (written[i + 2] == 'D' || written[i + 2] == 'd') &&
                          std::string_view("cdefCDEF").find(written[i + 3]) != std::string_view::npos;
      i += unicode ? 5 : 1;
      out += second ? 0 : 1;
    } else if ((byte & 0xC0U) != 0x80U) {
      ++out;
    }
  }
  return out;
}

}  // namespace scalecalc
