#include "train/curve_options.h"

#include <gtest/gtest.h>

#include "base/diagnostic.h"
#include "cli/commands.h"

namespace scalecalc::cli {
namespace {

using Counts = std::vector<std::int64_t>;

std::optional<CurveQuestion> ask(std::vector<std::string> more) {
  std::vector<std::string> words{"llama3-8b", "--hw", "h100-sxm"};
  words.insert(words.end(), more.begin(), more.end());
  return curve_question(parse_arguments(words, train_command()));
}

std::size_t problems(std::vector<std::string> more) {
  try {
    ask(std::move(more));
  } catch (const UserError& error) {
    return error.diagnostics().size();
  }
  return 0;
}

TEST(CurveOptions, OneCountIsNoCurve) {
  EXPECT_FALSE(ask({"--chips", "64"}));
  EXPECT_FALSE(is_sweep("1,024"));
  EXPECT_FALSE(is_sweep("16,777,216,000"));
  EXPECT_TRUE(is_sweep("16,384"));
  EXPECT_TRUE(is_sweep("64..128"));
}

TEST(CurveOptions, CountsRiseAndComeOnce) {
  EXPECT_EQ(ask({"--chips", "64..512*2"})->chips, (Counts{64, 128, 256, 512}));
  EXPECT_EQ(ask({"--chips", "512,64,64,1Ki"})->chips, (Counts{64, 512, 1024}));
  EXPECT_EQ(ask({"--chips", "64..100+16"})->chips, (Counts{64, 80, 96}));
  EXPECT_EQ(ask({"--chips", "64..512*2"})->train.chips, 512);
}

TEST(CurveOptions, AFrontMayBeOfOneCount) {
  const auto question = ask({"--chips", "64", "--pareto"});
  ASSERT_TRUE(question);
  EXPECT_TRUE(question->pareto);
  EXPECT_EQ(question->chips, Counts{64});
}

TEST(CurveOptions, AllProblemsAtOnce) {
  EXPECT_EQ(problems({"--chips", "64..8"}), 1U);
  EXPECT_EQ(problems({"--chips", "64..8", "--top", "3", "--seq", "x"}), 3U);
  EXPECT_EQ(problems({"--chips", "64", "--pareto", "--variants", "--explain", "--objective", "cost"}), 3U);
  EXPECT_EQ(problems({"--chips", "8..64", "--topology", "4x4x4"}), 1U);
  EXPECT_EQ(problems({"--chips", "1..2000+1"}), 1U);
  EXPECT_EQ(problems({"--chips", "1..33554432*2"}), 1U);
}

}  // namespace
}  // namespace scalecalc::cli
