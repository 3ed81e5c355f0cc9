#include "base/quoting.h"

#include <gtest/gtest.h>

namespace scalecalc {
namespace {

TEST(Printable, KeepsNothingATerminalObeys) {
  EXPECT_EQ(printable("plain \u00b5s"), "plain \u00b5s");
  EXPECT_EQ(printable("a\x1b[31mb\r\n\t"), "a\\x1b[31mb\\x0d\\x0a\\x09");
  EXPECT_EQ(printable("\x7f\u009b"), "\\x7f\\x9b");
  EXPECT_EQ(printable("\xff"), "\\xff");
  EXPECT_EQ(printable("a\u202eb"), "a\\u202eb") << "what is shown from right to left is not what is read";
  EXPECT_EQ(printable_lines("a\n\x1b"), "a\n\\x1b");
}

TEST(ShellQuoted, IsOneWordWhateverIsInIt) {
  EXPECT_EQ(shell_quoted("out/dir-1.db"), "out/dir-1.db");
  EXPECT_EQ(shell_quoted(""), "''");
  EXPECT_EQ(shell_quoted("$(touch X) it's"), "'$(touch X) it'\\''s'");
  EXPECT_EQ(shell_quoted_line("a b"), "'a b'");
  EXPECT_EQ(shell_quoted_line("a\n'\\"), "$'a\\x0a\\'\\\\'");
  EXPECT_EQ(shell_quoted_line("a\u2028b"), "$'a\\xe2\\x80\\xa8b'") << "a line end of YAML";
}

TEST(ShellWords, AreThoseThatAShellSees) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(shell_words("scalecalc  matmul \"A[I, J] * B\" 'a b' --set \"x=y z\" ''"),
            (Words{"scalecalc", "matmul", "A[I, J] * B", "a b", "--set", "x=y z", ""}));
  for (const char* word : {"it's", "a b", "", "\"", "\\", "$(x) `y`", "plain"}) {
    EXPECT_EQ(shell_words("one " + shell_quoted(word)), (Words{"one", word}));
  }
}

}  // namespace
}  // namespace scalecalc
