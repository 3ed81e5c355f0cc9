#include <gtest/gtest.h>

#include "plan/request.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

/// [HOST] Neither kernels nor collectives of compiled work are launched one by one.
TEST(HostLaunches, CompiledTensorRanksWaitForNothing) {
  const HardwareSpec hw = test::switched_chip();
  const ModelSpec model = test::dense_model(4);
  PlanRequest request = test::request(model, hw, 8);
  request.fix = {.tp = 8, .cp = 1, .pp = 1, .micro_batch_seqs = 1, .remat = Remat::kNone};
  request.workload.runtime.compiled = true;
  const Plan free = plan(request).plans.at(0);
  request.efficiency.host_overhead.value = 1;
  const Plan same = plan(request).plans.at(0);
  EXPECT_EQ(same.step_s, free.step_s);
  request.workload.runtime.compiled = false;
  EXPECT_GT(plan(request).plans.at(0).step_s, free.step_s);
}

/// A ring of four passes three pieces on forward and twice as many backward, where one gather and two bring all: six
/// launches more a layer, which take a second each.
TEST(HostLaunches, EveryPieceOfARingIsOne) {
  const HardwareSpec hw = test::switched_chip();
  const ModelSpec model = test::dense_model(4);
  PlanRequest request = test::request(model, hw, 4);
  request.fix = {.tp = 1, .cp = 4, .pp = 1, .zero = 0, .micro_batch_seqs = 1, .remat = Remat::kNone};
  request.efficiency.host_overhead.value = 1;
  request.fix.cp_comm = CpComm::kAllGather;
  const Plan gather = plan(request).plans.at(0);
  request.fix.cp_comm = CpComm::kRing;
  const Plan ring = plan(request).plans.at(0);
  EXPECT_NEAR(ring.step_s - gather.step_s, 6.0 * 4 * static_cast<double>(ring.layout.grad_accum), 1e-3);
  request.fix.cp_comm = CpComm::kUlysses;
  const Plan ulysses = plan(request).plans.at(0);
  EXPECT_NEAR(ulysses.step_s - gather.step_s, (8.0 - 3) * 4 * static_cast<double>(ring.layout.grad_accum), 1e-3);
}

/// Each prediction module keeps what a layer does, and its use of the head.
TEST(PredictionModules, KeepAsMuchEach) {
  const HardwareSpec hw = test::switched_chip();
  for (const Remat remat : {Remat::kNone, Remat::kFull}) {
    const auto activations = [&](std::int64_t modules) {
      ModelSpec model = test::dense_model(1);
      model.mtp_layers = modules;
      PlanRequest request = test::request(model, hw, 1);
      request.fix = {.tp = 1, .cp = 1, .pp = 1, .micro_batch_seqs = 1, .remat_layers = 0, .remat = remat};
      return plan(request).plans.at(0).memory.activations.value();
    };
    const double one = activations(1), two = activations(2), three = activations(3);
    EXPECT_GT(two, one);
    EXPECT_NEAR(two - one, three - two, 1e-9 * three);
    EXPECT_NEAR(one - activations(0), two - one, 1e-9 * three);
  }
}

}  // namespace
}  // namespace scalecalc
