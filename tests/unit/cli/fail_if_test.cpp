#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "batch/condition.h"
#include "cli/run.h"
#include "report/answer_fields.h"
#include "support/scratch.h"

namespace scalecalc::cli {
namespace {

struct SaidTo {
  int code = 0;
  std::string out, err;
};

SaidTo said_to(const std::vector<std::string>& words) {
  std::ostringstream out;
  std::ostringstream err;
  Environment env{.out = out, .err = err};
  const int code = run(words, env);
  return {code, out.str(), err.str()};
}

const std::vector<std::string> kRoofline{"roofline", "matmul", "512x8192x28672", "--hw", "tpu-v5e", "-q"};

std::vector<std::string> asked_with(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(FailIf, SaysTheValueThatFailsAndExitsWithOne) {
  const SaidTo fails = said_to(asked_with(kRoofline, {"--fail-if", "time_s > 0 AND batch = 512"}));
  EXPECT_EQ(fails.code, 1);
  EXPECT_TRUE(fails.err.starts_with("failed: time_s > 0 AND batch = 512: time_s = ")) << fails.err;
  EXPECT_NE(fails.err.find("batch = 512\n"), std::string::npos) << fails.err;
  EXPECT_EQ(said_to(asked_with(kRoofline, {"--fail-if", "time_s < 0", "--fail-if", "batch > 512"})).code, 0);
}

TEST(Quiet, SaysThatTheLaunchFileIsOfAnotherPlan) {
  const test::Scratch scratch;
  const std::string file = scratch.path("plan.sh");
  const std::vector<std::string> ask{"train", "llama3-70b", "--hw",     "tpu-v5p",        "--chips",
                                     "8960",  "-q",         "--export", "maxtext:" + file};
  const SaidTo said = said_to(ask);
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.err.find("the launch file is of another plan"), std::string::npos) << said.err;
}

TEST(Quiet, SaysWhatCheapestWasJudgedWithout) {
  const SaidTo said =
      said_to({"compare", "llama3-8b", "--hw", "h100-sxm:8,b100:8", "-q", "--expect", "cheapest=h100-sxm"});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.err.find("none is known for b100"), std::string::npos) << said.err;
  EXPECT_NE(said.out.find("no price for b100"), std::string::npos) << said.out;
}

TEST(FailIf, AMisspeltNameIsFoundBeforeTheWork) {
  // The hardware does not exist: nobody has looked for it yet.
  const SaidTo wrong = said_to({"roofline", "matmul", "8x8x8", "--hw", "no-such-chip", "--fail-if", "tiem_s > 1"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_TRUE(wrong.err.starts_with("error: cannot read the condition 'tiem_s > 1': no such column: tiem_s"))
      << wrong.err;
  EXPECT_NE(wrong.err.find("did you mean 'time_s'"), std::string::npos) << wrong.err;
}

TEST(FailIf, IsOfTheRecommendedPlan) {
  const std::vector<std::string> train{"train", "llama3-8b", "--hw", "h100-sxm", "--chips", "64", "-q"};
  const auto document = nlohmann::json::parse(said_to(asked_with(train, {"--json"})).out);
  const auto row = nlohmann::json::parse(said_to(asked_with(train, {"-o", "row"})).out);
  EXPECT_EQ(row["mfu"], document["best"]["plan"]["mfu"]);
  EXPECT_EQ(row["dp"], document["best"]["plan"]["layout"]["dp"]);
}

/// What a shell gives for <(printf TEXT).
class Substituted {
 public:
  explicit Substituted(std::string_view text) {
    EXPECT_EQ(::pipe(ends_.data()), 0);
    EXPECT_EQ(::write(ends_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ::close(ends_[1]);
  }
  ~Substituted() { ::close(ends_[0]); }
  Substituted(const Substituted&) = delete;
  Substituted& operator=(const Substituted&) = delete;
  std::string path() const { return "/dev/fd/" + std::to_string(ends_[0]); }

 private:
  std::array<int, 2> ends_{};
};

TEST(Expect, APipeIsReadOnce) {
  const std::vector<std::string> train{"train", "llama3-8b", "--hw", "h100-sxm", "--chips", "8", "-q"};
  for (const std::vector<std::string>& ask : {kRoofline, train}) {
    const Substituted wrong("bound_by: nothing\n");
    const SaidTo fails = said_to(asked_with(ask, {"--expect", wrong.path()}));
    EXPECT_EQ(fails.code, 1) << fails.err;
    EXPECT_NE(fails.err.find("bound_by = nothing"), std::string::npos) << fails.err;
  }
}

TEST(Expect, AFileSaysWhatTheAnswerIs) {
  const test::Scratch scratch;
  const auto judged = [&](const std::string& text) {
    return said_to(asked_with(kRoofline, {"--expect", scratch.put("expected.yaml", text)}));
  };
  EXPECT_EQ(judged("batch: 512\ntime_s: {least: 1e-9, most: 1}\nbound_by: compute\nmemory_bound: false\n").code, 0);
  const SaidTo fails = judged("bound_by: compute\ntime_s: {most: 1e-9}\nbatch: 511\n");
  EXPECT_EQ(fails.code, 1);
  EXPECT_EQ(fails.err.find("bound_by"), std::string::npos) << fails.err;
  EXPECT_NE(fails.err.find("expected.yaml:2: time_s at most 1e-09: time_s = "), std::string::npos) << fails.err;
  EXPECT_NE(fails.err.find("expected.yaml:3: batch = 511: batch = 512"), std::string::npos) << fails.err;
}

TEST(Expect, WithinATolerance) {
  const test::Scratch scratch;
  const auto code = [&](const std::string& text) {
    return said_to(asked_with(kRoofline, {"--expect", scratch.put("e.yaml", text)})).code;
  };
  EXPECT_EQ(code("batch: {value: 500, tolerance: 3%}"), 0);
  EXPECT_EQ(code("batch: {value: 500, tolerance: 2%}"), 1);
  EXPECT_EQ(code("batch: {value: 500, least: 1}"), 2);
  EXPECT_EQ(code("batch: {tolerance: 2%}"), 2);
  EXPECT_EQ(code("batch: {meest: 2}"), 2);
  EXPECT_EQ(code("- batch"), 2);
}

/// A row that was kept is what its own question answers, until something changes.
TEST(Expect, AnEarlierRow) {
  const test::Scratch scratch;
  const std::vector<std::string> train{"train", "llama3-8b", "--hw", "h100-sxm", "--chips", "8", "-q"};
  const std::string kept = scratch.put("kept.json", said_to(asked_with(train, {"-o", "row"})).out);
  const SaidTo same = said_to(asked_with(train, {"--expect", kept}));
  EXPECT_EQ(same.code, 0) << same.err;
  const SaidTo other = said_to(asked_with(train, {"--expect", kept, "--set", "hw.hbm.bandwidth=1TB/s"}));
  EXPECT_EQ(other.code, 1);
  EXPECT_NE(other.err.find("kept.json:1: step_time_s = "), std::string::npos) << other.err;
}

TEST(Expect, AMisspeltNameIsFoundBeforeTheWork) {
  const test::Scratch scratch;
  const SaidTo wrong = said_to({"roofline", "matmul", "8x8x8", "--hw", "no-such-chip", "--expect",
                                scratch.put("expected.yaml", "batch: 8\ntiem_s: 1\n")});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("expected.yaml:2:1: error: no answer has 'tiem_s'"), std::string::npos) << wrong.err;
  EXPECT_NE(wrong.err.find("did you mean 'time_s'"), std::string::npos) << wrong.err;
  EXPECT_EQ(wrong.err.find("no-such-chip"), std::string::npos) << wrong.err;
}

TEST(Expect, OfComparisonsSystemsOrAFile) {
  const test::Scratch scratch;
  const std::vector<std::string> compare{"compare", "llama3-8b", "--hw", "h100-sxm:8,h200:8", "-q"};
  const std::string file = scratch.put("expected.yaml", "hardware: no-such\n");
  EXPECT_EQ(said_to(asked_with(compare, {"--expect", file})).code, 1);
  EXPECT_EQ(said_to(asked_with(compare, {"--expect", "fastest=h200"})).code, 0);
}

/// A condition is no file, and no expectation is ignored.
TEST(Expect, IsAFileWhereThereAreNoSystems) {
  const SaidTo said = said_to({"roofline", "matmul", "8x8x8", "--hw", "h100-sxm", "--expect", "time_s=1"});
  EXPECT_EQ(said.code, 2);
  EXPECT_NE(said.err.find("--expect 'time_s=1' is no file"), std::string::npos) << said.err;
}

TEST(Expect, ATextIsInNoRange) {
  const test::Scratch scratch;
  const std::vector<std::string> ask{"roofline", "matmul", "8x8x8", "--hw", "h100-sxm", "-q"};
  EXPECT_EQ(said_to(asked_with(ask, {"--expect", scratch.put("a.yaml", "bound_by: {least: 0}\n")})).code, 1);
  EXPECT_EQ(said_to(asked_with(ask, {"--expect", scratch.put("b.yaml", "time_s: {least: 0}\n")})).code, 0);
}

/// What rows have is known without an answer.
TEST(AnswerFields, KnowEveryNameOfARow) {
  const std::vector<std::vector<std::string>> questions{
      {"train", "llama3-8b", "--hw=h100-sxm", "--chips=8", "--mtbf=50000h"},
      {"train", "llama3-8b", "--hw=h100-sxm", "--chips=8,16"},
      {"serve", "llama3-8b", "--hw=h100-sxm", "--chips=1"},
      {"compare", "llama3-8b", "--hw=h100-sxm:8,h200:8"},
      {"compare", "llama3-8b", "--serve", "--hw=h100-sxm,h200", "--chips=8"},
      {"sensitivity", "llama3-8b", "--hw=h100-sxm", "--chips=8", "--fixed"},
      {"trace", "llama3-8b", "--hw=h100-sxm", "--chips=8"},
      {"export", SCALECALC_SOURCE_DIR "/tests/data/launch/plan.json", "--to=accelerate"},
      {"lint", SCALECALC_SOURCE_DIR "/tests/data/launch/megatron.sh", "--hw=h100-sxm", "--model=llama3-8b"},
      {"bounds", "70B", "--hw=h100-sxm"},
      {"book", "1", "--solve"},
      {"book"},
      {"roofline", "matmul", "8x8x8", "--hw=h100-sxm"},
      {"collective", "all-gather", "--hw=h100-sxm", "--group=8", "--bytes=1MiB"},
      {"matmul", "A[I] * B[I]", "--hw=tpu-v5e", "--mesh=X=4", "--dims=I=8"},
      {"hw", "h100-sxm"},
      {"hw", "list"},
      {"model", "llama3-8b"},
      {"model", "list", "llama3"},
      {"scaling-law", "--flops=1e24"},
      {"distill", "llama3.2-1b", "--teacher=llama3-8b", "--hw=h100-sxm", "--chips=8", "--batch-seqs=64", "--tokens=1B"},
      {"rl", "llama3-8b", "--hw=h100-sxm", "--chips=8", "--prompt=64", "--generate=64", "--prompts=8"},
      {"validate", "train", "--only=chip=mi325x"},
      {"validate", "memory", "--only=chip=h100-sxm"},
      {"validate", "serve", "--only=chip=h200"},
      {"calibrate", "train", "--hw=mi355x", "--stack=primus"},
      {"calibrate", "serve", "--only=chip=h200", "--folds=2"}};
  for (const std::vector<std::string>& words : questions) {
    const SaidTo said = said_to(asked_with(words, {"-o", "row", "-q"}));
    ASSERT_EQ(said.code, 0) << words[0] << said.err;
    const std::vector<std::string> fields = answer_fields(words[0]);
    const std::set<std::string> known(fields.begin(), fields.end());
    const auto is_known = [&](const std::string& name) {
      return known.contains(name) || std::any_of(known.begin(), known.end(), [&](const std::string& field) {
               return field.ends_with('*') && name.starts_with(field.substr(0, field.size() - 1));
             });
    };
    EXPECT_LT(known.size(), 2000U) << "more than SQLite has columns";
    const auto row = nlohmann::json::parse(said.out);
    for (const auto& [name, value] : row.items()) {
      EXPECT_TRUE(is_known(name) || (name.starts_with("out_") && is_known(name.substr(4)))) << words[0] << ' ' << name;
    }
  }
}

TEST(Condition, NamesInItAreNotItsTexts) {
  EXPECT_EQ(names_in("mfu < 0.5 AND in_hw = 'tpu v5p' OR x_1>2"),
            (std::vector<std::string>{"mfu", "0", "5", "AND", "in_hw", "OR", "x_1", "2"}));
}

}  // namespace
}  // namespace scalecalc::cli
