// What --explain prints of every command that has it: lines that can be read, and sums that add up.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/text.h"
#include "cli/run.h"

namespace scalecalc::cli {
namespace {

using nlohmann::ordered_json;
using Words = std::vector<std::string>;

constexpr std::size_t kLongestLine = 200;

std::string printed(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  std::ostringstream out, err;
  Environment env{.out = out, .err = err};
  EXPECT_EQ(run(words, env), 0) << err.str();
  return out.str();
}

/// Lines of the sections of formulas; what is assumed is no formula.
Words explained_lines(const std::string& text) {
  Words out;
  bool inside = false;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.front() != ' ') inside = line.starts_with("Explained");
    if (inside) out.push_back(line);
  }
  return out;
}

/// The terms of a sum, if each is a result told before.
std::vector<double> terms(const std::string& formula, const std::map<std::string, double>& told) {
  std::vector<double> out;
  for (std::size_t from = 0; from <= formula.size();) {
    const std::size_t to = std::min(formula.find(" + ", from), formula.size());
    const auto term = told.find(formula.substr(from, to - from));
    if (term == told.end()) return {};
    out.push_back(term->second);
    from = to + 3;
  }
  return out;
}

/// Every sum of results equals its own result; returns the names of the sums. `told`: inputs that sums may have.
Words checked_sums(const ordered_json& section, std::map<std::string, double> told) {
  Words out;
  for (const ordered_json& step : section["steps"]) {
    const std::string name = step["name"];
    const double value = step["value"];
    const std::vector<double> addends = terms(step["formula"], told);
    if (addends.size() > 1) {
      double sum = 0;
      for (const double term : addends) sum += term;
      EXPECT_NEAR(sum, value, 1e-9 * std::abs(value)) << name << " = " << step["formula"];
      out.push_back(name);
    }
    told[name.starts_with("part ") ? name.substr(0, name.find(" of ")) : name] = value;  // as formulas call it
  }
  return out;
}

struct ExplainAsked {
  const char* name;
  std::string words;
  Words sums;  ///< results that must be sums of results told before
};

