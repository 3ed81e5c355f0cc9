#include "train/fill.h"

#include <gtest/gtest.h>

#include "support/fixtures.h"

namespace scalecalc {
namespace {

class BatchToFill : public testing::Test {
 protected:
  Plan fastest(double sequences) {
    PlanRequest r = request;
    r.workload.batch_seqs = sequences;
    return Planner(r).best({.top = 1}).plans.at(0);
  }
  static double busy_share(const Plan& plan) { return (plan.time.compute + plan.time.hbm).value() / plan.step_s; }

  ModelSpec model = test::dense_model();
  HardwareSpec hw = test::switched_chip();
  PlanRequest request = test::request(model, hw, 256);
};

TEST_F(BatchToFill, IsTheFirstDoublingThatKeepsChipsBusy) {
  request.workload = test::workload(2048, 2);
  const auto tokens = batch_to_fill(request, fastest(2));
  ASSERT_TRUE(tokens);
  const double sequences = *tokens / 2048;
  EXPECT_GT(sequences, 2);
  EXPECT_GE(busy_share(fastest(sequences)), kBusyShare);
  EXPECT_LT(busy_share(fastest(sequences / 2)), kBusyShare);
}

TEST_F(BatchToFill, IsNothingWhereChipsAreBusyOrHaveSequencesEnough) {
  request.workload = test::workload(2048, 1024);
  EXPECT_FALSE(batch_to_fill(request, fastest(1024)));
  Plan waiting = fastest(1024);
  waiting.step_s *= 100;
  EXPECT_FALSE(batch_to_fill(request, waiting));
}

TEST_F(BatchToFill, GivesUpWhenStopped) {
  request.workload = test::workload(2048, 8);
  EXPECT_FALSE(batch_to_fill(request, fastest(8), [] { return true; }));
}

}  // namespace
}  // namespace scalecalc
