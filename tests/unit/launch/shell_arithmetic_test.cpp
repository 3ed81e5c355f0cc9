// Expressions and what bash 5.2 prints for them: echo $(( ... )).
#include "launch/shell_arithmetic.h"

#include <gtest/gtest.h>

#include "launch/document.h"
#include "launch/reading.h"
#include "support/errors.h"

namespace scalecalc {
namespace {

struct NumberCase {
  const char* text;
  std::int64_t value;
};

TEST(ShellArithmetic, GivesWhatBashGives) {
  constexpr std::int64_t kLeast = INT64_MIN;
  for (const NumberCase& c : {NumberCase{"", 0},
                              NumberCase{"1+2*3", 7},
                              NumberCase{"(1+2)*3", 9},
                              NumberCase{"7-2-1", 4},
                              NumberCase{"-2**2", 4},
                              NumberCase{"2**3**2", 512},
                              NumberCase{"1<<70", 64},
                              NumberCase{"1<<-1", kLeast},
                              NumberCase{"-1>>63", -1},
                              NumberCase{"9223372036854775807+1", kLeast},
                              NumberCase{"9223372036854775808", kLeast},
                              NumberCase{"99999999999999999999", 7766279631452241919},
                              NumberCase{"1099511627776*8388608/(0-1)", kLeast},
                              NumberCase{"1099511627776*8388608%(0-1)", 0},
                              NumberCase{"1?2:3?4:5", 2},
                              NumberCase{"0?2:0?4:5", 5},
                              NumberCase{"1||8/0", 1},
                              NumberCase{"0&&8/0", 0},
                              NumberCase{"0?8/0:1", 1},
                              NumberCase{"0x10+010+2#101", 29},
                              NumberCase{"36#Zz", 1295},
                              NumberCase{"64#_", 63},
                              NumberCase{"~5", -6},
                              NumberCase{"!5", 0},
                              NumberCase{"!1+1", 1},
                              NumberCase{"5!=3", 1},
                              NumberCase{"1<2<3", 1},
                              NumberCase{"3 -  -2", 5},
                              NumberCase{"--2", 2},
                              NumberCase{"4-+2", 2},
                              NumberCase{"7/-2", -3},
                              NumberCase{"-7%3", -1},
                              NumberCase{"3&6|1^8", 11},
                              NumberCase{"1==1&&0", 0}}) {
    const ShellNumber number = shell_number(c.text);
    EXPECT_EQ(number.value, c.value) << c.text;
    EXPECT_EQ(number.problem, "") << c.text;
  }
}

TEST(ShellArithmetic, BashEndsWhatDividesByZero) {
  for (const char* text : {"8/0", "8%0", "0||8/0", "1?8/0:1", "1+(2/(1-1))"}) {
    EXPECT_EQ(shell_number(text).problem, "division by 0") << text;
    EXPECT_EQ(shell_number(text).value, std::nullopt) << text;
  }
  for (const char* text : {"2 ** -1", "1 || 2**-1"})
    EXPECT_EQ(shell_number(text).problem, "exponent less than 0") << text;
}

TEST(ShellArithmetic, WhatIsNotReadIsOpen) {
  for (const char* text : {"?+1", "a=3", "a+=3", "1,2", "08", "2#3", "(1", "1)", "1 2", "1?2", "++", "65#1"}) {
    EXPECT_EQ(shell_number(text).value, std::nullopt) << text;
    EXPECT_EQ(shell_number(text).problem, "") << text;
  }
}

TEST(ShellArithmetic, LevelsHaveAnEnd) {
  const auto nested = [](const std::string& open, std::size_t levels, const std::string& close) {
    std::string out;
    for (std::size_t i = 0; i < levels; ++i) out += open;
    out += "1";
    for (std::size_t i = 0; i < levels; ++i) out += close;
    return shell_number(out);
  };
  EXPECT_EQ(nested("(", 32, ")").value, 1);
  for (const char* open : {"(", "-", "!", "~", "1?", "2**"}) {
    const std::string close = std::string_view(open) == "(" ? ")" : std::string_view(open) == "1?" ? ":0" : "";
    EXPECT_EQ(nested(open, 100'000, close).problem, "nested more than 32 levels deep") << open;
    EXPECT_TRUE(nested(open, 100'000, close).too_deep) << open;
  }
  EXPECT_EQ(nested("1+", 100'000, "").value, 100'001);
}

/// The number that a script gives to tensor parallelism; "open" where it gives none.
std::string tensor_ranks(const std::string& script) {
  const LaunchText read = read_shell(script + "torchrun pretrain_gpt.py --tensor-model-parallel-size $TP\n", "run.sh");
  for (const LaunchSetting& setting : read.settings) {
    if (setting.key == "tensor-model-parallel-size" || setting.key == "--tensor-model-parallel-size") {
      return setting.open.empty() && !setting.values.empty() ? setting.values.front() : "open";
    }
  }
  return "absent";
}

TEST(ShellArithmetic, NamesAreNumbersOfTheirOwnAndDollarsAreText) {
  EXPECT_EQ(tensor_ranks("X=1+2\nTP=$(( X * 2 ))\n"), "6");
  EXPECT_EQ(tensor_ranks("X=1+2\nTP=$(( $X * 2 ))\n"), "5");
  EXPECT_EQ(tensor_ranks("X=1+2\nTP=$(( ${X} * 2 ))\n"), "5");
  EXPECT_EQ(tensor_ranks("X=4\nTP=$(( (X + (1)) ))\n"), "5");
  EXPECT_EQ(tensor_ranks("X=0x10\nTP=$((X/2#100))\n"), "4");
  EXPECT_EQ(tensor_ranks("TP=$(( UNSET + 1 ))\n"), "open");
}

TEST(ShellArithmetic, ADivisionByZeroIsRefusedWhereItRuns) {
  EXPECT_EQ(test::problems_of([] { tensor_ranks("N=0\nTP=$(( 8 / N ))\n"); }).substr(0, 52),
            "run.sh:2:4: error: division by 0 in '$(( 8 / N ))'\n ");
  EXPECT_EQ(tensor_ranks("N=0\nTP=2\nif [ 1 = 2 ]; then TP=$(( 8 / N )); fi\n"), "2");
}

TEST(ShellArithmetic, ParenthesesOfAPodsCommandAreRefusedAtTheirLine) {
  const std::string deep = "$((" + std::string(30'000, '(') + "1" + std::string(30'000, ')') + "))";
  const std::string pod =
      "kind: Pod\nspec:\n  containers:\n  - command:\n    - bash\n    - -c\n    - |\n      echo a\n      torchrun "
      "pretrain_gpt.py --tensor-model-parallel-size " +
      deep + "\n";
  const std::string problem = test::problems_of([&] { read_launch_text(pod, "pod.yaml"); });
  EXPECT_EQ(problem.substr(0, 57), "pod.yaml:9:61: error: nested more than 32 levels deep in ")
      << problem.substr(0, 200);
}

}  // namespace
}  // namespace scalecalc
