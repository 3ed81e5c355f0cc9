// What the scripts do with names is tried on real engines: tests/batch/hostile_test.py.
#include "batch/job_script.h"

#include <gtest/gtest.h>

#include "support/errors.h"

namespace scalecalc {
namespace {

std::string script(JobEngine engine, const std::string& directory) { return job_script(engine, {directory, 24, 2}); }

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(JobScript, EveryEngineRunsEveryShardOfThePlan) {
  for (std::size_t i = 0; i < kJobEngines.size(); ++i) {
    const std::string text = script(static_cast<JobEngine>(i), "out/dir");
    EXPECT_TRUE(holds(text, "out/dir")) << text;
    EXPECT_TRUE(holds(text, "24")) << text;
    EXPECT_TRUE(holds(text, "batch merge ")) << text;
    EXPECT_FALSE(holds(text, "TASK_COUNT")) << text;
  }
}

TEST(JobScript, SlurmCountsFromZeroToTheLast) {
  const std::string text = script(JobEngine::kSlurm, "out");
  EXPECT_TRUE(holds(text, "array=${1:-0-23}")) << text;
  EXPECT_TRUE(holds(text, "--kill-on-invalid-dep=yes")) << text;
}

TEST(JobScript, WhatAnEngineReadsInANameIsEscaped) {
  EXPECT_TRUE(holds(script(JobEngine::kSlurm, "a%j"), "--output=a%%j/slurm-%a.log"));
  EXPECT_TRUE(holds(script(JobEngine::kSlurm, "a\\b"), "--output=/dev/null")) << "a backslash turns %a off";
  EXPECT_TRUE(holds(script(JobEngine::kKubernetes, "a$(HOME)"), R"x("run", "a$$(HOME)",)x"));
  EXPECT_TRUE(holds(script(JobEngine::kSnakemake, "a{b}"), R"(DIR = "a{b}")"));
  EXPECT_TRUE(holds(script(JobEngine::kSnakemake, "a{b}"), R"(output: "a{{b}}/results.jsonl")"));
  const std::string parallel = script(JobEngine::kParallel, "a{=b=}");
  const std::string run = parallel.substr(parallel.find("scalecalc batch run"));
  EXPECT_FALSE(holds(run.substr(0, run.find('\n')), "{=")) << run;
  for (std::size_t i = 0; i < kJobEngines.size(); ++i) {
    EXPECT_TRUE(holds(script(static_cast<JobEngine>(i), "-x"), "./-x")) << "a dash makes a flag of a word";
  }
}

TEST(JobScript, ANameThatIsNoTextIsRefused) {
  EXPECT_TRUE(holds(test::problems_of([] { script(JobEngine::kSlurm, "a\xff"); }), "no UTF-8"));
}

}  // namespace
}  // namespace scalecalc
