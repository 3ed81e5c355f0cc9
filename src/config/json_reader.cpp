// Reads JSON into a tree with places, by recursive descent over the grammar. nlohmann-json would parse, but its events
// do not say where a value stands, and an error in a config.json is useless without its line.
#include "config/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "base/text.h"
#include "config/source_text.h"

namespace scalecalc {
namespace {

constexpr std::string_view kBlank = " \t\r\n";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

/// Where the JSON number that starts at `at` ends, or `at` if none does.
std::size_t number_end(std::string_view text, std::size_t at) {
  const std::size_t start = at;
  const auto digits = [&] {
    const std::size_t first = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    return at > first;
  };
  if (at < text.size() && text[at] == '-') ++at;
  if (at < text.size() && text[at] == '0') {
    ++at;
  } else if (!digits()) {
    return start;
  }
  if (at < text.size() && text[at] == '.') {
    ++at;
    if (!digits()) return start;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    if (!digits()) return start;
  }
  return at;
}

void append_utf8(std::string& out, char32_t c) {
  const auto put = [&](char32_t byte) { out += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0U | (c >> 6U));
    put(0x80U | (c & 0x3FU));
  } else if (c < 0x10000) {
    put(0xE0U | (c >> 12U));
    put(0x80U | ((c >> 6U) & 0x3FU));
    put(0x80U | (c & 0x3FU));
  } else {
    put(0xF0U | (c >> 18U));
    put(0x80U | ((c >> 12U) & 0x3FU));
    put(0x80U | ((c >> 6U) & 0x3FU));
    put(0x80U | (c & 0x3FU));
  }
}

class JsonParser {
 public:
  JsonParser(const SourceText& source, std::size_t most_nodes)
      : source_(source), text_(source.text()), most_nodes_(most_nodes) {}

  ConfigNode document() {
    skip_blank();
    if (at_ == text_.size()) fail(at_, at_, "the document is empty");
    ConfigNode root = value(0);
    skip_blank();
    if (at_ < text_.size()) {
      fail(at_, word_end(at_), fmt::format("unexpected {} after the end of the document", here()),
           "a JSON file holds one value");
    }
    return root;
  }

