#include "base/diagnostic.h"

#include <gtest/gtest.h>

namespace scalecalc {
namespace {

TEST(Render, ShowsTheLineAndUnderlinesTheValue) {
  const Diagnostic d{
      {"my-chip.yaml", 14, 14, 7, "  bandwidth: 2.8 TBs"}, "'2.8 TBs' is not a bandwidth", "did you mean '2.8 TB/s'?"};
  EXPECT_EQ(render(d),
            "my-chip.yaml:14:14: error: '2.8 TBs' is not a bandwidth\n"
            "  14 |   bandwidth: 2.8 TBs\n"
            "     |              ^~~~~~~\n"
            "hint: did you mean '2.8 TB/s'?\n");
}

TEST(Render, LeavesOutWhatIsNotKnown) {
  EXPECT_EQ(render({{}, "no such flag", ""}), "error: no such flag\n");
  EXPECT_EQ(render({{"x.yaml", 0, 0, 1, ""}, "the document is empty", ""}), "x.yaml: error: the document is empty\n");
  EXPECT_EQ(render({{"x.yaml", 3, 0, 1, ""}, "bad", ""}), "x.yaml:3: error: bad\n");
}

TEST(Render, ShowsAFlagWithoutALineNumber) {
  const Diagnostic d{{"<command line>", 0, 24, 4, "--set hw.hbm.bandwidth=5TBs"}, "unknown unit", ""};
  EXPECT_EQ(render(d),
            "<command line>: error: unknown unit\n"
            "     | --set hw.hbm.bandwidth=5TBs\n"
            "     |                        ^~~~\n");
}

TEST(Render, AlignsUnderWideCharactersAndTabs) {
  EXPECT_EQ(render({{"x", 1, 5, 1, "\u6f22\u5b57: @"}, "bad", ""}),
            "x:1:5: error: bad\n"
            "   1 | \u6f22\u5b57: @\n"
            "     |       ^\n");
  EXPECT_EQ(render({{"x", 1, 2, 1, "\ta"}, "bad", ""}),
            "x:1:2: error: bad\n"
            "   1 |  a\n"
            "     |  ^\n");
}

TEST(Render, KeepsControlCharactersOffTheTerminal) {
  EXPECT_EQ(render({{"a\x1b[2J", 1, 1, 1, "\x1b[31mred"}, "found '\x07'", "\xFF"}),
            "a\\x1b[2J:1:1: error: found '\\x07'\n"
            "   1 | ?[31mred\n"
            "     | ^\n"
            "hint: \\xff\n");
}

TEST(Render, CutsALongLineAroundTheMark) {
  const std::string line = std::string(300, 'a') + "X" + std::string(300, 'b');
  const std::string shown = render({{"x", 1, 301, 1, line}, "bad", ""});
  EXPECT_EQ(shown, "x:1:301: error: bad\n   1 | ..." + std::string(60, 'a') + "X" + std::string(49, 'b') +
                       "...\n     |    " + std::string(60, ' ') + "^\n");
}

TEST(Render, SurvivesAColumnBehindTheLine) {
  EXPECT_EQ(render({{"x", 1, 99, 5, "ab"}, "bad", ""}),
            "x:1:99: error: bad\n"
            "   1 | ab\n"
            "     |   ^\n");
}

TEST(UserError, CarriesItsDiagnosticsAndExitCode) {
  const UserError flag("bad flag", "try --help");
  EXPECT_EQ(flag.exit_code(), ExitCode::kQuestionWrong);
  EXPECT_STREQ(flag.what(), "bad flag");
  EXPECT_EQ(flag.diagnostics().at(0).hint, "try --help");
  EXPECT_STREQ(UserError(std::vector<Diagnostic>{}).what(), "user error");
}

}  // namespace
}  // namespace scalecalc
