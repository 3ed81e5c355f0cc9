// Evaluates the arithmetic of bash in launch scripts (its manual, "Shell Arithmetic"): numbers of any base, operators
// by their rank in C, 64 bits that wrap around without a word, and what is not evaluated may divide by 0.
#include "launch/shell_arithmetic.h"

#include <array>
#include <limits>

#include "base/limits.h"

namespace scalecalc {
namespace {

struct ShellOperator {
  std::string_view sign;
  int rank = 0;
};
/// The longest first, so that "<<" is not "<".
constexpr std::array kOperators{
    ShellOperator{"**", 11}, ShellOperator{"||", 1}, ShellOperator{"&&", 2}, ShellOperator{"==", 6},
    ShellOperator{"!=", 6},  ShellOperator{"<=", 7}, ShellOperator{">=", 7}, ShellOperator{"<<", 8},
    ShellOperator{">>", 8},  ShellOperator{"|", 3},  ShellOperator{"^", 4},  ShellOperator{"&", 5},
    ShellOperator{"<", 7},   ShellOperator{">", 7},  ShellOperator{"+", 9},  ShellOperator{"-", 9},
    ShellOperator{"*", 10},  ShellOperator{"/", 10}, ShellOperator{"%", 10}};
constexpr int kPowerRank = 11;

std::int64_t wrapped(std::uint64_t value) { return static_cast<std::int64_t>(value); }
std::uint64_t bits(std::int64_t value) { return static_cast<std::uint64_t>(value); }

std::int64_t power(std::int64_t base, std::int64_t exponent) {
  std::uint64_t out = 1;
  for (std::uint64_t square = bits(base), left = bits(exponent); left > 0; left >>= 1U, square *= square) {
    if ((left & 1U) != 0) out *= square;
  }
  return wrapped(out);
}

int digit_of(char c, int base) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'z') return c - 'a' + 10;
  if (c >= 'A' && c <= 'Z') return c - 'A' + (base <= 36 ? 10 : 36);
  return c == '@' ? 62 : c == '_' ? 63 : std::numeric_limits<int>::max();
}

class Arithmetic {
 public:
  explicit Arithmetic(std::string_view text) : text_(text) {}

  ShellNumber read() {
    skip();
    if (at_ == text_.size()) return {0, {}};  // $(( )) is 0
    const std::int64_t value = conditional();
    skip();
    if (at_ < text_.size()) open_ = true;
    if (too_deep_) return {std::nullopt, limits::too_deep(limits::kTreeLevels), true};
    if (open_) return {};
    return {problem_.empty() ? std::optional(value) : std::nullopt, problem_};
  }

 private:
  void skip() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::int64_t leave_open() {
    open_ = true;
    at_ = text_.size();  // nothing behind it is read
    return 0;
  }
  /// Whether one more level is too many, the number in the innermost one counted; who asks takes it back.
  bool too_deep() {
    if (++depth_ <= limits::kTreeLevels + 1) return false;
    too_deep_ = true;
    leave_open();
    return true;
  }

  std::int64_t conditional() {
    const std::int64_t asked = binary(1);
    if (!take('?')) return asked;
    if (too_deep()) return 0;
    const std::int64_t yes = if_evaluated(asked != 0, [&] { return conditional(); });
    if (!take(':')) return leave_open();
    const std::int64_t no = if_evaluated(asked == 0, [&] { return conditional(); });
    --depth_;
    return asked != 0 ? yes : no;
  }

  template <class Read>
  std::int64_t if_evaluated(bool evaluated, const Read& read) {
    const int before = skipped_;
    skipped_ += evaluated ? 0 : 1;
    const std::int64_t out = read();
    skipped_ = before;
    return out;
  }

  const ShellOperator* next_operator(int least) {
    skip();
    const std::string_view rest = text_.substr(at_);
    for (const ShellOperator& each : kOperators) {
      if (!rest.starts_with(each.sign)) continue;
      const std::string_view behind = rest.substr(each.sign.size());
      const bool compares = each.rank == 6 || each.rank == 7;
      const bool assigns = behind.starts_with('=') && !behind.starts_with("==") && !compares;
      if (assigns) leave_open();
      return assigns || each.rank < least ? nullptr : &each;
    }
    return nullptr;
  }

