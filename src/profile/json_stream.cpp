// Reads JSON of any size value by value, for recordings that are too large to keep in memory.
#include "profile/json_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/diagnostic.h"
#include "base/limits.h"
#include "base/text.h"

namespace scalecalc {
namespace {

constexpr std::size_t kPiece = 1 << 20;

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
bool is_bare(char c) {
  return (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '+' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

std::size_t digits_end(std::string_view text, std::size_t at) {
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
  return at;
}

bool is_json_number(std::string_view text) {
  std::size_t at = text.starts_with('-') ? 1 : 0;
  std::size_t end = digits_end(text, at);
  if (end == at || (text[at] == '0' && end > at + 1)) return false;
  if (end < text.size() && text[end] == '.') {
    at = end + 1;
    end = digits_end(text, at);
    if (end == at) return false;
  }
  if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    at = end + 1;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    end = digits_end(text, at);
    if (end == at) return false;
  }
  return end == text.size();
}

bool is_json_word(std::string_view text) {
  constexpr std::array<std::string_view, 6> kWords{"true", "false", "null", "NaN", "Infinity", "-Infinity"};
  return std::find(kWords.begin(), kWords.end(), text) != kWords.end();
}

void append_code_point(std::string& out, std::uint32_t c) {
  const auto put = [&](std::uint32_t byte) { out += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (c < 0x80) return put(c);
  if (c < 0x800) {
    put(0xC0U | (c >> 6U));
  } else if (c < 0x10000) {
    put(0xE0U | (c >> 12U));
    put(0x80U | ((c >> 6U) & 0x3FU));
  } else {
    put(0xF0U | (c >> 18U));
    put(0x80U | ((c >> 12U) & 0x3FU));
    put(0x80U | ((c >> 6U) & 0x3FU));
  }
  put(0x80U | (c & 0x3FU));
}

}  // namespace

JsonStream::JsonStream(ByteSource& source) : source_(source), buffer_(kPiece) {
  std::size_t keep = 0;
  refill(keep);
  if (std::string_view(buffer_.data(), end_).starts_with("\xEF\xBB\xBF")) at_ = 3;
}

bool JsonStream::refill(std::size_t& keep) {
  const std::size_t from = std::min(keep, token_);
  const std::size_t left = end_ - from;
  for (const char* p = buffer_.data(); from > 0;) {
    const std::size_t rest = from - static_cast<std::size_t>(p - buffer_.data());
    p = rest == 0 ? nullptr : static_cast<const char*>(std::memchr(p, '\n', rest));
    if (p == nullptr) break;
    ++p;
    ++lines_;
    line_start_ = dropped_ + static_cast<std::size_t>(p - buffer_.data());
  }
  std::memmove(buffer_.data(), buffer_.data() + from, left);
  dropped_ += from;
  at_ -= from;
  keep -= from;
  token_ -= from;
  end_ = left;
  if (left == buffer_.size()) {
    if (left > limits::kStreamedText) fail("a text " + limits::too_large(limits::kStreamedText), "is this a profile?");
    buffer_.resize(2 * left);
  }
  const std::size_t got = source_.read(buffer_.data() + end_, buffer_.size() - end_);
  end_ += got;
  return got > 0;
}

void JsonStream::fail(const std::string& message, const std::string& hint) const {
  std::uint64_t line = lines_ + 1;
  std::uint64_t start = line_start_;
  for (std::size_t i = 0; i < std::min(token_, end_); ++i) {
    if (buffer_[i] != '\n') continue;
    ++line;
    start = dropped_ + i + 1;
  }
  const auto place = [](std::uint64_t n) { return static_cast<int>(std::min<std::uint64_t>(n, 2'000'000'000)); };
  throw UserError({Diagnostic{
      SourceSpan{.file = source_.path(), .line = place(line), .column = place(dropped_ + token_ - start + 1)},
      fmt::format("{} (byte {})", message, dropped_ + token_), hint}});
}

void JsonStream::unexpected(const char* wanted) const {
  constexpr const char* kAgain = "copy or record it again: nothing of a damaged file is used";
  if (at_ >= end_) fail(fmt::format("the file ends where {} should stand: it was cut off", wanted), kAgain);
  std::string_view rest(buffer_.data() + at_, std::min<std::size_t>(end_ - at_, 4));
  const std::size_t before = rest.size();
  const std::string_view found = rest;
  next_code_point(rest);
  fail(fmt::format("expected {}, found {}", wanted, in_quotes(found.substr(0, before - rest.size()))), kAgain);
}

void JsonStream::blanks() {
  for (;;) {
    while (at_ < end_ && is_blank(buffer_[at_])) ++at_;
    token_ = at_;
    if (at_ < end_) return;
    std::size_t keep = at_;
    if (!refill(keep)) return;
  }
}

char JsonStream::peek() {
  blanks();
  return at_ < end_ ? buffer_[at_] : '\0';
}

void JsonStream::open(char bracket) {
  if (peek() != bracket) unexpected(bracket == '{' ? "an object" : "a list");
  if (++depth_ > limits::kStreamLevels) fail(limits::too_deep(limits::kStreamLevels));
  ++at_;
}

bool JsonStream::closes(char bracket) {
  if (peek() != bracket) return false;
  ++at_;
  --depth_;
  return true;
}

bool JsonStream::ends(char opening, char closing) {
  if (closes(closing)) return true;
  if (peek() != ',') unexpected(opening == '{' ? "',' or '}'" : "',' or ']'");
  ++at_;
  if (peek() == closing) fail(fmt::format("JSON allows no comma before '{}'", closing));
  return false;
}

void JsonStream::key(std::string& out) {
  if (peek() != '"') unexpected("a key in double quotes");
  out = text();
  if (peek() != ':') unexpected("':'");
  ++at_;
}

/// What stands between the quotes.
std::string_view JsonStream::quoted_as_written() {
  std::size_t start = at_ + 1;
  std::size_t i = start;
  bool wide = false;
  for (;;) {
    while (i < end_) {
      const auto c = static_cast<unsigned char>(buffer_[i]);
      if (c == '"' || c == '\\' || c < 0x20) break;
      wide |= c >= 0x80;
      ++i;
    }
    if (i >= end_ || (buffer_[i] == '\\' && i + 1 >= end_)) {
      const std::size_t length = i - start;
      if (!refill(start)) {
        at_ = end_;
        unexpected("the end of a text");
      }
      i = start + length;
      continue;
    }
    if (buffer_[i] == '"') break;
    if (buffer_[i] != '\\') {
      token_ = i;
      fail(fmt::format("a control character (0x{:02x}) in a text", static_cast<unsigned char>(buffer_[i])));
    }
    i += 2;
  }
  const std::string_view inside(buffer_.data() + start, i - start);
  if (wide && invalid_utf8_at(inside) != std::string_view::npos) fail("a text that is not UTF-8");
  at_ = i + 1;
  return inside;
}

void JsonStream::unescape(std::string_view inside) {
  constexpr std::string_view kLetters = "\"\\/bfnrt";
  constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  unescaped_.clear();
  const auto four = [&](std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = at; i < at + 4; ++i) {
      const char c = i < inside.size() ? inside[i] : ' ';
      const char lower = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
      const bool digit = c >= '0' && c <= '9';
      if (!digit && !(lower >= 'a' && lower <= 'f')) fail("\\u needs four hexadecimal digits");
      value = value * 16 + static_cast<std::uint32_t>(digit ? c - '0' : lower - 'a' + 10);
    }
    return value;
  };
  for (std::size_t i = 0; i < inside.size(); ++i) {
    if (inside[i] != '\\') {
      unescaped_ += inside[i];
      continue;
    }
    const char letter = inside[++i];
    if (letter == 'u') {
      std::uint32_t c = four(i + 1);
      i += 4;
      if (c >= 0xD800 && c < 0xE000) {
        const std::uint32_t low = inside.substr(i + 1).starts_with("\\u") ? four(i + 3) : 0;
        if (c >= 0xDC00 || low < 0xDC00 || low >= 0xE000) fail("half of a surrogate pair is no character");
        c = 0x10000 + ((c - 0xD800) << 10U) + (low - 0xDC00);
        i += 6;
      }
      append_code_point(unescaped_, c);
    } else {
      const std::size_t known = kLetters.find(letter);
      if (known == std::string_view::npos) fail("unknown escape sequence in a text");
      unescaped_ += kMeanings[known];
    }
  }
}

std::string_view JsonStream::text() {
  if (peek() != '"') unexpected("a text");
  const std::string_view inside = quoted_as_written();
  if (inside.find('\\') == std::string_view::npos) return inside;
  unescape(inside);
  return unescaped_;
}

std::string_view JsonStream::bare() {
  peek();
  std::size_t start = at_;
  std::size_t i = at_;
  for (;;) {
    while (i < end_ && is_bare(buffer_[i])) ++i;
    if (i < end_) break;
    const std::size_t length = i - start;
    const bool more = refill(start);
    i = start + length;
    if (!more) break;
  }
  const std::string_view out(buffer_.data() + start, i - start);
  if (!is_json_number(out) && !is_json_word(out)) {
    if (out.empty()) unexpected("a value");
    fail(fmt::format("{} is no JSON value", in_quotes(out)));
  }
  at_ = i;
  return out;
}

std::string_view JsonStream::scalar() {
  const char c = peek();
  if (c == '"') return text();
  if (c != '{' && c != '[') return bare();
  skip();
  return {};
}

void JsonStream::put(std::string* out, std::string_view piece, std::size_t most) const {
  if (out == nullptr) return;
  if (out->size() + piece.size() > most) fail(fmt::format("a value of more than {} bytes", most));
  *out += piece;
}

// Whose members are skipped is its own loop: a key need not be kept.
void JsonStream::value(std::string* out, std::size_t most) {
  const char first = peek();
  if (first == '"') {
    const std::string_view inside = quoted_as_written();
    if (inside.find('\\') != std::string_view::npos) unescape(inside);
    put(out, "\"", most);
    put(out, inside, most);
    return put(out, "\"", most);
  }
  if (first != '{' && first != '[') return put(out, bare(), most);
  const char closing = first == '{' ? '}' : ']';
  open(first);
  put(out, {&first, 1}, most);
  if (!closes(closing)) {
    for (;;) {
      if (first == '{') {
        if (peek() != '"') unexpected("a key in double quotes");
        value(out, most);
        if (peek() != ':') unexpected("':'");
        ++at_;
        put(out, ":", most);
      }
      value(out, most);
      if (ends(first, closing)) break;
      put(out, ",", most);
    }
  }
  put(out, {&closing, 1}, most);
}

void JsonStream::skip() { value(nullptr, 0); }

void JsonStream::raw(std::string& out, std::size_t most) {
  out.clear();
  value(&out, most);
}

void JsonStream::finish() {
  peek();
  if (at_ < end_) unexpected("the end of the file");
}

}  // namespace scalecalc
