#include "primitives/matmul_notation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"

namespace scalecalc {
namespace {

constexpr std::string_view kForm = "for example \"A[I_X, J_Y] * B[J_Y, K] -> C[I_X, K]\"";

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::optional<DType> dtype_of(std::string_view word) {
  const auto* const found = std::find(kDTypeNames.begin(), kDTypeNames.end(), word);
  if (found == kDTypeNames.end()) return std::nullopt;
  return static_cast<DType>(found - kDTypeNames.begin());
}

/// "bf17" before a bracket is a format mistyped, not an array.
bool looks_like_format(std::string_view word) {
  for (const std::string_view prefix : {"bfloat", "float", "uint", "int", "bf", "fp", "tf"}) {
    if (!word.starts_with(prefix)) continue;
    word.remove_prefix(prefix.size());
    return !word.empty() && std::all_of(word.begin(), word.end(), is_digit);
  }
  return false;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  NotedExpression expression() {
    NotedExpression out;
    out.text = text_;
    out.operands.push_back(array());
    while (true) {
      skip_blanks();
      if (at_end()) break;
      const std::size_t start = at_;
      if (take_any({"->", "→"})) {
        if (out.results.empty()) fail(start, 1, "there is no product before the arrow", std::string(kForm));
        if (out.results.back()) fail(start, 1, "this product has a result already", std::string(kForm));
        out.results.back() = array();
      } else if (take_any({"*", "·", "⋅", "×", "@"})) {
        out.operands.push_back(array());
        out.results.emplace_back();
      } else {
        expected(out.results.empty() || !out.results.back() ? "'*', '->' or the end" : "'*' or the end");
      }
    }
    return out;
  }

 private:
  [[noreturn]] void fail(std::size_t at, std::size_t length, std::string message, std::string hint) const {
    throw UserError({notation_problem(std::string(text_), at, length, std::move(message), std::move(hint))});
  }

  [[noreturn]] void expected(std::string_view what, std::string hint = std::string(kForm)) const {
    if (at_end()) fail(text_.size(), 1, fmt::format("the expression ends where {} was expected", what), hint);
    std::string_view rest = text_.substr(at_);
    next_code_point(rest);
    const std::size_t length = text_.size() - at_ - rest.size();
    fail(at_, length, fmt::format("{} stands where {} was expected", in_quotes(text_.substr(at_, length)), what), hint);
  }

  bool at_end() const { return at_ >= text_.size(); }
  char here() const { return at_end() ? '\0' : text_[at_]; }
  void skip_blanks() {
    while (here() == ' ' || here() == '\t' || here() == '\n') ++at_;
  }
  bool take(std::string_view symbol) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(symbol)) return false;
    at_ += symbol.size();
    return true;
  }
  bool take_any(std::initializer_list<std::string_view> symbols) {
    return std::any_of(symbols.begin(), symbols.end(), [&](std::string_view s) { return take(s); });
  }

  /// Letters and digits, and underscores where a name may have them.
  NotedWord word(bool underscores) {
    NotedWord out{"", at_};
    while (is_letter(here()) || is_digit(here()) || (underscores && here() == '_')) out.text += text_[at_++];
    return out;
  }

  /// [format] [name] [:] [format] '[' dimensions ']' [partial sums]
  NotedArray array() {
    NotedArray out;
    skip_blanks();
    if (!is_letter(here()) && here() != '[') expected("an array such as A[I_X, J]");
    NotedWord first = word(true);
    out.dtype = dtype_of(first.text);
    if (!out.dtype && looks_like_format(first.text)) unknown_format(first);
    if (!out.dtype) out.name = std::move(first);
    if (!take(":") && out.dtype) {
      skip_blanks();
      out.name = word(true);
    } else {
      format_after(out);
    }
    if (!take("[")) expected("'['", "the dimensions of an array stand in brackets: A[I_X, J]");
    dimensions(out);
    if (take("{")) partial_sums(out);
    return out;
  }

  /// The format of "A: int8[I, J]".
  void format_after(NotedArray& out) {
    skip_blanks();
    const NotedWord found = word(true);
    if (found.text.empty()) return;
    const std::optional<DType> dtype = dtype_of(found.text);
    if (!dtype || out.dtype) unknown_format(found);
    out.dtype = dtype;
  }

  [[noreturn]] void unknown_format(const NotedWord& word) const {
    const std::vector<std::string> known(kDTypeNames.begin(), kDTypeNames.end());
    const std::string near = did_you_mean(nearest(word.text, known));
    fail(word.at, word.text.size(), fmt::format("{} is no number format", in_quotes(word.text)),
         fmt::format("{}{}formats: {}", near, near.empty() ? "" : " ", join(known, ", ")));
  }

  void dimensions(NotedArray& out) {
    if (take("]")) return;  // a scalar
    while (true) {
      skip_blanks();
      if (!is_letter(here())) expected("the name of a dimension", "a dimension starts with a letter: A[I_X, J]");
      NotedDimension dim{word(false), {}};
      if (here() == '_') {
        ++at_;
        dim.axes = axes();
      }
      out.dims.push_back(std::move(dim));
      if (take("]")) return;
      if (here() == '_') expected("',' or ']'", "several axes are written I_XY or I_{X,Y}");
      if (!take(",")) expected("',' or ']'");
    }
  }

  /// Behind the underscore: XY, {XY} or {X,Y}.
  std::vector<NotedWord> axes() {
    std::vector<NotedWord> out;
    const bool braces = take("{");
    while (true) {
      if (braces) skip_blanks();
      NotedWord axis = word(false);
      if (axis.text.empty()) expected("the name of a mesh axis", "a dimension cut over axis X is written I_X");
      out.push_back(std::move(axis));
      if (!braces || take("}")) return out;
      if (!take(",")) expected("',' or '}'");
    }
  }

  void partial_sums(NotedArray& out) {
    skip_blanks();
    if (!take("U_")) expected("'U_'", "partial sums over axis X are written {U_X}");
    out.partial = axes();
    if (!take("}")) expected("'}'", "partial sums over axis X are written {U_X}");
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

NotedExpression parse_notation(std::string_view text) { return Parser(text).expression(); }

Diagnostic notation_problem(const std::string& expression, std::size_t at, std::size_t length, std::string message,
                            std::string hint) {
  SourceSpan where;
  where.file = "<command line>";
  where.line_text = expression;
  where.column = static_cast<int>(count_characters(std::string_view(expression).substr(0, at))) + 1;
  where.length = static_cast<int>(std::max<std::size_t>(
      1, count_characters(std::string_view(expression).substr(std::min(at, expression.size()), length))));
  return {std::move(where), std::move(message), std::move(hint)};
}

}  // namespace scalecalc
