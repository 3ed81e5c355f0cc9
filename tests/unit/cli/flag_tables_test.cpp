// Properties of every command's table of flags: what help, the reader and the refusals make of it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "base/diagnostic.h"
#include "cli/comma_list.h"
#include "cli/commands.h"
#include "cli/flag_reader.h"
#include "cli/run.h"

namespace scalecalc::cli {
namespace {

using TextLines = std::vector<std::string>;

/// Words that choose each mode of a command, in the order of Command::modes.
struct Chosen {
  std::string_view command;
  std::vector<TextLines> words;
};

const std::vector<Chosen>& chosen() {
  static const std::vector<Chosen> kAll{
      {"train",
       {{"llama3-8b", "--hw=h100-sxm", "--chips=8"},
        {"llama3-8b", "--hw=h100-sxm", "--chips=8..64"},
        {"llama3-8b", "--hw=h100-sxm", "--chips=8", "--pareto"}}},
      {"collective",
       {{"all-gather"},
        {"reduce-scatter"},
        {"all-reduce"},
        {"all-to-all"},
        {"gather"},
        {"scatter"},
        {"broadcast"},
        {"reduce"},
        {"permute"}}},
      {"matmul", {{"A[I] * B[I]"}, {"A[I]"}, {"A[I_X] -> A[I]"}}},
      {"hw", {{"list"}, {"h100-sxm"}, {"h100-sxm", "--keys"}, {"h100-sxm", "--dump-yaml"}}},
      {"model", {{"llama3-8b"}, {"list"}, {"design"}, {"llama3-8b", "--dump-yaml"}, {"llama3-8b", "--keys"}}},
      {"scaling-law", {{}, {"llama3-8b"}}},
      {"bounds", {{"70B", "--for=training"}, {"70B", "--for=serving"}, {"70B", "--for=both"}}},
      {"compare", {{"llama3-8b"}, {"llama3-8b", "--serve"}}},
      {"sensitivity", {{"llama3-8b"}, {"serve", "llama3-8b"}}},
      {"distill", {{"llama3-8b", "--loss=logits"}, {"llama3-8b", "--loss=sequence"}}},
      {"calibrate", {{}, {"--dump-yaml"}}},
      {"batch", {{"plan"}, {"run"}, {"status"}, {"merge"}, {"script"}, {"diff"}, {"study.yaml"}}}};
  return kAll;
}

/// "--chips=8960", or the switch.
std::string given(const Flag& flag) {
  if (flag.kind == FlagKind::kSwitch) return std::string(flag.name);
  return std::string(flag.name) + '=' + std::string(flag.example);
}

std::vector<Diagnostic> problems_of(const Command& command, TextLines words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  try {
    FlagReader(parse_arguments(words, command)).finish();
  } catch (const UserError& error) {
    return error.diagnostics();
  }
  return {};
}

bool about(const std::vector<Diagnostic>& problems, const std::string& start) {
  return std::any_of(problems.begin(), problems.end(),
                     [&](const Diagnostic& problem) { return problem.message.starts_with(start); });
}

/// Words of a mode that both flags belong to; none if the command has no modes.
TextLines words_of_both(const Command& command, const Flag& one, const Flag& other) {
  for (const Chosen& chosen_words : chosen()) {
    if (chosen_words.command != command.name) continue;
    for (std::size_t m = 0; m < chosen_words.words.size(); ++m) {
      if (one.is_of(m) && other.is_of(m)) return chosen_words.words[m];
    }
  }
  return {};
}

/// Calls use(command, mode, words, flag) for each flag once, in each mode.
template <class Use>
void each_flag_of_each_mode(const Use& use) {
  for (const Chosen& one : chosen()) {
    const Command& command = *find_command(one.command);
    ASSERT_EQ(one.words.size(), command.modes.size()) << one.command;
    for (std::size_t m = 0; m < command.modes.size(); ++m) {
      for (const Flag& flag : command.flags) {
        if (find_flag(command.flags, flag.name) == &flag) use(command, m, one.words[m], flag);
      }
    }
  }
}

TEST(FlagTables, EveryCommandWithModesIsTestedHere) {
  for (const Command& command : commands()) {
    const bool here =
        std::any_of(chosen().begin(), chosen().end(), [&](const Chosen& one) { return one.command == command.name; });
    EXPECT_EQ(here, !command.modes.empty()) << command.name;
  }
}

TEST(FlagTables, WordsChooseTheMode) {
  for (const Chosen& one : chosen()) {
    const Command& command = *find_command(one.command);
    for (std::size_t m = 0; m < one.words.size(); ++m) {
      EXPECT_EQ(mode_of(parse_arguments(one.words[m], command)), m) << command.modes[m].name;
    }
  }
}

TEST(FlagTables, AFlagIsUsedOrRefusedInEveryMode) {
  std::size_t refused = 0;
  each_flag_of_each_mode([&](const Command& command, std::size_t m, const TextLines& words, const Flag& flag) {
    const bool chooses =
        std::any_of(words.begin(), words.end(), [&](const std::string& word) { return word.starts_with(flag.name); });
    if (chooses) return;
    const Modes modes = modes_of(command.flags, flag.name);
    const bool belongs = (modes & (1U << m)) != 0;
    // Those that choose another mode leave this one.
    if (mode_of(parse_arguments(words, command)) != m) return;
    TextLines all = words;
    all.push_back(given(flag));
    if (mode_of(parse_arguments(all, command)) != m) return;
    const std::string start = std::string(flag.name) + " has no meaning for " + std::string(command.modes[m].name);
    EXPECT_EQ(about(problems_of(command, words, {given(flag)}), start), !belongs) << command.name << ' ' << flag.name;
    refused += belongs ? 0 : 1;
  });
  EXPECT_GT(refused, 200U);
}

/// The whole program, not the reader alone: no command answers before it has looked.
TEST(FlagTables, TheProgramRefusesThem) {
  each_flag_of_each_mode([&](const Command& command, std::size_t m, const TextLines& words, const Flag& flag) {
    const bool chooses =
        std::any_of(words.begin(), words.end(), [&](const std::string& word) { return word.starts_with(flag.name); });
    if (chooses) return;  // it would be given twice
    TextLines all{std::string(command.name)};
    all.insert(all.end(), words.begin(), words.end());
    all.push_back(given(flag));
    const Arguments arguments = parse_arguments({all.begin() + 1, all.end()}, command);
    if ((modes_of(command.flags, flag.name) & (1U << m)) != 0 || mode_of(arguments) != m) return;
    std::ostringstream out;
    std::ostringstream err;
    Environment env{.out = out, .err = err};
    EXPECT_EQ(run(all, env), 2) << command.name << ' ' << flag.name;
    EXPECT_NE(err.str().find(std::string(flag.name) + " has no meaning for"), std::string::npos)
        << command.name << ' ' << flag.name << '\n'
        << err.str();
  });
}

TEST(FlagTables, AFlagThatNeedsAnotherIsRefusedAlone) {
  std::size_t found = 0;
  for (const Command& command : commands()) {
    for (const Flag& flag : command.flags) {
      for (const FlagNeed& need : flag.needs) {
        if (need.flags.empty()) continue;
        ++found;
        const std::string says = fmt::format(fmt::runtime(need.why), flag.name);
        EXPECT_TRUE(about(problems_of(command, words_of_both(command, flag, flag), {given(flag)}), says))
            << command.name << ' ' << says;
      }
    }
  }
  EXPECT_GT(found, 20U);
}

TEST(FlagTables, TwoFlagsThatSayTheSameAreRefusedTogether) {
  std::size_t found = 0;
  for (const Command& command : commands()) {
    for (const Flag& one : command.flags) {
      for (const Flag& other : command.flags) {
        if (one.says.empty() || one.says != other.says || &one >= &other) continue;
        ++found;
        const std::string start = std::string(one.name) + " and " + std::string(other.name) + " both say ";
        EXPECT_TRUE(about(problems_of(command, words_of_both(command, one, other), {given(one), given(other)}), start))
            << command.name << ' ' << start;
      }
    }
  }
  EXPECT_GT(found, 10U);
}

TEST(FlagTables, AFlagThatExcludesOthersIsRefusedBesideEach) {
  std::size_t found = 0;
  for (const Command& command : commands()) {
    for (const Flag& flag : command.flags) {
      for (const std::string& name : parts_between(flag.excludes, ' ')) {
        if (name.empty()) continue;
        const Flag* other = find_flag(command.flags, name);
        ASSERT_NE(other, nullptr) << command.name << ' ' << name;
        ++found;
        const std::string start = fmt::format("{} and {} both say {}", flag.name, name, flag.excludes_as);
        EXPECT_TRUE(
            about(problems_of(command, words_of_both(command, flag, *other), {given(flag), given(*other)}), start))
            << command.name << ' ' << start;
      }
    }
  }
  EXPECT_GT(found, 5U);
}

TEST(FlagTables, ANameStandsOnceInAMode) {
  for (const Command& command : commands()) {
    for (const Flag& one : command.flags) {
      for (const Flag& other : command.flags) {
        if (one.name != other.name || &one >= &other) continue;
        const Modes all = command.modes.empty() ? kAllModes : (1U << command.modes.size()) - 1;
        EXPECT_EQ(one.modes & other.modes & all, 0U) << command.name << one.name;
        EXPECT_EQ(one.kind, other.kind) << command.name << one.name;
      }
    }
  }
}

/// An example is what the message of a missing value suggests, so it must be right.
TEST(FlagTables, ExamplesAreRightValues) {
  for (const Command& command : commands()) {
    for (const Flag& flag : command.flags) {
      if (flag.kind == FlagKind::kSwitch) continue;
      EXPECT_FALSE(flag.example.empty()) << command.name << flag.name;
      const Arguments arguments = parse_arguments({given(flag)}, command);
      FlagReader reader(arguments, command.flags);
      bool right = true;
      switch (flag.reading) {
        case Reading::kText: break;
        case Reading::kCount: right = reader.count(flag).has_value(); break;
        case Reading::kQuantity:
        case Reading::kShare:
        case Reading::kSomeShare: right = flag.value.find('|') != flag.value.npos || reader.quantity(flag); break;
        case Reading::kSweep: right = reader.sweep(flag).has_value(); break;
        case Reading::kWord: right = reader.word(flag).has_value(); break;
      }
      EXPECT_TRUE(right) << command.name << ' ' << given(flag);
    }
  }
}

}  // namespace
}  // namespace scalecalc::cli
