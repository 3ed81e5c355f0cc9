#include "train/step_trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "base/diagnostic.h"
#include "config/catalog.h"
#include "plan/plan_costs.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

TrainAnswer ask_fixed(LayoutFilter fix) {
  TrainQuestion q{.model = "llama3-8b", .hardware = "h100-sxm", .chips = 64};
  q.stack = "any";
  q.fix = fix;
  q.fix.loss = LossKind::kWhole;
  return answer(q, Catalog());
}

TEST(StepTrace, EveryStageAccountsForTheWholeStep) {
  for (const LayoutFilter& fix :
       {LayoutFilter{.pp = 1}, LayoutFilter{.pp = 4, .vpp = 1}, LayoutFilter{.pp = 4, .vpp = 4},
        LayoutFilter{.pp = 8, .schedule = Schedule::kGpipe}, LayoutFilter{.pp = 4, .schedule = Schedule::kZeroBubble},
        LayoutFilter{.pp = 4, .schedule = Schedule::kDualPipe}}) {
    const TrainAnswer a = ask_fixed(fix);
    ASSERT_FALSE(a.plans.empty());
    const StepTrace trace = trace_step(a, a.plans.front().plan);
    EXPECT_NEAR(trace.simulated_s / a.plans.front().plan.step_s, 1, 0.02);
    std::int64_t layers = 0;
    for (const StageFigures& stage : trace.stages) {
      EXPECT_NEAR((stage.busy_s + stage.end_s + stage.idle_s) / trace.simulated_s, 1, 1e-9);
      layers += stage.layers / stage.holds.parts;
    }
    EXPECT_EQ(layers, a.model.layers());
  }
}

TEST(StepTrace, ActivationsAreThoseOfTheMemoryFigures) {
  const TrainAnswer a = ask_fixed({.pp = 4, .vpp = 1});
  ASSERT_FALSE(a.plans.empty());
  const StepTrace trace = trace_step(a, a.plans.front().plan);
  const double counted = a.plans.front().plan.memory.activations.value();
  EXPECT_TRUE(std::any_of(trace.stages.begin(), trace.stages.end(), [&](const StageFigures& stage) {
    return std::fabs(stage.activation_bytes / counted - 1) < 1e-12;
  }));
}

TEST(StepTrace, AStepTooLongToDrawIsAWrongQuestion) {
  const TrainAnswer a = ask_fixed({.pp = 4, .vpp = 1});
  ASSERT_FALSE(a.plans.empty());
  Plan endless = a.plans.front().plan;
  endless.layout.grad_accum = 100'000;
  EXPECT_THROW(trace_step(a, endless), UserError);
}

/// Simulated over closed form, both without transfers, of the model on `pp` stages with `m` microbatches or more;
/// nothing where no such plan exists.
std::optional<double> simulated_share(const ModelSpec& model, const HardwareSpec& hw, std::int64_t pp, std::int64_t m,
                                      Schedule schedule, std::optional<std::int64_t> vpp = {}) {
  PlanRequest request = test::request(model, hw, pp);
  request.workload = test::workload(2048, static_cast<double>(m));
  request.top = 1;
  request.threads = 1;
  request.fix = {.dp = 1,
                 .fsdp = 1,
                 .tp = 1,
                 .cp = 1,
                 .pp = pp,
                 .ep = 1,
                 .zero = 0,
                 .micro_batch_seqs = 1,
                 .remat = Remat::kSelective,
                 .schedule = schedule};
  request.fix.vpp = vpp;
  const PlanResult found = plan(request);
  if (found.plans.empty()) return std::nullopt;
  const Plan& p = found.plans.front();
  const PlanCosts<double> costs(Reader<double>{}, request, p);
  const StepInput<double> in = costs.input();
  StepRun step = step_run(in, phases(in));
  step.run.send_s = 0;
  return (simulate(step.run).end_s + step.host_s) / (p.step_s - p.time.pp.value());
}

/// docs/model.md, [BUBBLE], quotes these bounds: the closed form knows how long each stage takes, not how its time is
/// spread over phases and chunks. A model outside of them is a reason to look at both.
TEST(StepTrace, ClosedFormAgainstSimulationOverTheCatalog) {
  HardwareSpec hw = test::shipped_chip("h100-sxm");
  hw.hbm_capacity = Bytes(1e16);
  for (const std::string& name : Catalog().names(CatalogKind::kModel)) {
    const ModelSpec model = test::shipped_model(name);
    const bool alike = std::all_of(model.layer_kind.begin(), model.layer_kind.end(),
                                   [&](std::uint8_t kind) { return kind == model.layer_kind.front(); });
    for (const std::int64_t pp : {2, 3, 4, 6, 8, 12, 16}) {
      for (const std::int64_t m : {pp, 2 * pp, 4 * pp}) {
        for (const Schedule schedule : {Schedule::kGpipe, Schedule::k1F1B, Schedule::kInterleaved}) {
          const std::optional<double> share = simulated_share(
              model, hw, pp, m, schedule, schedule == Schedule::kGpipe ? std::optional<std::int64_t>(1) : std::nullopt);
          if (!share) continue;
          const bool known = schedule != Schedule::kInterleaved || alike;
          const double most = known ? 1.05 : 1.49;
          const double least = schedule == Schedule::k1F1B ? 0.87 : 0.92;
          EXPECT_TRUE(*share >= least && *share <= most)
              << name << ", " << name_of(schedule) << ", pp " << pp << ", m " << m << ": " << *share;
        }
      }
    }
  }
}

/// The circular pipeline of MaxText and Pax, GPipe whose stages hold several chunks; the bounds are those of [BUBBLE].
TEST(StepTrace, CircularPipelinesAgainstSimulationOverTheCatalog) {
  HardwareSpec hw = test::shipped_chip("h100-sxm");
  hw.hbm_capacity = Bytes(1e16);
  for (const std::string& name : Catalog().names(CatalogKind::kModel)) {
    const ModelSpec model = test::shipped_model(name);
    for (const std::int64_t pp : {2, 4, 8}) {
      for (const std::int64_t vpp : {2, 4}) {
        for (const std::int64_t m : {pp, 2 * pp}) {
          const std::optional<double> share = simulated_share(model, hw, pp, m, Schedule::kGpipe, vpp);
          if (!share) continue;
          EXPECT_TRUE(*share >= 0.94 && *share <= 1.10)
              << name << ", pp " << pp << ", vpp " << vpp << ", m " << m << ": " << *share;
        }
      }
    }
  }
}

}  // namespace
}  // namespace scalecalc
