#include "batch/job_script.h"

#include <gtest/gtest.h>

namespace scalecalc {
namespace {

TEST(JobScript, EveryEngineRunsEveryShardOfThePlan) {
  for (std::size_t i = 0; i < kJobEngines.size(); ++i) {
    const std::string text = job_script(static_cast<JobEngine>(i), {"out/dir", 24, 2});
    EXPECT_NE(text.find("out/dir"), std::string::npos) << text;
    EXPECT_NE(text.find("24"), std::string::npos) << text;
    EXPECT_NE(text.find("batch merge out/dir"), std::string::npos) << text;
    EXPECT_EQ(text.find("TASK_COUNT"), std::string::npos) << text;
  }
}

TEST(JobScript, SlurmCountsFromZeroToTheLast) {
  const std::string text = job_script(JobEngine::kSlurm, {"out", 24, 2});
  EXPECT_NE(text.find("array=${1:-0-23}"), std::string::npos) << text;
  EXPECT_NE(text.find("--kill-on-invalid-dep=yes"), std::string::npos) << text;
}

}  // namespace
}  // namespace scalecalc
