// Decides which branches of a bash script run, for the reader of launch scripts.
#include "launch/shell_conditions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace scalecalc {
namespace {

Truth truth(bool is) { return is ? Truth::kYes : Truth::kNo; }

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(out) : std::nullopt;
}

Truth compared(std::string_view a, std::string_view op, std::string_view b) {
  if (op == "=" || op == "==") return b.find_first_of("*?[") == std::string_view::npos ? truth(a == b) : Truth::kMaybe;
  if (op == "!=") return opposite(compared(a, "=", b));
  const auto left = number_of(a), right = number_of(b);
  if (!left || !right) return Truth::kMaybe;
  if (op == "-eq") return truth(*left == *right);
  if (op == "-ne") return truth(*left != *right);
  if (op == "-lt") return truth(*left < *right);
  if (op == "-le") return truth(*left <= *right);
  if (op == "-gt") return truth(*left > *right);
  if (op == "-ge") return truth(*left >= *right);
  return Truth::kMaybe;
}

std::string_view without_quotes(std::string_view text) {
  while (!text.empty() && std::string_view(" \t\r\n(\"'").find(text.front()) != std::string_view::npos)
    text.remove_prefix(1);
  while (!text.empty() && std::string_view(" \t\r\n\"'").find(text.back()) != std::string_view::npos)
    text.remove_suffix(1);
  return text;
}

}  // namespace

Truth both(Truth a, Truth b) { return std::min(a, b); }
Truth either(Truth a, Truth b) { return std::max(a, b); }
Truth opposite(Truth a) { return a == Truth::kMaybe ? a : truth(a == Truth::kNo); }

bool is_test(std::string_view command) { return command == "[" || command == "[[" || command == "test"; }

Truth test_value(const std::vector<TestWord>& words) {
  std::size_t begin = 0, end = words.size();
  bool negated = false;
  for (; begin < end; ++begin) {
    const std::string& word = words[begin].text;
    if (word == "!") negated = !negated;
    if (!is_test(word) && word != "!") break;
  }
  if (end > begin && (words[end - 1].text == "]" || words[end - 1].text == "]]")) --end;
  const std::size_t count = end - begin;
  Truth out = Truth::kMaybe;
  if (std::all_of(words.begin() + static_cast<std::ptrdiff_t>(begin), words.begin() + static_cast<std::ptrdiff_t>(end),
                  [](const TestWord& word) { return word.known; })) {
    const auto text = [&](std::size_t i) -> const std::string& { return words[begin + i].text; };
    if (count == 1 && (text(0) == "true" || text(0) == "false")) out = truth(text(0) == "true");
    if (count == 1 && begin > 0 && out == Truth::kMaybe) out = truth(!text(0).empty());
    if (count == 2 && text(0) == "-z") out = truth(text(1).empty());
    if (count == 2 && text(0) == "-n") out = truth(!text(1).empty());
    if (count == 3) out = compared(text(0), text(1), text(2));
  }
  return negated ? opposite(out) : out;
}

Truth ShellConditions::runs() const {
  Truth out = guard_;
  for (const Frame& frame : frames_) out = both(out, frame.current);
  return out;
}

std::string ShellConditions::undecided() const {
  std::size_t line = guard_line_;
  for (const Frame& frame : frames_) {
    if (frame.current == Truth::kMaybe) line = frame.line;
  }
  return fmt::format("what line {} asks", line);
}

void ShellConditions::branch(Truth value) {
  Frame& frame = frames_.back();
  frame.current = both(opposite(frame.taken), value);
  frame.taken = either(frame.taken, value);
}

bool ShellConditions::is_keyword(std::string_view word) {
  constexpr std::array<std::string_view, 8> kWords{"if", "then", "elif", "else", "fi", "esac", "do", "{"};
  return std::find(kWords.begin(), kWords.end(), word) != kWords.end();
}

bool ShellConditions::keyword(std::string_view word, std::size_t line) {
  if (word == "if") {
    frames_.push_back(Frame{.joined = {}, .subject = {}, .line = line});
    asking_ = true;
    return true;
  }
  if (word == "do" || word == "{") return true;
  if (frames_.empty()) return false;
  Frame& frame = frames_.back();
  if (frame.is_case) {
    if (word == "esac") frames_.pop_back();
    return word == "esac";
  }
  if (word == "elif") {
    frame.asked = Truth::kYes;
    frame.joined = {};
    frame.line = line;
    asking_ = true;
    return true;
  }
  if (word == "then") {
    asking_ = false;
    branch(frame.asked);
  } else if (word == "else") {
    branch(Truth::kYes);
  } else if (word == "fi") {
    asking_ = false;
    frames_.pop_back();
  } else {
    return false;
  }
  return true;
}

void ShellConditions::condition(Truth value, std::string_view joined) {
  Frame& frame = frames_.back();
  frame.asked = frame.joined == "&&"   ? both(frame.asked, value)
                : frame.joined == "||" ? either(frame.asked, value)
                                       : value;
  frame.joined = joined;
}

void ShellConditions::command_ends(const std::vector<TestWord>& words, std::string_view joined, std::size_t line) {
  const bool test = !words.empty() && is_test(words.front().text) && (joined == "&&" || joined == "||");
  if (!test) {
    guard_ = Truth::kYes;
    return;
  }
  const Truth value = test_value(words);
  guard_ = joined == "&&" ? both(guard_, value) : opposite(value);
  guard_line_ = line;
}

void ShellConditions::case_begins(TestWord subject, std::size_t line) {
  frames_.push_back(Frame{.is_case = true,
                          .current = Truth::kNo,
                          .joined = {},
                          .subject = std::move(subject),
                          .expects_pattern = true,
                          .line = line});
}

bool ShellConditions::expects_pattern() const { return !frames_.empty() && frames_.back().expects_pattern; }

void ShellConditions::pattern(std::string_view text) {
  Frame& frame = frames_.back();
  Truth value = Truth::kNo;
  while (!text.empty()) {
    const std::size_t bar = std::min(text.find('|'), text.size());
    const std::string_view one = without_quotes(text.substr(0, bar));
    text.remove_prefix(std::min(bar + 1, text.size()));
    if (one == "*") {
      value = Truth::kYes;
    } else if (!frame.subject.known || one.find_first_of("*?[$") != std::string_view::npos) {
      value = either(value, Truth::kMaybe);
    } else {
      value = either(value, truth(one == frame.subject.text));
    }
  }
  branch(value);
  frame.expects_pattern = false;
}

void ShellConditions::pattern_ends() {
  if (frames_.empty() || !frames_.back().is_case) return;
  frames_.back().current = Truth::kNo;
  frames_.back().expects_pattern = true;
}

}  // namespace scalecalc
