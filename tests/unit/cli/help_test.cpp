#include "cli/help.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/comma_list.h"
#include "cli/completion.h"
#include "support/errors.h"

namespace scalecalc::cli {
namespace {

std::vector<std::string> lines_of(std::string text) {
  EXPECT_TRUE(text.ends_with('\n'));
  text.pop_back();
  return parts_between(text, '\n');
}

TEST(Help, NeverNeedsMoreThanAHundredColumns) {
  for (const Command& command : commands()) {
    for (const std::string& help : {command_help(command), short_help(command), opening_help()}) {
      for (const std::string& line : lines_of(help)) EXPECT_LE(line.size(), 100U) << line;
    }
  }
}

TEST(Help, TheProgramsNameAloneGetsTenLines) { EXPECT_LE(lines_of(opening_help()).size(), 10U); }

TEST(Help, TheShortOneIsOneScreen) {
  for (const Command& command : commands()) {
    EXPECT_LE(lines_of(short_help(command)).size(), 40U) << short_help(command);
  }
}

/// The flag that a line of help is about; empty if it is about none.
std::string flag_of(const std::string& line) {
  const std::size_t at = line.find("--");
  if (at != 6 || !line.starts_with("  ")) return "";
  return line.substr(at, std::min(line.find_first_of(" [", at), line.size()) - at);
}

TEST(Help, EveryLineIsOfTheTable) {
  for (const Command& command : commands()) {
    const std::vector<Flag> flags = flags_of(command);
    std::vector<std::string> in_full;
    const std::string whole = command_help(command);
    for (const std::string& line : lines_of(whole.substr(whole.find("\nflags:\n")))) {
      if (const std::string flag = flag_of(line); !flag.empty()) in_full.push_back(flag);
    }
    for (const Flag& flag : flags) {
      EXPECT_EQ(std::count(in_full.begin(), in_full.end(), std::string(flag.name)), 1) << command.name << flag.name;
    }
    EXPECT_EQ(in_full.size(), flags.size()) << command.name;
    const std::string screen = short_help(command);
    for (const std::string& line : lines_of(screen.substr(screen.find("\n\n", screen.find("examples:"))))) {
      const std::string name = flag_of(line);
      if (name.empty()) continue;
      const Flag* flag = find_flag(flags, name);
      ASSERT_NE(flag, nullptr) << line;
      constexpr std::size_t kText = 26;
      if (line.size() <= kText) continue;
      EXPECT_EQ(help_text(*flag).find(line.substr(kText)), 0U) << line;
    }
  }
}

TEST(ManPage, NamesEveryFlagAndNoLineStartsARequestByChance) {
  for (const Command& command : commands()) {
    const std::string page = man_page(command);
    for (const Flag& flag : flags_of(command)) {
      std::string escaped;
      for (const char c : flag.name) escaped += c == '-' ? "\\-" : std::string(1, c);
      EXPECT_NE(page.find("\\fB" + escaped + "\\fR"), std::string::npos) << command.name << flag.name;
    }
    for (const std::string& line : lines_of(page)) {
      if (!line.starts_with('.')) continue;
      const std::string request = line.substr(0, line.find(' '));
      const std::vector<std::string> known{".TH", ".SH", ".TP", ".nf", ".fi"};
      EXPECT_NE(std::find(known.begin(), known.end(), request), known.end()) << line;
    }
  }
}

TEST(Completion, FollowsTheWords) {
  const Catalog catalog;
  const auto after = [&](const std::vector<std::string>& words) { return completions(words, catalog); };
  EXPECT_EQ(after({"tr"}), "train\ntrace\n");
  EXPECT_EQ(after({"help", "rl"}), "rl\n");
  EXPECT_EQ(after({"completion", ""}), "bash\nzsh\nfish\n");
  EXPECT_EQ(after({"train", "llama3-70"}), "llama3-70b\n");
  EXPECT_EQ(after({"train", "llama3-70b", "--hw", "tpu-v5p"}), "tpu-v5p\n");
  EXPECT_EQ(after({"train", "--hw", "=", "tpu-v5p"}), "tpu-v5p\n");
  EXPECT_EQ(after({"compare", "llama3-70b", "--hw", "h200,tpu-v5p"}), "h200,tpu-v5p\n");
  EXPECT_EQ(after({"train", "llama3-70b", "--batch-t"}), "--batch-tokens\n--batch-tolerance\n");
  EXPECT_EQ(after({"train", "llama3-70b", "--optimizer", "sg"}), "sgd\n");
  EXPECT_EQ(after({"train", "llama3-70b", "--stack", "maxt"}), "maxtext\n");
  EXPECT_EQ(after({"hw", "li"}), "list\n");
  EXPECT_EQ(after({"serve", "-o", "js"}), "json\njsonl\n");
  EXPECT_EQ(after({"nonsense", "x"}), "");
  EXPECT_EQ(after({"batch", "stu"}), "") << "the shell's own files";
}

TEST(Completion, OfShellsItKnows) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    EXPECT_NE(completion_script({shell}).find("scalecalc complete"), std::string::npos);
  }
  EXPECT_EQ(test::problems_of([] { completion_script({"csh"}); }),
            "error: no script for 'csh'\nhint: scalecalc completion bash, zsh or fish\n");
}

}  // namespace
}  // namespace scalecalc::cli
