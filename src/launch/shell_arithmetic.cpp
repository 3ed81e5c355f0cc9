#include "launch/shell_arithmetic.h"

#include <cctype>
#include <string>

namespace scalecalc {
namespace {

/// Sums and products of whole numbers.
class Arithmetic {
 public:
  explicit Arithmetic(std::string_view text) : text_(text) {}
  std::optional<std::int64_t> value() {
    const auto out = sum();
    skip();
    return at_ == text_.size() ? out : std::nullopt;
  }

 private:
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::optional<std::int64_t> sum() {
    auto out = product();
    while (out) {
      const bool plus = take('+');
      if (!plus && !take('-')) return out;
      const auto right = product();
      if (!right) return std::nullopt;
      out = plus ? *out + *right : *out - *right;
    }
    return out;
  }
  std::optional<std::int64_t> product() {
    auto out = atom();
    while (out) {
      const char op = take('*') ? '*' : take('/') ? '/' : take('%') ? '%' : ' ';
      if (op == ' ') return out;
      const auto right = atom();
      if (!right || (op != '*' && *right == 0)) return std::nullopt;
      out = op == '*' ? *out * *right : op == '/' ? *out / *right : *out % *right;
    }
    return out;
  }
  std::optional<std::int64_t> atom() {
    if (take('(')) {
      const auto out = sum();
      return take(')') ? out : std::nullopt;
    }
    skip();
    std::size_t end = at_;
    while (end < text_.size() && std::isdigit(static_cast<unsigned char>(text_[end])) != 0 && end - at_ < 15) ++end;
    if (end == at_) return std::nullopt;
    const std::int64_t out = std::stoll(std::string(text_.substr(at_, end - at_)));
    at_ = end;
    return out;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<std::int64_t> arithmetic_value(std::string_view text) { return Arithmetic(text).value(); }

}  // namespace scalecalc
