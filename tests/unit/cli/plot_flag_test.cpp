// --plot and -o svg=FILE of questions that have no picture.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/diagnostic.h"
#include "cli/commands.h"
#include "cli/flag_reader.h"

namespace scalecalc::cli {
namespace {

std::string refusal(const Command& command, const std::vector<std::string>& words) {
  const Arguments arguments = parse_arguments(words, command);
  try {
    FlagReader(arguments).finish();
  } catch (const UserError& error) {
    for (const Diagnostic& problem : error.diagnostics()) {
      if (problem.message.find("it has no picture") != std::string::npos ||
          problem.message.find("its answer has no picture") != std::string::npos)
        return problem.message + "; " + problem.hint;
    }
  }
  return "";
}

TEST(PlotFlag, CommandsWithoutACurveRefuseItByName) {
  std::size_t drawing = 0;
  for (const Command& command : commands()) {
    if (!drawings(command).empty()) {
      ++drawing;
      continue;
    }
    for (const char* flag : {"--plot", "--output=plot=a.txt", "--output=svg=a.svg"}) {
      const std::string said = refusal(command, {flag});
      EXPECT_NE(said.find(fmt::format(" has no meaning for {}: ", command.name)), std::string::npos)
          << command.name << " " << flag << ": " << said;
      EXPECT_NE(said.find("roofline"), std::string::npos) << said;
    }
    EXPECT_EQ(refusal(command, {"--output=json"}), "") << command.name;
  }
  EXPECT_GE(drawing, 7U);
}

TEST(PlotFlag, AModeWithoutAPictureIsToldOfThoseWithOne) {
  const Command& hw = *find_command("hw");
  EXPECT_EQ(refusal(hw, {"list", "--plot"}),
            "--plot has no meaning for hw list: it has no picture; drawn are hw HW: the roofs of its formats, or of "
            "several chips");
  EXPECT_EQ(refusal(hw, {"h100-sxm", "--plot"}), "");
}

TEST(PlotFlag, APictureExplainsNothing) {
  const auto problems = [](const std::vector<std::string>& words) {
    const Arguments arguments = parse_arguments(words, *find_command("hw"));
    try {
      FlagReader(arguments).finish();
    } catch (const UserError& error) {
      return error.diagnostics().size();
    }
    return std::size_t{0};
  };
  EXPECT_EQ(problems({"h100-sxm", "--plot", "--explain"}), 1U);
  EXPECT_EQ(problems({"h100-sxm", "--output=svg=a.svg", "--explain"}), 1U);
  EXPECT_EQ(problems({"h100-sxm", "--plot", "--output=table=a.txt", "--explain"}), 0U);
  EXPECT_EQ(problems({"h100-sxm", "--output=svg=a.svg", "--json", "--explain"}), 0U);
}

}  // namespace
}  // namespace scalecalc::cli
