// A plan's step as blocks: nothing of it is lost, and without a pipeline it is the closed form.
#include "cost/step_run.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "cost/stage_time.h"
#include "plan/plan_costs.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

/// The best plan of a request and its step as blocks.
struct Traced {
  explicit Traced(const PlanRequest& request) {
    const PlanResult found = scalecalc::plan(request);
    EXPECT_FALSE(found.plans.empty());
    if (found.plans.empty()) return;
    plan = found.plans.front();
    const PlanCosts<double> costs(Reader<double>{}, request, plan);
    const StepInput<double> in = costs.input();
    step = step_run(in, phases(in));
  }
  double simulated_s() const { return simulate(step.run).end_s + step.host_s; }

  Plan plan;
  StepRun step;
};

class StepRunTest : public testing::Test {
 protected:
  ModelSpec model = test::dense_model();
  HardwareSpec nodes = test::switched_chip();
};

TEST_F(StepRunTest, WithoutAPipelineItIsTheClosedForm) {
  for (const std::int64_t zero : {0, 1, 2, 3}) {
    for (const std::int64_t tp : {1, 2}) {
      PlanRequest request = test::request(model, nodes, 16);
      request.fix = {.tp = tp, .pp = 1, .zero = zero, .grad_accum = 2};
      const Traced t(request);
      EXPECT_NEAR(t.simulated_s() / t.plan.step_s, 1, 1e-12) << "zero " << zero << ", tp " << tp;
    }
  }
}

TEST_F(StepRunTest, EvenStagesWithoutTransfersAreTheClosedForm) {
  ModelSpec deep = test::dense_model(64);
  deep.vocab = 64;  // ends that weigh next to nothing
  for (const Schedule schedule :
       {Schedule::k1F1B, Schedule::kGpipe, Schedule::kInterleaved, Schedule::kZeroBubble, Schedule::kDualPipe}) {
    PlanRequest request = test::request(deep, nodes, 8);
    request.fix = {.tp = 1, .cp = 1, .pp = 8, .schedule = schedule};
    if (schedule == Schedule::kGpipe) request.fix.vpp = 1;
    Traced t(request);
    t.step.run.send_s = 0;
    const double closed = t.plan.step_s - t.plan.time.pp.value();
    // DualPipe's closed form lets a forward and a backward wait for each other (pipeline_sim_test).
    EXPECT_NEAR(t.simulated_s() / closed, 1, schedule == Schedule::kDualPipe ? 0.05 : 1e-3) << name_of(schedule);
  }
}

/// Every chunk's parts are its layers and ends, and sum to the stage times of the closed form.
TEST_F(StepRunTest, ChunksHoldTheWholeModel) {
  ModelSpec experts = test::moe_model(8);
  PlanRequest request = test::request(experts, nodes, 8);
  request.fix = {.tp = 1, .cp = 1, .pp = 4, .vpp = 2};
  const Traced t(request);
  ASSERT_EQ(t.step.chunks.size(), 8U);
  std::int64_t next = 0;
  double whole = 0;
  for (std::size_t c = 0; c < t.step.chunks.size(); ++c) {
    double chunk = 0;
    for (const ChunkPart& part : t.step.parts[c]) {
      if (part.kind == ChunkPart::Kind::kLayer) {
        EXPECT_EQ(part.layer, next++);
      }
      chunk += (part.forward.total() + part.backward.total()).value();
    }
    EXPECT_DOUBLE_EQ(chunk, t.step.run.chunks[c].forward + t.step.run.chunks[c].backward_input +
                                t.step.run.chunks[c].backward_weight);
    whole += chunk;
  }
  EXPECT_EQ(next, 8);
  EXPECT_EQ(t.step.parts.front().front().kind, ChunkPart::Kind::kEmbedding);
  EXPECT_EQ(t.step.parts.back().back().kind, ChunkPart::Kind::kHead);
  PlanCosts<double> costs(Reader<double>{}, request, t.plan);
  const StageShape on_one = partition(experts, Layout{}).front();
  EXPECT_NEAR(stage_time(costs.input(), phases(costs.input()), on_one).total().value() / whole, 1, 1e-12);
}

TEST_F(StepRunTest, EndsSumToWhatTheStepExposes) {
  nodes.efficiency.overlap_dp.value = 0.5;
  PlanRequest request = test::request(model, nodes, 16);
  for (const std::int64_t zero : {0, 1, 2}) {
    request.fix = {.tp = 1, .cp = 1, .pp = 1, .zero = zero};
    const Traced t(request);
    const StageTail& tail = t.step.run.tails.front();
    EXPECT_NEAR(tail.reduce_s + tail.gather_s, t.plan.time.dp.value(), 1e-12);
    EXPECT_EQ(tail.gather_s > 0, zero > 0) << "ZeRO 0 gathers no weights";
    EXPECT_GE(tail.reduce_hidden_s, 0);
    EXPECT_EQ(tail.update_s, t.plan.time.optimizer.value());
  }
}

}  // namespace
}  // namespace scalecalc
