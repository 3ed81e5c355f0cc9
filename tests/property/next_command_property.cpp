// The commands that an answer offers to copy: each is one whole line at every width, runs when it is pasted, and has
// the plan of the answer it comes from.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/quoting.h"
#include "base/text.h"
#include "cli/run.h"
#include "support/scratch.h"

namespace scalecalc {
namespace {

struct ToldOfCommand {
  int code = 0;
  std::string out, err;
};

ToldOfCommand asked_of_command(const std::vector<std::string>& words, std::size_t width = 0) {
  std::ostringstream out, err;
  cli::Environment env{.out = out, .err = err, .out_is_tty = width > 0, .width = width};
  const int code = cli::run(words, env);
  return {code, out.str(), err.str()};
}

std::vector<std::string> with_words(std::vector<std::string> words, std::initializer_list<const char*> more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Lines of a text that are commands of this program.
std::vector<std::string> commands_in(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  scalecalc ")) out.push_back(line.substr(2));
  }
  return out;
}

/// The figure that tells two plans apart to the last bit: a step's time, of a trace its first stage's.
double step_of(const nlohmann::json& row) {
  for (const char* key : {"tpot_s", "step_time_s", "forward_s"}) {
    if (row.contains(key) && row[key].is_number()) return row[key];
  }
  return 0;
}

bool has_number(const nlohmann::json& value, double number) {
  if (value.is_number()) return value.get<double>() == number;
  return value.is_structured() && std::any_of(value.begin(), value.end(),
                                              [&](const nlohmann::json& inner) { return has_number(inner, number); });
}

/// Of the words of a question.
void expect_commands_run(const std::string& question) {
  SCOPED_TRACE(question);
  const std::vector<std::string> words = shell_words(question);
  const std::vector<std::string> commands = commands_in(asked_of_command(words, 60).out);
  ASSERT_FALSE(commands.empty());
  for (const std::size_t width : {80UL, 120UL, 0UL}) {
    EXPECT_EQ(commands_in(asked_of_command(words, width).out), commands) << "at " << width << " columns";
  }
  const ToldOfCommand first = asked_of_command(with_words(words, {"--json"}));
  const nlohmann::json document = nlohmann::json::parse(first.out);
  for (const std::string& command : commands) {
    SCOPED_TRACE(command);
    std::vector<std::string> again = shell_words(command);
    ASSERT_EQ(again.front(), "scalecalc");
    again.erase(again.begin());
    if (again.front() == "sensitivity") {
      EXPECT_EQ(asked_of_command(with_words(again, {"--fixed", "-q"})).code, 0);
      continue;
    }
    const ToldOfCommand told = asked_of_command(with_words(again, {"-o", "row"}));
    ASSERT_EQ(told.code, 0) << told.err;
    const double step = step_of(nlohmann::json::parse(told.out));
    EXPECT_GT(step, 0);
    EXPECT_TRUE(first.code != 0 || has_number(document, step)) << "another plan: its step takes " << step;
    // What the command offers is itself.
    const std::vector<std::string> last = commands_in(asked_of_command(again).out);
    ASSERT_FALSE(last.empty());
    std::vector<std::string> once_more = shell_words(last.back());
    once_more.erase(once_more.begin());
    const ToldOfCommand third = asked_of_command(with_words(once_more, {"-o", "row"}));
    ASSERT_EQ(third.code, 0) << last.back() << ": " << third.err;
    EXPECT_EQ(step_of(nlohmann::json::parse(third.out)), step) << last.back();
  }
}

class NextCommand : public testing::TestWithParam<const char*> {};

TEST_P(NextCommand, IsOneLineThatRunsAndHasThePlan) { expect_commands_run(GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    OfTraining, NextCommand,
    testing::Values("train llama3-70b --hw h100-sxm --chips 64",  //
                    "train llama3-8b --hw h100-sxm --chips 8 --lora 16",
                    "train llama3-8b --hw h100-sxm --chips 8 --lora 64 --base nf4 --lora-targets q,v",
                    "train llama3-8b --hw tpu-v5p --topology 4x4x4 --objective cost",
                    "train mixtral-8x7b --hw h100-sxm --chips 64 --tokens 2T --stack any",
                    "train llama3-8b --hw h100-sxm --chips 64 --plan 2",
                    "train llama3-8b --hw h100-sxm --chips 64 --fix tp=2 --max pp=2 --remat selective",
                    "train llama3-8b --hw h100-sxm --chips 64 --remat full:auto --seq 32768 --batch-tokens 8M",
                    "train llama3-8b --hw h100-sxm --chips 16 --top 3 --variants -o table --color never",
                    "train llama3-8b --hw h100-sxm --chips 16 --why-not tp=4 --from tp=2",
                    "train llama3-8b --hw h100-sxm --chips 64 --stack megatron@0.15 --precision fp8",
                    "train llama3-8b --hw h100-sxm --chips 16 --efficiency ideal",
                    "train llama3-8b --hw h100-sxm --chips 24 --objective chips",
                    "train llama3-8b --hw h100-sxm --chips 16 --set hw.hbm.bandwidth=4TB/s --set model.layers=30",
                    "train llama3-8b --hw h100-sxm --chips 16 --seq 512..4096 --pack 8192 --mtbf 50000h",
                    "train llama3-8b --hw h100-sxm --chips 64 --stages balanced --fix pp=4",
                    "train llama3-8b --hw tpu-v5e --chips 512 --slices 2 --price 2",
                    "train llama3-8b --hw mi300x --chips 32 --measured 10s",
                    "train llama3-70b --hw h100-sxm --chips 4",  // nothing fits
                    "train llama3-8b --hw h100-sxm --chips 8,16", "train llama3-8b --hw h100-sxm --chips 16 --pareto",
                    "trace llama3-8b --hw h100-sxm --chips 16 --plan 2",
                    "trace gpt3-175b --hw a100-80g --chips 1024 --fix tp=8,pp=8",
                    "sensitivity llama3-8b --hw h100-sxm --chips 8 --set hw.hbm.bandwidth=2TB/s..8TB/s*2 --fixed",
                    "sensitivity llama3-8b --hw h100-sxm --chips 8 --set hw.hbm.bandwidth=4TB/s --fixed --swing 10%",
                    "compare llama3-8b --hw h100-sxm,tpu-v5p --chips 64",
                    "compare llama3-8b,llama3-70b --hw h100-sxm,b200 --chips 64 --remat selective",
                    "compare llama3-8b --hw tpu-v5p:2x64,h100-sxm:128@AWS --budget 4M"));

INSTANTIATE_TEST_SUITE_P(
    OfServingAndJobs, NextCommand,
    testing::Values("serve llama3-70b --hw h100-sxm --chips 8",
                    "serve llama3-70b --hw h100-sxm --chips 8 --slo-ttft 500ms --slo-tpot 30ms --prompt 4096",
                    "serve llama3-70b --hw h100-sxm,tpu-v6e --objective cost --top 3",
                    "serve llama3-70b --hw h100-sxm --chips 1",  // nothing fits
                    "serve llama3-8b --hw h100-sxm --prompt 256..4096 --generate 300 --rate 20 --slo-ttft 1s",
                    "serve llama3-70b --hw h100-sxm --rate 5 --simulate 1000",
                    "serve llama3-8b --hw h100-sxm --chips 2 --concurrency 16",
                    "serve llama3-70b --hw h100-sxm --chips 16 --disaggregate auto --prompt 2048",
                    "serve mixtral-8x7b --hw h100-sxm --chips 8 --max tp=4",
                    "serve llama3-8b --hw h100-sxm --regime static --chips 4 --batch 8,32",
                    "sensitivity serve llama3-8b --hw h100-sxm --chips 2 --prompt 2048 --generate 256 --fixed",
                    "compare llama3-70b --serve --hw h100-sxm:8,mi300x:8 --prompt 2048 --slo-tpot 50ms",
                    "rl llama3-8b --hw h100-sxm --chips 32 --prompt 512 --generate 1024 --prompts 64",
                    "rl llama3-8b --hw h100-sxm --chips 32 --prompt 512 --generate 1024 --async 1 --gen-max tp=4",
                    "distill llama3-8b --teacher llama3-70b --hw h100-sxm --chips 64 --teacher-on split"));

/// A name that a shell would take apart is quoted, and directories of files go along.
TEST(NextCommandOfFiles, IsQuotedAndKeepsItsDirectory) {
  const test::Scratch scratch;
  const std::string file =
      scratch.put("my model.json", R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"],
    "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8,
    "intermediate_size": 8192, "vocab_size": 128256, "max_position_embeddings": 8192})");
  expect_commands_run("train '" + file + "' --hw h100-sxm --chips 8 --config-dir '" + scratch.path("") + "'");
}

/// Who trains or serves is said in the first lines, with its release.
TEST(SoftwareOfAnAnswer, IsInTheFirstLines) {
  const auto says = [](const std::string& question, const std::string& what) {
    const std::string text = asked_of_command(shell_words(question)).out;
    const std::size_t at = text.find(what);
    ASSERT_NE(at, std::string::npos) << question << "\n" << text;
    EXPECT_LE(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'), 8) << question;
  };
  const std::string other = " (default; --stack NAME chooses another)";
  // The newest release of configs/stacks/torchtitan.yaml and megatron.yaml.
  says("train llama3-8b --hw h100-sxm --chips 8", "software: torchtitan 2026-08" + other);
  says("train llama3-70b --hw h100-sxm --chips 64", "software: megatron 0.19" + other);
  says("train llama3-8b --hw tpu-v5p --chips 64", "software: maxtext ");
  says("train llama3-8b --hw h100-sxm --chips 8,16", "software: torchtitan 2026-08");
  says("train llama3-8b --hw h100-sxm --chips 8 --stack megatron@0.15",
       "software: megatron 0.15 (--stack megatron@0.15)");
  says("train llama3-8b --hw h100-sxm --chips 8 --efficiency ideal", "software: none (--efficiency ideal");
  says("trace llama3-8b --hw h100-sxm --chips 8", "software: torchtitan 2026-08");
  says("sensitivity llama3-8b --hw h100-sxm --chips 8 --fixed", "software: torchtitan 2026-08");
  says("compare llama3-8b --hw h100-sxm,tpu-v5p --chips 64", "torchtitan 2026-08");
  says("serve llama3-8b --hw h100-sxm --chips 1", "engine: vllm 0.29");
  says("rl llama3-8b --hw h100-sxm --chips 32 --prompt 512 --generate 1024", "software: torchtitan 2026-08");
  says("distill llama3-8b --teacher llama3-70b --hw h100-sxm --chips 64", "software: torchtitan 2026-08");
}

}  // namespace
}  // namespace scalecalc