Words words_of(const std::string& text) {
  Words out;
  std::istringstream in(text);
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

class Explain : public testing::TestWithParam<ExplainAsked> {};

TEST_P(Explain, IsReadableAndAddsUp) {
  const Words words = words_of(GetParam().words);
  const Words lines = explained_lines(printed(words, {"--explain"}));
  EXPECT_GT(lines.size(), 3u);
  for (const std::string& line : lines) {
    EXPECT_LE(line.size(), kLongestLine) << line;
    EXPECT_EQ(line.find("max(0, max("), std::string::npos) << line;
    EXPECT_EQ(line.find("(0 + "), std::string::npos) << line;
    EXPECT_FALSE(line.find("= 0 + ") != std::string::npos) << line;
  }
  const ordered_json document = ordered_json::parse(printed(words, {"--explain", "--json"}));
  std::map<std::string, double> inputs;
  // A member that is missing may not be asked for of a const document.
  const ordered_json::json_pointer reserve("/plans/0/memory_bytes/reserve");
  if (document.contains(reserve)) inputs["efficiency.memory_reserve"] = document[reserve];
  Words sums;
  for (const ordered_json& section : document["explain"]) {
    for (const std::string& name : checked_sums(section, inputs)) sums.push_back(name);
  }
  for (const std::string& wanted : GetParam().sums) {
    EXPECT_NE(std::find(sums.begin(), sums.end(), wanted), sums.end()) << wanted << " is no sum of results told before";
  }
}

const std::string kTrainWords = "train llama3-8b --hw h100-sxm --top 1 --chips ";
const Words kStep{"step time", "memory on the fullest chip"};

INSTANTIATE_TEST_SUITE_P(
    Commands, Explain,
    testing::Values(
        ExplainAsked{"dense", kTrainWords + "8 --fix tp=2,dp=4", kStep},
        ExplainAsked{"fsdp", kTrainWords + "16 --fix fsdp=16,zero=3", kStep},
        ExplainAsked{"context", kTrainWords + "16 --fix cp=2,tp=2 --fix zero=2", kStep},
        ExplainAsked{"pipeline", kTrainWords + "16 --fix pp=4,tp=2,dp=2 --fix schedule=1f1b", kStep},
        ExplainAsked{"interleaved", kTrainWords + "16 --fix pp=4,vpp=2,tp=2,dp=2", kStep},
        ExplainAsked{"zero_bubble", kTrainWords + "16 --fix pp=4,tp=2,dp=2 --fix schedule=zero-bubble --stack any",
                     kStep},
        ExplainAsked{"dualpipe", kTrainWords + "16 --fix pp=4,tp=2,dp=2 --fix schedule=dualpipe --stack any", kStep},
        ExplainAsked{"moe", "train mixtral-8x7b --hw h100-sxm --top 1 --chips 32 --fix ep=8", kStep},
        ExplainAsked{"offload", "train llama3-70b --hw h100-sxm --top 1 --chips 8 --fix tp=8", kStep},
        ExplainAsked{"lora", kTrainWords + "8 --lora 16 --fix fsdp=8", kStep},
        ExplainAsked{"torus", "train llama3-8b --hw tpu-v5p --top 1 --chips 64 --fix tp=4", kStep},
        ExplainAsked{"ideal", kTrainWords + "8 --efficiency ideal --fix tp=2", kStep},
        ExplainAsked{"failures", kTrainWords + "64 --fix tp=2 --mtbf 50000h --storage-bandwidth 100GB/s", kStep},
        ExplainAsked{
            "serve", "serve llama3-8b --hw h100-sxm --chips 4 --batch 16 --prompt 1024 --generate 128", {"step"}},
        ExplainAsked{"serve_moe",
                     "serve mixtral-8x7b --hw h100-sxm --chips 8 --batch 32 --prompt 1024 --generate 128",
                     {"step"}},
        ExplainAsked{"bounds", "bounds 13B --hw book/tpu-v5p --for training --pods 2 --batch-tokens 16M", {}},
        ExplainAsked{
            "bounds_serving", "bounds 70B --hw book/tpu-v5e --for serving --weights int8 --batch 32 --chips 8", {}},
        ExplainAsked{
            "collective", "collective all-reduce --hw h100-sxm --group 64 --bytes 64MiB --convention exact", {}},
        ExplainAsked{
            "matmul", "matmul A[I_X,J]*B[J,K] --hw book/tpu-v5e --mesh X=4 --dims I=1024,J=8192,K=8192 --top 1", {}},
        ExplainAsked{"roofline", "roofline matmul 512x8192x28672 --hw book/tpu-v5e --weight int8", {}},
        ExplainAsked{"hw", "hw tpu-v5p --topology 4x4x8", {}}, ExplainAsked{"model", "model llama3-8b --seq 8192", {}},
        ExplainAsked{"design", "model design --hw tpu-v5p --chips 64 --deadline 20d --top 1", {}},
        ExplainAsked{"scaling_law",
                     "scaling-law --budget 5M --hw h100-sxm --mfu 40% --inference-tokens 10T --serve-mfu 10%",
                     {}},
        ExplainAsked{
            "distill", "distill llama3.1-8b --teacher llama3.1-70b --hw h100-sxm --chips 64 --tokens 100B", {}},
        ExplainAsked{
            "rl", "rl llama3.1-8b --hw h100-sxm --chips 16 --prompts 64 --rollouts 8 --prompt 256 --generate 256", {}},
        ExplainAsked{"sensitivity", "sensitivity gpt2-1.5b --hw h100-sxm --chips 1 --batch-seqs 8 --fixed", {}},
        ExplainAsked{"compare", "compare llama3-8b --hw h100-sxm,tpu-v5p --chips 64", {}}),
    [](const auto& asked) { return std::string(asked.param.name); });

}  // namespace
}  // namespace scalecalc::cli
