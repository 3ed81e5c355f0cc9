#include <gtest/gtest.h>

#include "batch/study.h"
#include "support/errors.h"
#include "support/scratch.h"
#include "support/studies.h"

namespace scalecalc {
namespace {

using Texts = std::vector<std::string>;

Study read(const std::string& text) {
  const test::Scratch scratch;
  return read_study(scratch.put("s.yaml", text), test::forms(), {});
}

std::string wrong(const std::string& text) {
  return test::problems_of([&] { read(text); });
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(ReadStudy, TakesListsRangesAndTexts) {
  const Study study =
      read("command: ask\nflags: {loud: true, set: [x=1, 'y={b}']}\naxes:\n  a: [1, 8..32*2, '3..4']\n  b: x y\n");
  EXPECT_EQ(study.axes[0].columns[0].values, (Texts{"1", "8", "16", "32", "3..4"}));
  EXPECT_TRUE(study.axes[0].columns[0].numbers.empty());
  EXPECT_EQ(study.axes[1].columns[0].values, Texts{"x y"});
  ASSERT_EQ(study.flags.size(), 3U);
  EXPECT_EQ(study.flags[0].flag, "--loud");
  EXPECT_TRUE(study.flags[0].values.empty());
  EXPECT_EQ(study.flags[1].values, (Texts{"x=1", "y={b}"}));
  EXPECT_EQ(study.flags[2].flag, "--a");  // b has its place
}

TEST(ReadStudy, CountsAndNumbersAreNumbers) {
  const Study study = read("command: ask\naxes: {a: [1k, 2.5], b: 1KiB..4KiB*2}\n");
  EXPECT_EQ(study.axes[0].columns[0].numbers, (std::vector<double>{1000, 2.5}));
  EXPECT_EQ(study.axes[1].columns[0].values, (Texts{"1024B", "2048B", "4096B"}));
  EXPECT_TRUE(study.axes[1].columns[0].numbers.empty());
}

TEST(ReadStudy, PatternsNameTheCatalog) {
  const Study study = read("command: ask\naxes: {a: {hardware: [tpu-v5*, tpu-v5e]}, b: {models: llama3.1-*}}\n");
  EXPECT_EQ(study.axes[0].columns[0].values, (Texts{"tpu-v5e", "tpu-v5p"}));
  EXPECT_GE(study.axes[1].columns[0].values.size(), 3U);
}

TEST(ReadStudy, ZippedColumnsVaryTogether) {
  const Study study = read("command: ask\naxes: {pair: {zip: {a: [1, 2], b: [x, y]}}}\n");
  ASSERT_EQ(study.axes.size(), 1U);
  EXPECT_EQ(study.axes[0].columns[1].values, (Texts{"x", "y"}));
  EXPECT_TRUE(says(wrong("command: ask\naxes: {p: {zip: {a: [1, 2], b: [x]}}}\n"), "equally long"));
}

TEST(ReadStudy, EveryProblemHasItsPlace) {
  const std::string said = wrong("command: ask\nflags: {lud: true, loud: 3}\naxes:\n  a: []\n  b: 9..1*2\nwher: a\n");
  EXPECT_TRUE(says(said, "s.yaml:2:9: error: ask has no flag --lud")) << said;
  EXPECT_TRUE(says(said, "did you mean 'loud'?")) << said;
  EXPECT_TRUE(says(said, "s.yaml:2:26: error: --loud is a switch")) << said;
  EXPECT_TRUE(says(said, "s.yaml:5:6: error: '9..1*2' ends below its start")) << said;
  EXPECT_TRUE(says(said, "s.yaml:6:1: error:")) << said;
}

TEST(ReadStudy, NamesMustMeet) {
  EXPECT_EQ(wrong("schema: scalecalc-study/1\ncommand: ask\naxes: {a: 1}\n"), "");
  EXPECT_NE(wrong("schema: scalecalc-model/1\ncommand: ask\naxes: {a: 1}\n"), "");
  EXPECT_TRUE(says(wrong("command: ark\naxes: {a: 1}\n"), "did you mean 'ask'?"));
  EXPECT_TRUE(says(wrong("command: ask\narguments: ['{aa}']\naxes: {a: 1}\n"), "s.yaml:2:13: error: {aa} is no axis"));
  EXPECT_TRUE(says(wrong("command: ask\naxes: {c: 1}\n"), "or write {c} where its value belongs"));
  EXPECT_TRUE(says(wrong("command: ask\nflags: {a: 1}\naxes: {a: 1}\n"), "is an axis and stands under flags too"));
  EXPECT_TRUE(says(wrong("command: ask\naxes: {loud: 1}\n"), "is a switch and takes no values"));
  EXPECT_TRUE(says(wrong("command: ask\naxes: {x-y: 1, x_y: 2}\n"), "stands on two axes"));
  EXPECT_TRUE(says(wrong("command: ask\naxes: {a: {hardware: tpu-v9*}}\n"), "no hardware of the catalog"));
}

TEST(ReadStudy, StandardInputIsReadByNoQuestion) {
  EXPECT_TRUE(says(wrong("command: ask\narguments: ['-']\naxes: {a: 1}\n"), "cannot read standard input"));
  EXPECT_TRUE(says(wrong("command: ask\naxes: {a: ['-', x]}\n"), "cannot read standard input"));
}

TEST(ReadStudy, ConditionsAreReadBeforehand) {
  EXPECT_EQ(read("command: ask\naxes: {a: [1, 2]}\nwhere: a > 1\n").where, "a > 1");
  EXPECT_TRUE(
      says(wrong("command: ask\naxes: {a: 1}\nwhere: aa > 1\n"), "s.yaml:3:8: error: cannot read the condition"));
}

TEST(ReadStudy, WritesNoFilesButItsResults) {
  const test::Scratch scratch;
  const std::string path = scratch.put("s.yaml", "command: ask\nflags: {a: x.yaml}\naxes: {b: [1, 2]}\n");
  std::vector<CommandForm> writing = test::forms();
  for (CommandForm::Option& option : writing.front().options) option.writes = option.flag == "--a";
  const std::string said = test::problems_of([&] { read_study(path, writing, {}); });
  EXPECT_TRUE(says(said, "--a writes a file")) << said;
}

}  // namespace
}  // namespace scalecalc
