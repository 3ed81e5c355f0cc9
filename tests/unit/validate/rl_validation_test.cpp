#include "validate/rl_validation.h"

#include <gtest/gtest.h>

#include "config/yaml_reader.h"

namespace scalecalc {
namespace {

std::string rl_row(const std::string& more = "") {
  const auto said = [&](const char* key) { return more.find(key) != std::string::npos; };
  return std::string("- id: a\n  source: nobody\n  model: llama3.1-8b\n  chip: h100-sxm\n  chips: 16\n") +
         (said("samples:") ? "" : "  samples: 2048\n") + "  rollouts: 32\n" +
         (said("train_batch:") ? "" : "  train_batch: 512\n") +
         (said("mean_len:") ? "" : "  mean_len: 1060\n  max_len: 4096\n") +
         "  trainer: {tp: 1, cp: 1, pp: 2}\n  engine: {tp: 1, pp: 1}\n  measured: {step_time_s: 97.7}\n" + more;
}

RlMeasurement rl_read(const std::string& more = "") {
  return read_rl_measurements(read_yaml(rl_row(more), "rl.yaml")).front();
}

RlQuestion rl_asked(const RlMeasurement& row) { return rl_question_of(row, Catalog(), {}, false); }

std::string rl_problem(const std::string& more) {
  try {
    rl_read(more);
  } catch (const UserError& error) {
    return error.diagnostics().front().message;
  }
  return "";
}

TEST(RlMeasurements, AreToldFromOtherRows) {
  EXPECT_TRUE(is_rl(read_yaml(rl_row(), "rl.yaml")));
  EXPECT_FALSE(is_serving(read_yaml(rl_row(), "rl.yaml")));
  EXPECT_FALSE(is_rl(read_yaml("- {id: a, phase: decode}\n", "serve.yaml")));
}

TEST(RlMeasurements, StepsOfTheTrainerDivideTheSamples) {
  EXPECT_EQ(rl_problem("  train_batch: 500\n"), "2048 samples are no whole number of optimizer steps of 500");
  EXPECT_EQ(rl_problem("  samples: 1040\n  train_batch: 520\n"), "1040 samples are not 32 to each prompt");
  EXPECT_EQ(rl_problem("  mean_len: 4096\n  max_len: 4096\n"), "mean_len is not below max_len");
  EXPECT_EQ(rl_problem("  ahead: 1\n"), "");
}

/// The source's mean and limit are kept, whatever the shape between them.
TEST(RlMeasurements, LengthsHaveTheMeanAndTheLimitOfTheSource) {
  for (const auto& [mean, limit] : {std::pair{1060, 4096}, {701, 1536}, {5713, 8192}, {3700, 4096}}) {
    RlMeasurement row = rl_read();
    row.mean_len = mean;
    row.max_len = limit;
    const RequestMix mix = rollouts_of(row);
    EXPECT_EQ(mix.prompt.mean(), 100);
    EXPECT_NEAR(mix.prompt.mean() + mix.generate.mean(), mean, 1e-6 * mean);
    EXPECT_EQ(mix.generate.largest(), limit - 100);
    EXPECT_LT(mix.generate.smallest(), mean - 100);
  }
  RlMeasurement row = rl_read("  prompt_len: 512\n");
  EXPECT_EQ(rollouts_of(row).prompt.mean(), 512);
  row.mean_len = 500;
  EXPECT_THROW(rollouts_of(row), NotPredicted);
}

TEST(RlMeasurements, ARowIsAQuestionWithItsLayoutsPinned) {
  const RlQuestion q = rl_asked(rl_read("  generate_precision: fp8\n"));
  EXPECT_EQ(q.prompts, 64);
  EXPECT_EQ(q.rollouts, 32);
  EXPECT_EQ(q.updates, 4);
  EXPECT_EQ(q.placement, RlPlacement::kColocated);
  EXPECT_EQ(q.train.fix.pp, 2);
  EXPECT_FALSE(q.train.fix.ep) << "a dense model has no expert ranks to pin";
  EXPECT_EQ(q.engine.fix.tp, 1);
  EXPECT_EQ(q.engine.weights->weights, WeightFormat::kFp8);
  const RlQuestion ahead = rl_asked(rl_read("  ahead: 1\n"));
  EXPECT_EQ(ahead.placement, RlPlacement::kSplit);
  EXPECT_EQ(ahead.depth, 1);
}

TEST(RlMeasurements, WhatASourceLeavesOutIsCountedAndNotPredicted) {
  const RlMeasurement row = read_rl_measurements(read_yaml("- {id: a, source: nobody, model: llama3.1-8b, chip: h20, "
                                                           "chips: 8, complete: false, samples: null, "
                                                           "measured: {train_mfu_pct: 40}}\n",
                                                           "rl.yaml"))
                                .front();
  EXPECT_THROW(rl_asked(row), NotPredicted);
  RlMeasurement other = rl_read("  algorithm: swe\n");
  EXPECT_THROW(rl_asked(other), NotPredicted);
}

TEST(RlMeasurements, AStepIsPredictedByItsParts) {
  RlValidateQuestion question{.rows = {rl_read(), [] {
                                         RlMeasurement row = rl_read();
                                         row.id = "b";
                                         row.complete = false;
                                         return row;
                                       }()}};
  const RlValidation found = validate_rl(question, Catalog());
  ASSERT_EQ(found.rows.size(), 1U);
  EXPECT_EQ(found.skipped.size(), 1U);
  const PredictedRl& row = found.rows.front();
  double sum = 0;
  for (const auto& [part, seconds] : row.time_s) sum += seconds;
  EXPECT_NEAR(row.predicted, sum, 1e-9 * sum);
  EXPECT_DOUBLE_EQ(row.error, row.predicted / 97.7 - 1);
  EXPECT_EQ(row.trainer->pp, 2);
}

}  // namespace
}  // namespace scalecalc
