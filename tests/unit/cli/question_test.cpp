// What every answer says for scripts: its question, what it assumed and names that are the same in every format.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/quoting.h"
#include "base/text.h"
#include "batch/answer_check.h"
#include "batch/study.h"
#include "cli/comma_list.h"
#include "cli/commands.h"
#include "cli/run.h"
#include "report/answer_fields.h"
#include "support/every_answer.h"
#include "support/scratch.h"

namespace scalecalc::cli {
namespace {

using test::AskedAnswer;
using test::every_answer;
using Document = nlohmann::ordered_json;

std::string output_of(std::vector<std::string> words, const std::vector<std::string>& more, int code = 0) {
  words.insert(words.end(), more.begin(), more.end());
  std::ostringstream out;
  std::ostringstream err;
  Environment env{.out = out, .err = err};
  EXPECT_EQ(run(words, env), code) << join(words, " ") << '\n' << err.str();
  return out.str();
}

/// An answer in every kind of format, by one run.
struct Formats {
  std::string json, csv, rows, table;
};

Formats formats_of(const std::vector<std::string>& words) {
  const test::Scratch scratch;
  const auto file = [&](const char* format) { return fmt::format("{}={}", format, scratch.path(format)); };
  Formats out;
  out.table = output_of(words, {"-o", file("json"), "-o", file("csv"), "-o", file("rows"), "-o", "table", "--verbose"});
  out.json = scratch.text("json");
  out.csv = scratch.text("csv");
  out.rows = scratch.text("rows");
  return out;
}

class EveryAnswer : public testing::TestWithParam<AskedAnswer> {
 protected:
  /// Asked once.
  const Formats& answer() const {
    static std::map<std::vector<std::string>, Formats> known;
    const auto found = known.find(GetParam().words);
    return found != known.end() ? found->second : known[GetParam().words] = formats_of(GetParam().words);
  }
};

std::string name_of_case(const testing::TestParamInfo<AskedAnswer>& info) {
  std::string out = std::to_string(info.index) + '_' + info.param.words.front();
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
}

TEST_P(EveryAnswer, ToItsOwnQuestionIsTheSameBytes) {
  std::vector<std::string> asked = shell_words(Document::parse(answer().json)["question"].get<std::string>());
  ASSERT_GE(asked.size(), 2U);
  EXPECT_EQ(asked.front(), "scalecalc");
  asked.erase(asked.begin());
  EXPECT_EQ(asked.front(), GetParam().words.front());
  const Formats again = formats_of(asked);
  EXPECT_EQ(again.json, answer().json) << join(asked, " ");
  EXPECT_EQ(again.csv, answer().csv);
  EXPECT_EQ(again.rows, answer().rows);
  EXPECT_EQ(again.table, answer().table);
}

/// A user's file in the place of the catalog's is said in the text, in JSON and in the question; nothing is said
/// without.
TEST_P(EveryAnswer, SaysWhichFilesReplaceTheCatalogs) {
  EXPECT_FALSE(Document::parse(answer().json).contains("read_from"));
  const test::Scratch own;
  std::set<std::string> replaced;
  for (const auto& [kind, names] : std::map<std::string, std::vector<std::string>>{
           {"hardware", {"h100-sxm", "tpu-v5e", "h200"}}, {"models", {"llama3-8b", "llama3.2-1b"}}}) {
    std::filesystem::create_directories(own.path(kind));
    for (const std::string& name : names) {
      own.put(fmt::format("{}/ours-{}.yaml", kind, name),
              fmt::format("name: ours-{0}\naliases: [{0}]\nextends: {0}\ntitle: Ours\n", name));
      for (const std::string& word : GetParam().words) {
        const std::string value = word.substr(word.find('=') + 1);
        if (value.find(name) == 0 || value.find("," + name) != std::string::npos) replaced.insert(name);
      }
    }
  }
  std::vector<std::string> words = GetParam().words;
  words.push_back("--config-dir=" + own.path(""));
  const Formats ours = formats_of(words);
  const Document document = Document::parse(ours.json);
  std::set<std::string> said;
  if (document.contains("read_from")) {
    for (const Document& file : document["read_from"]) {
      said.insert(file["name"].get<std::string>());
      EXPECT_TRUE(file["file"].get<std::string>().starts_with(own.path(""))) << file;
    }
  }
  for (const std::string& name : replaced) {
    EXPECT_TRUE(said.contains(name)) << name << " " << ours.json.substr(0, 500);
    EXPECT_NE(ours.table.find(name + " is read from "), std::string::npos) << ours.table.substr(0, 1000);
  }
  if (!said.empty()) {
    const std::string question = document["question"].get<std::string>();
    EXPECT_NE(question.find("--config-dir"), std::string::npos) << question;
  }
}

/// What is assumed of a flag is what the query says, unless there is more than one; and the command takes that flag.
TEST_P(EveryAnswer, NamesWhatItAssumed) {
  const Document document = Document::parse(answer().json);
  const Command* command = find_command(GetParam().words.front());
  const Document query = document["query"].flatten();
  for (const Document& assumed : document["assumptions"]) {
    EXPECT_TRUE(assumed["key"].is_string()) << assumed;
    if (assumed["flag"].is_string() && assumed["flag"].get<std::string>().starts_with("--")) {
      const std::string flag = parts_between(assumed["flag"].get<std::string>(), ' ').front();
      const std::string name = parts_between(flag, ',').front();
      EXPECT_TRUE(find_flag(command->flags, name) != nullptr || find_flag(common_flags(), name) != nullptr) << assumed;
    }
    if (!assumed["key"].is_string()) continue;
    std::string path = '/' + assumed["key"].get<std::string>();
    std::replace(path.begin(), path.end(), '.', '/');
    const auto asked = query.find(path);
    const bool says = asked != query.end() && (asked->is_number() || asked->is_string());
    EXPECT_TRUE(!says || !assumed["value"].is_null()) << assumed << " of " << *asked;
  }
}

/// One name for a figure: every column of CSV is a member of rows, and no name has a dot.
TEST_P(EveryAnswer, HasTheNamesOfCsvInItsRows) {
  const std::string& csv = answer().csv;
  if (answer().rows.empty()) return;
  std::set<std::string> members;
  for (const std::string& line : parts_between(answer().rows, '\n')) {
    if (line.empty()) continue;
    const Document row = Document::parse(line);  // in the loop's head it would be gone before its members
    for (const auto& [name, value] : row.items()) members.insert(name);
  }
  std::set<std::string> seen;
  for (const std::string& column : parts_between(csv.substr(0, csv.find('\n')), ',')) {
    EXPECT_EQ(column.find('.'), std::string::npos) << column;
    EXPECT_TRUE(seen.insert(column).second) << column << " twice";
    // A column that only the header of an empty table has.
    const bool known = members.contains(column) || members.contains("out_" + column);
    EXPECT_TRUE(known || csv.find(",,") != std::string::npos) << column;
  }
  EXPECT_TRUE(seen.contains("question"));
}

INSTANTIATE_TEST_SUITE_P(Commands, EveryAnswer, testing::ValuesIn(every_answer()), name_of_case);

TEST(Question, WordsWithDashesStandBehindTheFlags) {
  EXPECT_EQ(command_line({"model", {"-odd name"}, {{"--seq", {"8k"}}}}), "scalecalc model --seq 8k -- '-odd name'");
  EXPECT_EQ(command_line({"hw", {"it's"}, {{"--set", {"-x"}}, {"--keys", {}}}}),
            "scalecalc hw 'it'\\''s' --keys --set=-x");
}

TEST(Question, LeavesOutHowTheAnswerIsGiven) {
  const std::vector<std::string> words{"roofline", "matmul", "8x8x8", "--hw", "h100", "-q", "--fail-if", "time_s < 0"};
  EXPECT_EQ(Document::parse(output_of(words, {"--json", "--explain"}))["question"],
            "scalecalc roofline matmul 8x8x8 --hw h100");
}

TEST(Perf, AloneSaysHowLongAnsweringTook) {
  const std::vector<std::string> words{"roofline", "matmul", "8x8x8", "--hw", "h100-sxm"};
  EXPECT_FALSE(Document::parse(output_of(words, {"--json"})).contains("search"));
  EXPECT_GE(Document::parse(output_of(words, {"--json", "--perf"}))["search"]["elapsed_s"].get<double>(), 0);
  EXPECT_GE(Document::parse(output_of(words, {"-o", "row", "--perf"}))["elapsed_s"].get<double>(), 0);
  EXPECT_NE(output_of(words, {"--perf"}).find("answered in "), std::string::npos);
}

TEST(Commands, TablesOfManyAnswersShowFiguresThatThereAre) {
  for (const Command& command : commands()) {
    const std::vector<std::string> known = answer_fields(command.name);
    if (command.name == "batch") continue;
    ASSERT_FALSE(command.figures.empty()) << command.name;
    for (const std::string& name : parts_between(command.figures, ' ')) {
      EXPECT_TRUE(is_known_name(name, known)) << command.name << ' ' << name;
    }
  }
}

TEST(WhatWouldFit, IsFlagsAndValues) {
  const Document document = Document::parse(
      output_of({"train", "llama2-7b", "--hw", "h100-sxm", "--chips", "1", "--offload", "none"}, {"--json"}, 3));
  ASSERT_FALSE(document["would_fit"].empty());
  for (const Document& change : document["would_fit"]) {
    EXPECT_TRUE(find_flag(train_command().flags, change["flag"].get<std::string>()) != nullptr) << change;
    EXPECT_FALSE(change["value"].get<std::string>().empty());
  }
}

}  // namespace
}  // namespace scalecalc::cli
