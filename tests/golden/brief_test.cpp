// What people read first: every command's usual answer fits one screen, and what is chosen of it is what is shown.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <sstream>

#include "base/text.h"
#include "cli/commands.h"
#include "golden/transcript.h"

namespace scalecalc::golden {
namespace {

/// Runs a command with standard output a terminal of so many columns; 0: a pipe.
Case asked(const std::string& command, std::size_t columns = 0) {
  Transcript transcript;
  transcript.tty = columns;
  transcript.utf8 = true;
  transcript.variables["NO_COLOR"] = "1";
  transcript.cases = {{"scalecalc " + command, {}, "", "", 0}};
  return run_transcript(transcript).front();
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

/// A command to copy is one line, however long.
std::size_t widest(const std::string& text) {
  std::size_t out = 0;
  for (const std::string& line : lines_of(text)) {
    if (!line.starts_with("  scalecalc ")) out = std::max(out, display_width(line));
  }
  return out;
}

/// Questions as people ask them first. Commands that are a list by nature, which is as long as what there is, stand
/// apart: hw list, model list, and curves and sweeps, whose points were asked for one by one.
const std::vector<std::string>& ordinary() {
  static const std::vector<std::string> kAll{
      "train llama3-70b --hw tpu-v5p --chips 8960",
      "train llama3-8b --hw h100-sxm --chips 64",
      "train deepseek-v3 --hw h800 --chips 2048",
      "train llama3-70b --hw h100-sxm --chips 4",
      "serve llama3-70b --hw h100-sxm --chips 8 --prompt 2048 --generate 256",
      "serve llama3-70b --hw h100-sxm --chips 8",
      "serve deepseek-v3 --hw h200 --chips 16",
      "serve deepseek-v3 --hw h200 --chips 16 --slo-ttft 2s --slo-tpot 50ms",
      "serve llama3-70b --hw h100-sxm --chips 1",
      "bounds llama3-70b --hw tpu-v5p --chips 8960",
      "bounds deepseek-v3 --hw h100-sxm --chips 2048",
      "bounds llama3-70b --hw tpu-v5p --for serving",
      "hw tpu-v5p",
      "hw h100-sxm",
      "hw tpu-v5p --topology 4x4x8",
      "hw h100-sxm mi300x",
      "model llama3-70b",
      "model deepseek-v3",
      "model jamba-v0.1",
      "model design --hw h100-sxm --chips 64 --deadline 30d",
      "compare llama3-8b --hw h100-sxm,tpu-v5p --chips 64",
      "sensitivity llama3-70b --hw h100-sxm --chips 4",
      "distill llama3.1-8b --teacher llama3.1-70b --hw h100-sxm --chips 64 --tokens 100B",
      "rl llama3.1-8b --hw h100-sxm --chips 16 --prompts 64 --rollouts 8 --prompt 256 --generate 2048",
      "scaling-law llama3-70b --inference-tokens 20T",
      "scaling-law --flops 5.76e23",
      "trace gpt3-175b --hw a100-80g --chips 1024 --fix tp=8,pp=8",
      "collective all-gather --hw tpu-v5p --bytes 1GB --topology 4x4x4",
      "matmul 'A[I, J_X] * B[J_X, K] -> C[I, K]' --hw tpu-v5e --mesh X=4 --dims I=1024,J=8192,K=8192",
      "roofline matmul 512x8192x8192 --hw tpu-v5e",
      "lint " SCALECALC_SOURCE_DIR "/tests/data/launch/megatron.sh --hw h100-sxm --model llama3-8b",
      "profile " SCALECALC_SOURCE_DIR "/tests/data/profiles/kineto.json --hw h100-sxm",
      "book",
      "book 5",
      "book 5.2",
      "validate",
      "validate serve"};
  return kAll;
}

class Ordinary : public testing::TestWithParam<std::string> {};

/// A terminal has a rule below the titles that a pipe has not.
TEST_P(Ordinary, IsAnsweredInFortyLinesOfAHundredColumns) {
  constexpr std::size_t kLines = 40;
  constexpr std::size_t kColumns = 100;
  const Case found = asked(GetParam(), kColumns);
  ASSERT_TRUE(found.exit == 0 || found.exit == 3) << found.err;
  EXPECT_LE(lines_of(found.out).size(), kLines) << found.out;
  EXPECT_LE(widest(found.out), kColumns) << found.out;
}

TEST_P(Ordinary, HasAHeadlineThatIsAllOfAQuietAnswer) {
  if (GetParam().starts_with("validate") || GetParam().find("--chips 2048") != std::string::npos) return;  // seconds
  constexpr std::size_t kMost = 12;
  const Case quiet = asked(GetParam() + " -q");
  const std::vector<std::string> lines = lines_of(quiet.out);
  EXPECT_LE(lines.size(), kMost) << quiet.out;
  EXPECT_EQ(quiet.err, "");
  // What is said alone is said in the answer too.
  ASSERT_FALSE(lines.empty());
  const std::string whole = asked(GetParam()).out;
  EXPECT_NE(whole.find(lines.front().substr(0, 30)), std::string::npos) << quiet.out << whole;
}

INSTANTIATE_TEST_SUITE_P(Questions, Ordinary, testing::ValuesIn(ordinary()));

TEST(Brief, EveryCommandIsAsked) {
  // calibrate needs a file of measured runs, batch a study; both are asked in transcripts of their own.
  // The text of export is the file it writes.
  std::set<std::string> left{"calibrate", "batch", "export"};
  for (const cli::Command& command : cli::commands()) {
    const std::string name(command.name);
    const bool found = std::any_of(ordinary().begin(), ordinary().end(),
                                   [&](const std::string& q) { return q.starts_with(name + " ") || q == name; });
    EXPECT_TRUE(found != left.contains(name)) << name;
  }
}

/// The flagship at the widths people have. What is wide is left out or broken; nothing wraps.
TEST(Brief, TheFlagshipNeverWraps) {
  for (const std::size_t columns : {60U, 80U, 100U, 120U, 200U}) {
    const Case found = asked("train llama3-70b --hw tpu-v5p --chips 8960", columns);
    EXPECT_LE(widest(found.out), columns) << found.out;
  }
}

TEST(Brief, TheFirstScreenOfTheFlagshipSaysPlanTimeCostAndWhatBinds) {
  constexpr std::size_t kScreen = 24;
  for (const std::size_t columns : {0U, 60U, 80U, 100U, 120U, 200U}) {
    const std::vector<std::string> lines = lines_of(asked("train llama3-70b --hw tpu-v5p --chips 8960", columns).out);
    std::string screen;
    for (std::size_t i = 0; i < std::min(lines.size(), kScreen); ++i) screen += lines[i] + " ";
    screen = wrap(screen, 100'000, 0);
    for (const char* said : {"Recommended: plan", "dp ", "tp ", " d (", "$", "MFU", "GB of", "bound by"}) {
      EXPECT_NE(screen.find(said), std::string::npos) << columns << " columns, no " << said << "\n" << screen;
    }
  }
}

TEST(Brief, OnlyPicksSections) {
  const std::string train = "train llama3-8b --hw h100-sxm --chips 64 --top 2";
  const Case memory = asked(train + " --only memory");
  EXPECT_EQ(lines_of(memory.out).front(), "Memory of the fullest chip");
  EXPECT_EQ(memory.out.find("Where the step goes"), std::string::npos);
  const Case two = asked(train + " --only assumed,time");
  EXPECT_NE(two.out.find("Where the step goes"), std::string::npos);
  EXPECT_NE(two.out.find("(change: --seq)"), std::string::npos) << "a section is shown in full";
  EXPECT_EQ(asked(train + " --only headline").out.find("Memory"), std::string::npos);
  EXPECT_EQ(asked(train + " --only memory -q").exit, 2);
  const Case wrong = asked(train + " --only memry");
  EXPECT_EQ(wrong.exit, 2);
  EXPECT_EQ(wrong.out, "");
  EXPECT_NE(wrong.err.find("did you mean 'memory'?"), std::string::npos) << wrong.err;
  EXPECT_NE(wrong.err.find("headline"), std::string::npos) << wrong.err;
  EXPECT_NE(wrong.err.find("plans"), std::string::npos) << wrong.err;
}

TEST(Brief, ColumnsAreChosenByTheirNamesInFiles) {
  const std::string train = "train llama3-8b --hw h100-sxm --chips 64 --top 2";
  // By the name of CSV, of JSON, and of a figure that people usually do not read.
  const Case found = asked(train + " --columns rank,layout,run.cost_usd,run_time_s,tokens_per_s_per_chip --only plans");
  EXPECT_EQ(found.exit, 0) << found.err;
  std::istringstream titles(lines_of(found.out).front());
  const std::vector<std::string> words{std::istream_iterator<std::string>(titles), {}};
  EXPECT_EQ(words, (std::vector<std::string>{"#", "layout", "cost", "run", "per", "chip"}));
  const Case wrong = asked(train + " --columns layout,mfuu");
  EXPECT_EQ(wrong.exit, 2);
  EXPECT_NE(wrong.err.find("did you mean 'mfu'?"), std::string::npos) << wrong.err;
  const Case object = asked("hw tpu-v5p --columns memory_bytes,year");
  EXPECT_NE(object.out.find("memory  102 GB"), std::string::npos) << object.out;
}

/// What carries the requests is the answer to a question of a rate.
TEST(Brief, TheHeadlineOfARateNamesTheFleet) {
  const std::string serve = "serve llama3-8b --hw h100-sxm --prompt 1024 --generate 256 --simulate 500 ";
  const Case rate = asked(serve + "--rate 50 --slo-ttft 1s -q");
  EXPECT_EQ(rate.exit, 0) << rate.err;
  EXPECT_TRUE(rate.out.starts_with("50 requests/s: ")) << rate.out;
  const Case most = asked(serve + "--chips 1 --batch 64 --rate max --slo-ttft 1s -q");
  EXPECT_TRUE(most.out.starts_with("at most ")) << most.out;
}

TEST(Brief, FilesStayComplete) {
  const std::string serve = "serve llama3-8b --hw h100-sxm --chips 8 --prompt 2048 --generate 256 ";
  EXPECT_EQ(asked(serve + "-o csv").out, asked(serve + "-o csv -v").out);
  EXPECT_EQ(asked(serve + "-o markdown").out, asked(serve + "-o markdown -v").out);
  EXPECT_EQ(asked(serve + "--json").out, asked(serve + "--json -q").out);
  // A part of a text that nobody asked for.
  for (const std::string flag : {"--only points", "--columns batch"}) {
    const Case refused = asked(serve + "-o csv " + flag);
    EXPECT_EQ(refused.exit, 2) << flag;
    EXPECT_NE(refused.err.find("chooses a part of the text"), std::string::npos) << refused.err;
  }
}

TEST(Brief, VerboseAndExplainShowAll) {
  const std::string bounds = "bounds llama3-70b --hw tpu-v5p --chips 8960";
  for (const char* flag : {" -v", " --explain"}) {
    const std::string text = asked(bounds + flag).out;
    for (const char* title : {"\nData parallelism\n", "\nTraining memory\n", "\nLeft out\n"}) {
      EXPECT_NE(text.find(title), std::string::npos) << flag << title;
      EXPECT_EQ(asked(bounds).out.find(title), std::string::npos) << title;
    }
  }
}

/// Without limits the answer is the knee: no point of the front has a larger product of both rates.
TEST(Brief, ServeLeadsWithTheKnee) {
  const std::string serve = "serve llama3-70b --hw h100-sxm --chips 8 --prompt 2048 --generate 256 -o csv --top 50";
  const std::vector<std::string> rows = lines_of(asked(serve).out);
  const auto cells = [](const std::string& row) {
    std::vector<std::string> out;
    std::istringstream in(row);
    for (std::string cell; std::getline(in, cell, ',');) out.push_back(cell);
    return out;
  };
  const std::vector<std::string> names = cells(rows.front());
  const auto column = [&](const std::string& name) {
    return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
  };
  double most = 0;
  std::string batch;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    // No cell before these has a comma of its own but the layout's, whose quotes keep it together.
    std::string row = rows[i];
    for (std::size_t at = row.find('"'); at != std::string::npos; at = row.find('"', at)) {
      const std::size_t end = row.find('"', at + 1);
      row.replace(at, end - at + 1, "layout");
    }
    const std::vector<std::string> row_cells = cells(row);
    const double product = std::stod(row_cells.at(column("tokens_per_s_per_chip"))) *
                           std::stod(row_cells.at(column("tokens_per_s_per_user")));
    if (product > most) {
      most = product;
      batch = row_cells.at(column("batch"));
    }
  }
  const std::string text = asked("serve llama3-70b --hw h100-sxm --chips 8 --prompt 2048 --generate 256 -q").out;
  EXPECT_NE(text.find("Knee of the Pareto front"), std::string::npos) << text;
  EXPECT_NE(text.find("batch " + batch + "\n"), std::string::npos) << batch << "\n" << text;
  // With a limit it is the most tokens within it.
  EXPECT_NE(asked("serve llama3-70b --hw h100-sxm --chips 8 --slo-tpot 50ms -q").out.find("Most tokens per chip"),
            std::string::npos);
}

/// A command does not warn of what it assumed itself; of what was asked it does.
TEST(Brief, ServeDoesNotWarnOfItsOwnLengths) {
  EXPECT_EQ(asked("serve llama3-70b --hw h100-sxm --chips 8").out.find("warning"), std::string::npos);
  EXPECT_NE(asked("serve llama3-70b --hw h100-sxm --chips 8 --prompt 9000").out.find("warning: prompt and answer"),
            std::string::npos);
}

}  // namespace
}  // namespace scalecalc::golden
