// Branches of a script: which are run, as far as the script says it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace scalecalc {

/// Whether something is so; kMaybe where it depends on what only the environment knows.
enum class Truth : std::uint8_t { kNo, kMaybe, kYes };
Truth both(Truth a, Truth b);
Truth either(Truth a, Truth b);
Truth opposite(Truth a);

/// A word of a test as far as it is known.
struct TestWord {
  std::string text;
  bool known = true;
};
bool is_test(std::string_view command);
/// "[ A = B ]", "[[ A -gt 1 ]]", "test -z A", with their brackets; kMaybe of any other command.
Truth test_value(const std::vector<TestWord>& words);

/// `if` and `case`, one in another, and commands behind `&&` and `||` of a test.
class ShellConditions {
 public:
  /// Of the command that is read now: whether it is run.
  Truth runs() const;
  /// Where it was asked what runs() does not know: "what line 7 asks".
  std::string undecided() const;

  /// A word at the beginning of a command, which stands on `line`; whether it is one of these, so that a command may
  /// follow it.
  bool keyword(std::string_view word, std::size_t line);
  static bool is_keyword(std::string_view word);
  std::size_t depth() const { return frames_.size(); }
  /// Whether the command is a condition of an `if`.
  bool asks() const { return asking_; }
  /// The condition, or a part of it; `joined` is what stands behind it: "&&", "||" or nothing.
  void condition(Truth value, std::string_view joined);
  /// A command that is none, and what stands behind it.
  void command_ends(const std::vector<TestWord>& words, std::string_view joined, std::size_t line);

  void case_begins(TestWord subject, std::size_t line);
  bool expects_pattern() const;
  void pattern(std::string_view text);
  void pattern_ends();

 private:
  struct Frame {
    bool is_case = false;
    Truth current = Truth::kYes;  ///< of the branch
    Truth taken = Truth::kNo;     ///< an earlier one was
    Truth asked = Truth::kYes;    ///< the condition so far
    std::string_view joined;
    TestWord subject;
    bool expects_pattern = false;
    std::size_t line = 0;
  };
  void branch(Truth value);

  std::vector<Frame> frames_;
  bool asking_ = false;
  Truth guard_ = Truth::kYes;  ///< of the next command alone
  std::size_t guard_line_ = 0;
};

}  // namespace scalecalc
