#include "cli/run.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <sstream>
#include <streambuf>

#include "base/text.h"
#include "batch/manifest.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "support/scratch.h"
#include "support/studies.h"

namespace scalecalc::cli {
namespace {

using Words = std::vector<std::string>;

struct Printed {
  int code = 0;
  std::string out;
  std::string err;
};

Printed run_words(const Words& words, bool interrupted = false) {
  std::ostringstream out;
  std::ostringstream err;
  Environment env{.out = out, .err = err};
  if (interrupted) env.interrupted = [] { return true; };
  const int code = run(words, env);
  return {code, out.str(), err.str()};
}

/// A device that takes nothing.
class Full : public std::streambuf {
 protected:
  int_type overflow(int_type) override { return traits_type::eof(); }
  int sync() override { return -1; }
};

const Words kQuestion{"train", "llama3-8b", "--hw", "h100-sxm", "--chips", "8"};

Words question_with(Words more) {
  Words out = kQuestion;
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

TEST(Run, WithoutWordsExplainsItselfOnStandardError) {
  const Printed printed = run_words({});
  EXPECT_EQ(printed.code, 2);
  EXPECT_EQ(printed.out, "");
  EXPECT_TRUE(printed.err.starts_with("scalecalc computes how large language models scale"));
}

TEST(Run, HelpAndVersionGoToStandardOutput) {
  const Printed version = run_words({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_EQ(version.out.find("scalecalc " SCALECALC_VERSION "\ncommit "), 0U);
  EXPECT_NE(version.out.find("\ncatalog: "), std::string::npos);
  EXPECT_EQ(run_words({"train", "-V"}).out, version.out);
  const Printed help = run_words({"train", "--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_EQ(help.err, "");
  EXPECT_EQ(run_words({"help", "train"}).out, help.out);
  EXPECT_EQ(run_words({"--help", "train"}).out, help.out);
  EXPECT_EQ(run_words({"train", "--nonsense", "--help"}).out, help.out);
  EXPECT_EQ(run_words({"help", "train", "all"}).out, run_words({"train", "--help", "all"}).out);
  EXPECT_GT(run_words({"train", "--help", "all"}).out.size(), 2 * help.out.size());
}

TEST(Run, CommonFlagsMayStandBeforeTheCommand) {
  const Printed printed = run_words({"-q", "--color", "never", "train", "x", "--hw", "y", "--chips", "0"});
  EXPECT_EQ(printed.code, 2);
  EXPECT_EQ(printed.err, "error: --chips '0' is out of range\nhint: a whole number from 1 to 16,777,216\n");
}

/// What a mistyped train is told, whatever commands there are.
std::string unknown_train_hint() {
  std::vector<std::string> names;
  for (const Command& command : commands()) names.emplace_back(command.name);
  return "did you mean 'train'? commands: " + join(names, ", ");
}

TEST(Run, ACommandIsFoundByItsName) {
  for (const Command& command : commands()) {
    const Command* found = find_command(command.name);
    ASSERT_NE(found, nullptr) << command.name;
    EXPECT_EQ(found->name, command.name);
    EXPECT_EQ(found->run, command.run) << command.name;
  }
  EXPECT_EQ(find_command("trian"), nullptr);
}

TEST(Run, UnknownCommands) {
  EXPECT_EQ(run_words({"trian"}).err, "error: unknown command 'trian'\nhint: " + unknown_train_hint() + "\n");
  EXPECT_EQ(run_words({"--jsno"}).err,
            "error: unknown flag '--jsno'\nhint: did you mean '--json'? scalecalc train --help lists the flags\n");
  EXPECT_EQ(run_words({"--quiet"}).err, "error: no command is given\nhint: for example: scalecalc train --help\n");
}

TEST(Run, OneHintForProblemsThatShareIt) {
  EXPECT_EQ(run_words({"train"}).err,
            "error: MODEL is missing: which model is to be trained?\n"
            "error: --hw is missing: on which hardware?\n"
            "error: --chips is missing: on how many chips?\n"
            "hint: for example: scalecalc train llama3-70b --hw tpu-v5p --chips 8960\n");
}

TEST(Run, ErrorsAreADocumentWithJson) {
  const Printed printed = run_words({"--json", "trian"});
  EXPECT_EQ(printed.code, 2);
  EXPECT_EQ(printed.out,
            "{\n  \"schema\": \"scalecalc/error/1\",\n  \"exit\": 2,\n  \"diagnostics\": [\n    {\n"
            "      \"file\": null,\n      \"line\": null,\n      \"column\": null,\n"
            "      \"message\": \"unknown command 'trian'\",\n"
            "      \"hint\": \"" +
                unknown_train_hint() + "\"\n    }\n  ]\n}\n");
  EXPECT_EQ(printed.err, "error: unknown command 'trian'\nhint: " + unknown_train_hint() + "\n");
}

TEST(Run, AFullDeviceIsNoSuccess) {
  Full full;
  std::ostream out(&full);
  std::ostringstream err;
  Environment env{.out = out, .err = err};
  EXPECT_EQ(run({"--version"}, env), 74);
  EXPECT_TRUE(err.str().starts_with("error: cannot write to standard output: ")) << err.str();
  EXPECT_EQ(run({"--json", "trian"}, env), 74);
}

TEST(Run, AnInterruptBeforeAnyPlanSaysThatNothingIsKnown) {
  const Printed printed = run_words(kQuestion, true);
  EXPECT_EQ(printed.code, 130);
  EXPECT_EQ(printed.out, "");
  EXPECT_EQ(printed.err, "error: interrupted before anything was known\n");
  const Printed json = run_words(question_with({"--json"}), true);
  EXPECT_EQ(json.code, 130);
  EXPECT_NE(json.out.find("\"schema\": \"scalecalc/error/1\""), std::string::npos);
}

TEST(Run, AnInterruptEndsWithWhatIsRanked) {
  const auto interrupted_after = [](const Words& words, int most) {
    std::ostringstream out;
    std::ostringstream err;
    std::atomic<int> polls = 0;
    Environment env{.out = out, .err = err};
    env.interrupted = [&] { return ++polls > most; };
    const int code = run(words, env);
    return Printed{code, out.str(), err.str()};
  };
  const Words validating{"validate", "train"};
  const Printed table = interrupted_after(validating, 20);
  EXPECT_EQ(table.code, 130);
  EXPECT_NE(table.out.find("partial: interrupted; this is what was found until then"), std::string::npos);
  const Printed json = interrupted_after({"validate", "train", "--json"}, 20);
  EXPECT_NE(json.out.find("\"partial\": true"), std::string::npos);
  EXPECT_NE(json.err.find("partial: interrupted"), std::string::npos);
  const Printed csv = interrupted_after({"validate", "train", "-o", "csv"}, 20);
  EXPECT_NE(csv.out.find(",partial\n"), std::string::npos);
  EXPECT_TRUE(csv.out.ends_with(",true\n"));
}

TEST(Run, OutputsAreOpenedBeforeTheWork) {
  const Printed printed = run_words(question_with({"-o", "json=/dev/null/plans.json"}));
  EXPECT_EQ(printed.code, 74);
  EXPECT_EQ(printed.err, "/dev/null/plans.json: error: cannot write the file: Not a directory\n");
}

TEST(Run, OneDocumentOnStandardOutput) {
  EXPECT_EQ(run_words(question_with({"-o", "csv", "-o", "html"})).err,
            "error: csv and html cannot both go to standard output\nhint: name a file for one of them: -o html=FILE\n");
}

class Terminals : public testing::Test {
 protected:
  Environment env{.out = stream_, .err = stream_};
  std::map<std::string, std::string> variables_;

  void SetUp() override {
    env.variable = [this](const std::string& name) -> std::optional<std::string> {
      const auto found = variables_.find(name);
      return found == variables_.end() ? std::nullopt : std::optional(found->second);
    };
  }

 private:
  std::ostringstream stream_;
};

TEST_F(Terminals, ColourFollowsFlagThenVariablesThenTerminal) {
  EXPECT_TRUE(wants_colour(env, ColorMode::kAuto, true));
  EXPECT_FALSE(wants_colour(env, ColorMode::kAuto, false));
  EXPECT_TRUE(wants_colour(env, ColorMode::kAlways, false));
  variables_["TERM"] = "dumb";
  EXPECT_FALSE(wants_colour(env, ColorMode::kAuto, true));
  variables_["FORCE_COLOR"] = "1";
  EXPECT_TRUE(wants_colour(env, ColorMode::kAuto, false));
  variables_["NO_COLOR"] = "0";
  EXPECT_FALSE(wants_colour(env, ColorMode::kAuto, true));
  variables_["NO_COLOR"] = "";
  EXPECT_TRUE(wants_colour(env, ColorMode::kAuto, true));
  variables_["NO_COLOR"] = "1";
  EXPECT_TRUE(wants_colour(env, ColorMode::kAlways, true));
}

TEST_F(Terminals, WidthIsThatOfColumnsThenTheTerminalThenEighty) {
  env.utf8 = true;
  EXPECT_EQ(text_options(env, ColorMode::kAuto).width, 0U) << "a pipe is as wide as the text";
  EXPECT_FALSE(text_options(env, ColorMode::kAuto).unicode);
  env.out_is_tty = true;
  EXPECT_EQ(text_options(env, ColorMode::kAuto).width, 80U);
  EXPECT_TRUE(text_options(env, ColorMode::kAuto).unicode);
  env.width = 120;
  EXPECT_EQ(text_options(env, ColorMode::kAuto).width, 120U);
  variables_["COLUMNS"] = "100";
  EXPECT_EQ(text_options(env, ColorMode::kAuto).width, 100U);
  variables_["COLUMNS"] = "wide";
  EXPECT_EQ(text_options(env, ColorMode::kAuto).width, 120U);
}

/// A later release may have dropped or renamed a command that a study asks.
TEST(Run, RowsOfACommandThatIsNotKnownAreRefusedByName) {
  const test::Scratch scratch;
  Study study = test::small_study();
  study.command = "plan";
  write_manifest(make_manifest(study, "0.0.9", 2), scratch.path("out"));
  const Printed said = run_words({"batch", "merge", scratch.path("out"), "-o", scratch.path("rows.jsonl")});
  EXPECT_EQ(said.code, 2);
  EXPECT_NE(said.err.find("holds rows of 'plan', which this release does not know"), std::string::npos) << said.err;
  EXPECT_NE(said.err.find("scalecalc 0.0.9"), std::string::npos) << said.err;
}

}  // namespace
}  // namespace scalecalc::cli
