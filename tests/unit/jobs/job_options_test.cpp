#include "jobs/job_options.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/diagnostic.h"

namespace scalecalc::cli {
namespace {

Arguments arguments(const Command& command, std::initializer_list<std::pair<const char*, const char*>> flags) {
  Arguments::Values values;
  for (const auto& [flag, value] : flags) values[flag].push_back(value);
  return Arguments::of(command, {"llama3-8b"}, std::move(values));
}

TEST(JobOptions, NoFlagStandsTwice) {
  for (const auto flags : {distill_flags(), rl_flags()}) {
    std::set<std::string_view> names;
    for (const Flag& flag : flags) EXPECT_TRUE(names.insert(flag.name).second) << flag.name;
  }
}

TEST(JobOptions, TrainerAndEngineEachGetTheirPins) {
  const RlQuestion q = rl_question(arguments(rl_command(), {{"--hw", "h100-sxm"},
                                                            {"--chips", "16"},
                                                            {"--prompt", "256"},
                                                            {"--generate", "128..1024"},
                                                            {"--fix", "tp=2"},
                                                            {"--gen-fix", "tp=4"},
                                                            {"--gen-max", "pp=1"},
                                                            {"--kv", "fp8"}}));
  EXPECT_EQ(q.train.fix.tp, 2);
  EXPECT_EQ(q.engine.fix.tp, 4);
  EXPECT_EQ(q.engine.max.pp, 1);
  EXPECT_EQ(q.engine.kv, WeightFormat::kFp8);
  EXPECT_EQ(q.engine.model, q.train.model);
  EXPECT_EQ(q.engine.hardware, std::vector<std::string>{"h100-sxm"});
  EXPECT_EQ(q.engine.chips, 16);
  EXPECT_EQ(q.mix.generate.largest(), 1024);
}

TEST(JobOptions, RlNeedsLengths) {
  try {
    rl_question(arguments(rl_command(), {{"--hw", "h100-sxm"}, {"--chips", "16"}}));
    FAIL() << "accepted";
  } catch (const UserError& error) {
    EXPECT_EQ(error.diagnostics().size(), 2U);
  }
}

TEST(JobOptions, SetsOfTheModelAreTheStudents) {
  const DistillQuestion q = distill_question(arguments(distill_command(), {{"--hw", "h100-sxm"},
                                                                           {"--chips", "16"},
                                                                           {"--teacher", "llama3-70b"},
                                                                           {"--teacher-weights", "fp8"},
                                                                           {"--set", "model.d_ff=1024"}}));
  EXPECT_EQ(q.student.set.size(), 1U);
  EXPECT_TRUE(q.teacher.set.empty());
  ASSERT_TRUE(q.teacher.weights.has_value());
  EXPECT_EQ(q.teacher.weights->weights, WeightFormat::kFp8);
  EXPECT_EQ(q.teacher.model, "llama3-70b");
}

}  // namespace
}  // namespace scalecalc::cli