 private:
  [[noreturn]] void fail(std::size_t begin, std::size_t end, std::string message, std::string hint = "") const {
    throw UserError({{source_.span(begin, std::max(end, begin + 1)), std::move(message), std::move(hint)}});
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  void skip_blank() {
    at_ = std::min(text_.find_first_not_of(kBlank, at_), text_.size());
    if (peek() == '/' || peek() == '#') fail(at_, at_ + 1, "a comment: JSON has none", "take it out, or write YAML");
  }

  std::size_t word_end(std::size_t at) const {
    while (at < text_.size() && is_word(text_[at])) ++at;
    return at;
  }

  /// What stands here, for messages.
  std::string here() const {
    if (at_ >= text_.size()) return "the end of the file";
    const std::size_t end = word_end(at_);
    std::string_view rest = text_.substr(at_);
    if (end == at_) {
      const std::size_t before = rest.size();
      next_code_point(rest);
      return in_quotes(text_.substr(at_, before - rest.size()));
    }
    return in_quotes(text_.substr(at_, end - at_));
  }

  ConfigNode make(ConfigNode::Kind kind, std::size_t begin, std::size_t end) {
    if (++nodes_ > most_nodes_) {
      fail(begin, end, limits::too_many(most_nodes_, "values in one document"), "is this the right file?");
    }
    ConfigNode node;
    node.kind = kind;
    node.span = source_.span(begin, end);
    return node;
  }

  ConfigNode value(std::size_t depth) {
    if (depth >= limits::kTreeLevels) fail(at_, at_ + 1, limits::too_deep(limits::kTreeLevels));
    switch (peek()) {
      case '{': return map(depth);
      case '[': return list(depth);
      case '"': return quoted();
      default: return bare();
    }
  }

  ConfigNode quoted() {
    const std::size_t begin = at_;
    std::string content = string();
    ConfigNode node = make(ConfigNode::Kind::kScalar, begin, at_);
    node.text = std::move(content);
    node.quoted = true;
    return node;
  }

  /// A number or one of JSON's words.
  ConfigNode bare() {
    const std::size_t begin = at_;
    std::size_t end = number_end(text_, begin);
    if (end == begin) {
      constexpr std::array<std::string_view, 6> kWords{"true", "false", "null", "NaN", "Infinity", "-Infinity"};
      const std::size_t stop = word_end(peek() == '-' ? begin + 1 : begin);
      const std::string_view word = text_.substr(begin, stop - begin);
      if (std::find(kWords.begin(), kWords.end(), word) != kWords.end()) end = stop;
    }
    if (end == begin || (end < text_.size() && (is_word(text_[end]) || text_[end] == '.'))) not_a_value();
    at_ = end;
    ConfigNode node = make(ConfigNode::Kind::kScalar, begin, end);
    node.text = text_.substr(begin, end - begin);
    return node;
  }

  [[noreturn]] void not_a_value() const {
    std::size_t end = at_;
    while (end < text_.size() && (is_word(text_[end]) || text_[end] == '.' || text_[end] == '+' || text_[end] == '-')) {
      ++end;
    }
    const std::string_view word = text_.substr(at_, end - at_);
    if (peek() == '\'') fail(at_, at_ + 1, "a single quote: JSON texts stand in double quotes");
    if (word == "True" || word == "False" || word == "None") {
      fail(at_, end, fmt::format("{} is Python, not JSON", in_quotes(word)), "JSON has true, false and null");
    }
    if (word.empty()) fail(at_, at_ + 1, fmt::format("expected a value, found {}", here()));
    fail(at_, end, fmt::format("{} is no JSON value", in_quotes(word)),
         "texts stand in double quotes; numbers are decimal, without leading zeros");
  }

  ConfigNode list(std::size_t depth) {
    const std::size_t opening = at_++;
    ConfigNode node = make(ConfigNode::Kind::kSequence, opening, opening + 1);
    skip_blank();
    if (peek() == ']') {
      ++at_;
      return node;
    }
    for (;;) {
      node.items.push_back(value(depth + 1));
      if (ends(opening, ']')) return node;
    }
  }

  ConfigNode map(std::size_t depth) {
    const std::size_t opening = at_++;
    ConfigNode node = make(ConfigNode::Kind::kMap, opening, opening + 1);
    std::unordered_map<std::string, int> seen;
    skip_blank();
    if (peek() == '}') {
      ++at_;
      return node;
    }
    for (;;) {
      const std::size_t begin = at_;
      if (peek() != '"') not_a_key();
      ConfigNode::Entry entry;
      entry.key = string();
      entry.key_span = source_.span(begin, at_);
      const auto [first, is_new] = seen.emplace(entry.key, entry.key_span.line);
      if (!is_new) {
        fail(begin, at_, fmt::format("duplicate key {}", in_quotes(entry.key)),
             fmt::format("it stands in line {} already", first->second));
      }
      skip_blank();
      if (peek() != ':')
        fail(at_, at_ + 1, fmt::format("expected ':' after {}, found {}", in_quotes(entry.key), here()));
      ++at_;
      skip_blank();
      entry.value = value(depth + 1);
      node.entries.push_back(std::move(entry));
      if (ends(opening, '}')) return node;
    }
  }

  [[noreturn]] void not_a_key() const {
    if (at_ >= text_.size()) fail(at_, at_, "the file ends where a key should stand: a '{' is never closed");
    fail(at_, word_end(at_), fmt::format("expected a key in double quotes, found {}", here()));
  }

  /// After a value: true at the closing bracket, false at a comma with a value behind it.
  bool ends(std::size_t opening, char closing) {
    skip_blank();
    if (peek() == closing) {
      ++at_;
      return true;
    }
    if (at_ >= text_.size())
      fail(opening, opening, fmt::format("the '{}' opened here is never closed", text_[opening]));
    if (peek() != ',') {
      fail(at_, word_end(at_), fmt::format("expected ',' or '{}', found {}", closing, here()),
           fmt::format("the '{}' in line {} is still open", text_[opening], source_.span(opening).line));
    }
    const std::size_t comma = at_++;
    skip_blank();
    if (peek() == closing) fail(comma, comma + 1, fmt::format("JSON allows no comma before '{}'", closing));
    if (at_ >= text_.size())
      fail(opening, opening, fmt::format("the '{}' opened here is never closed", text_[opening]));
    return false;
  }

  std::string string() {
    const std::size_t opening = at_++;
    std::string out;
    for (;;) {
      const std::size_t stop = std::min(text_.find_first_of("\"\\\n", at_), text_.size());
      out += text_.substr(at_, stop - at_);
      at_ = stop;
      if (peek() == '"') break;
      if (peek() != '\\') fail(opening, opening, "the quote opened here is never closed on its line");
      escape(out);
    }
    ++at_;
    const std::size_t control = control_character(opening);
    if (control < at_) {
      fail(control, control,
           fmt::format("a control character (0x{:02x}) in a text", static_cast<unsigned char>(text_[control])),
           "write it as an escape, such as \\t");
    }
    return out;
  }

  std::size_t control_character(std::size_t from) const {
    while (from < at_ && static_cast<unsigned char>(text_[from]) >= 0x20) ++from;
    return from;
  }

  void escape(std::string& out) {
    constexpr std::string_view kLetters = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    const std::size_t begin = at_++;
    const std::size_t letter = kLetters.find(peek());
    if (peek() == 'u') {
      ++at_;
      append_utf8(out, code_point(begin));
    } else if (letter == std::string_view::npos || at_ >= text_.size()) {
      fail(begin, at_ + 1, "unknown escape sequence in a text", "write \\\\ for a backslash");
    } else {
      out += kMeanings[letter];
      ++at_;
    }
  }

  /// Behind "\u": four digits, and four more of a surrogate pair.
  char32_t code_point(std::size_t begin) {
    const char32_t first = four_digits(begin);
    const bool high = first >= 0xD800 && first < 0xDC00;
    if (!high && !(first >= 0xDC00 && first < 0xE000)) return first;
    if (high && text_.substr(at_).starts_with("\\u")) {
      at_ += 2;
      const char32_t second = four_digits(begin);
      if (second >= 0xDC00 && second < 0xE000) return 0x10000 + ((first - 0xD800) << 10U) + (second - 0xDC00);
    }
    fail(begin, at_, "half of a surrogate pair is no character");
  }

  char32_t four_digits(std::size_t begin) {
    char32_t value = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const char c = peek();
      const char lower = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
      if (!is_digit(c) && !(lower >= 'a' && lower <= 'f')) fail(begin, at_, "\\u needs four hexadecimal digits");
      value = value * 16 + static_cast<char32_t>(is_digit(c) ? c - '0' : lower - 'a' + 10);
    }
    return value;
  }

  const SourceText& source_;
  std::string_view text_;
  std::size_t most_nodes_;
  std::size_t at_ = 0;
  std::size_t nodes_ = 0;
};

}  // namespace

ConfigNode read_json(std::string_view text, const std::string& file_name, std::size_t most_nodes) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const SourceText source(text, file_name);
  if (const std::size_t invalid = invalid_utf8_at(text); invalid != std::string_view::npos) {
    throw UserError({{source.span(invalid), "not UTF-8 text", "is this the right file?"}});
  }
  return JsonParser(source, most_nodes).document();
}

bool looks_like_json(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const std::size_t opening = text.find_first_not_of(kBlank);
  if (opening == std::string_view::npos || text[opening] != '{') return false;
  const std::size_t next = text.find_first_not_of(kBlank, opening + 1);
  return next != std::string_view::npos && (text[next] == '"' || text[next] == '}');
}

}  // namespace scalecalc