  std::int64_t binary(int least) {
    std::int64_t left = unary();
    while (const ShellOperator* found = next_operator(least)) {
      at_ += found->sign.size();
      const bool asked = found->rank == 1 ? left == 0 : found->rank == 2 ? left != 0 : true;
      const bool right_first = found->rank == kPowerRank;
      if (right_first && too_deep()) return 0;
      const std::int64_t right = if_evaluated(asked, [&] { return binary(found->rank + (right_first ? 0 : 1)); });
      if (right_first) --depth_;
      left = combined(found->sign, left, right);
    }
    return left;
  }

  std::int64_t combined(std::string_view sign, std::int64_t a, std::int64_t b) {
    constexpr std::uint64_t kShift = 63;
    if (sign == "+") return wrapped(bits(a) + bits(b));
    if (sign == "-") return wrapped(bits(a) - bits(b));
    if (sign == "*") return wrapped(bits(a) * bits(b));
    if (sign == "/" || sign == "%") {
      if (b == 0 && skipped_ == 0) return fail("division by 0");
      if (b == 0) b = 1;  // as in bash, where it is not evaluated
      // The one quotient that 64 bits do not hold is the dividend again.
      if (b == -1) return sign == "/" ? wrapped(0 - bits(a)) : 0;
      return sign == "/" ? a / b : a % b;
    }
    if (sign == "**") return b < 0 ? fail("exponent less than 0") : power(a, b);
    if (sign == "<<") return wrapped(bits(a) << (bits(b) & kShift));
    if (sign == ">>") return a >> (bits(b) & kShift);
    if (sign == "&") return a & b;
    if (sign == "|") return a | b;
    if (sign == "^") return a ^ b;
    const bool holds = sign == "=="   ? a == b
                       : sign == "!=" ? a != b
                       : sign == "<=" ? a <= b
                       : sign == ">=" ? a >= b
                       : sign == "<"  ? a < b
                       : sign == ">"  ? a > b
                       : sign == "&&" ? a != 0 && b != 0
                                      : a != 0 || b != 0;
    return holds ? 1 : 0;
  }

  std::int64_t fail(const char* why) {
    if (problem_.empty()) problem_ = why;
    return 0;
  }

  std::int64_t unary() {
    if (too_deep()) return 0;
    std::int64_t out = 0;
    if (take('-')) {
      out = wrapped(0 - bits(unary()));
    } else if (take('+')) {
      out = unary();
    } else if (take('!')) {
      out = unary() == 0 ? 1 : 0;
    } else if (take('~')) {
      out = ~unary();
    } else if (take('(')) {
      out = conditional();
      if (!take(')')) return leave_open();
    } else {
      out = number();
    }
    --depth_;
    return out;
  }

  /// 12, 0x1f, 017, 2#101.
  std::int64_t number() {
    skip();
    int base = 10;
    if (text_.substr(at_).starts_with("0x") || text_.substr(at_).starts_with("0X")) {
      base = 16;
      at_ += 2;
    } else if (text_.substr(at_).starts_with('0')) {
      base = 8;
    }
    const std::size_t begin = at_;
    std::uint64_t out = digits(base);
    if (base == 10 && out >= 2 && out <= 64 && text_.substr(at_).starts_with('#')) {
      ++at_;
      base = static_cast<int>(out);
      const std::size_t first = at_;
      out = digits(base);
      if (at_ == first) return leave_open();
    }
    const bool ends = at_ == text_.size() || digit_of(text_[at_], 64) > 63;
    return at_ == begin || !ends ? leave_open() : wrapped(out);
  }
  std::uint64_t digits(int base) {
    std::uint64_t out = 0;
    for (; at_ < text_.size() && digit_of(text_[at_], base) < base; ++at_) {
      out = out * static_cast<std::uint64_t>(base) + static_cast<std::uint64_t>(digit_of(text_[at_], base));
    }
    return out;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  int skipped_ = 0;  ///< above 0: read, not evaluated
  bool open_ = false, too_deep_ = false;
  std::string problem_;
};

}  // namespace

ShellNumber shell_number(std::string_view text) { return Arithmetic(text).read(); }

}  // namespace scalecalc
