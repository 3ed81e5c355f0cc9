// Splits Python into statements and functions without running it, for recipes of frameworks.
#include "launch/python_lines.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace scalecalc {
namespace {

constexpr std::size_t kNowhere = std::string_view::npos;

bool is_open(char c) { return c == '(' || c == '[' || c == '{'; }
bool is_close(char c) { return c == ')' || c == ']' || c == '}'; }
bool is_blank(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

/// Behind the quotes that close a text; a text in single quotes ends with its line.
std::size_t text_end(std::string_view text, std::size_t at) {
  const std::string quotes(text.substr(at, 3) == std::string(3, text[at]) ? 3 : 1, text[at]);
  for (std::size_t i = at + quotes.size(); i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text.substr(i).starts_with(quotes)) {
      return i + quotes.size();
    } else if (text[i] == '\n' && quotes.size() == 1) {
      return i;
    }
  }
  return text.size();
}

/// Statements of a text of code, one after another.
class Lines {
 public:
  explicit Lines(std::string_view code) : code_(code) {}

  std::vector<PythonLine> read() {
    std::size_t begin = 0, depth = 0;
    bool fresh = true;  // not behind a semicolon
    for (std::size_t at = 0; at <= code_.size(); ++at) {
      const char c = at < code_.size() ? code_[at] : '\n';
      if (is_open(c)) ++depth;
      if (is_close(c) && depth > 0) --depth;
      if (at < code_.size() && (depth > 0 || (c != '\n' && c != ';'))) continue;
      add(begin, at, fresh);
      fresh = c == '\n';
      begin = at + 1;
    }
    return std::move(out_);
  }

 private:
  void add(std::size_t begin, std::size_t end, bool fresh) {
    const std::size_t start = begin;
    while (begin < end && is_blank(code_[begin])) ++begin;
    while (end > begin && is_blank(code_[end - 1])) --end;
    if (begin == end) return;
    const std::size_t indent = fresh || out_.empty() ? begin - start : out_.back().indent;
    const std::size_t inside = behind_header(begin, end);
    out_.push_back({begin, inside, indent});
    std::size_t rest = inside;
    while (rest < end && is_blank(code_[rest])) ++rest;
    if (rest < end) out_.push_back({rest, end, indent + 1});
  }

  /// Behind the colon of "if x: y = 1"; the end of any other statement.
  std::size_t behind_header(std::size_t begin, std::size_t end) const {
    constexpr std::array<std::string_view, 11> kBlocks{"def",  "if",  "elif",   "else",    "for",  "while",
                                                       "with", "try", "except", "finally", "class"};
    const std::string_view first = python_name(code_, begin);
    if (std::find(kBlocks.begin(), kBlocks.end(), first) == kBlocks.end()) return end;
    std::size_t depth = 0;
    for (std::size_t at = begin; at < end; ++at) {
      if (is_open(code_[at])) ++depth;
      if (is_close(code_[at]) && depth > 0) --depth;
      if (code_[at] == ':' && depth == 0 && (at + 1 == end || code_[at + 1] != '=')) return at + 1;
    }
    return end;
  }

  std::string_view code_;
  std::vector<PythonLine> out_;
};

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

bool is_python_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::string_view python_name(std::string_view code, std::size_t at) {
  const std::size_t begin = std::min(at, code.size());
  std::size_t end = begin;
  while (end < code.size() && is_python_name(code[end])) ++end;
  return code.substr(begin, end - begin);
}

std::size_t python_word(std::string_view code, std::string_view name, std::size_t from) {
  for (std::size_t at = code.find(name, from); at != kNowhere; at = code.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    const bool begins = at == 0 || (!is_python_name(code[at - 1]) && code[at - 1] != '.');
    if (begins && (end == code.size() || !is_python_name(code[end]))) return at;
  }
  return kNowhere;
}

std::string python_code(std::string_view text) {
  std::string out(text);
  const auto blank = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) out[i] = ' ';
  };
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    const char c = text[at];
    if (c == '#') {
      end = std::min(text.find('\n', at), text.size());
      blank(at, end);
    } else if (c == '"' || c == '\'') {
      end = text_end(text, at);
      blank(at + 1, end - 1);
    } else if (c == '\\' || c == '\r' || c == '\t') {
      if (c == '\\' && text.substr(end).starts_with("\r\n")) ++end;
      if (c == '\\' && end < text.size() && text[end] == '\n') ++end;
      blank(at, end);
    }
    at = end;
  }
  return out;
}

std::vector<PythonFunction> python_functions(const std::string& code) {
  std::vector<PythonFunction> out;
  PythonFunction outside;
  bool in_function = false;
  for (const PythonLine& line : Lines(code).read()) {
    const std::string_view text = std::string_view(code).substr(line.begin, line.end - line.begin);
    if (line.indent == 0) {
      in_function = text.starts_with("def ");
      if (in_function) {
        std::size_t name_at = line.begin + 4;
        while (name_at < line.end && is_blank(code[name_at])) ++name_at;
        out.push_back({.name = python_name(code, name_at), .header = text, .name_at = name_at});
        continue;
      }
    }
    (in_function ? out.back() : outside).lines.push_back(line);
  }
  out.push_back(std::move(outside));
  return out;
}

std::optional<PythonAssignment> python_assignment(std::string_view code, const PythonLine& line) {
  std::size_t depth = 0, equals = kNowhere, colon = kNowhere;
  for (std::size_t at = line.begin; at < line.end; ++at) {
    const char c = code[at];
    if (is_open(c)) ++depth;
    if (is_close(c) && depth > 0) --depth;
    if (depth > 0) continue;
    if (c == ':' && colon == kNowhere && equals == kNowhere) colon = at;
    const char before = at > line.begin ? code[at - 1] : ' ';
    const char behind = at + 1 < line.end ? code[at + 1] : ' ';
    if (c == '=' && behind != '=' && std::string_view("=!<>:").find(before) == kNowhere) equals = at;
  }
  if (equals == kNowhere) return std::nullopt;
  PythonAssignment out{.target = code.substr(line.begin, std::min(equals, colon) - line.begin), .value = equals + 1};
  while (!out.target.empty() && std::string_view("+-*/%&|^@").find(out.target.back()) != kNowhere) {
    out.target.remove_suffix(1);
    out.plain = false;
  }
  out.target = without_blanks(out.target);
  while (out.value < line.end && is_blank(code[out.value])) ++out.value;
  return out;
}

std::size_t python_closing(std::string_view code, std::size_t opens) {
  std::size_t depth = 0;
  for (std::size_t at = opens; at < code.size(); ++at) {
    if (is_open(code[at])) ++depth;
    if (is_close(code[at]) && --depth == 0) return at;
  }
  return kNowhere;
}

std::size_t python_comma(std::string_view code, std::size_t at, std::size_t end) {
  std::size_t depth = 0;
  for (; at < end; ++at) {
    if (is_open(code[at])) ++depth;
    if (is_close(code[at]) && depth > 0) --depth;
    if (code[at] == ',' && depth == 0) return at;
  }
  return end;
}

}  // namespace scalecalc
