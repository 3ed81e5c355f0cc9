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

/// Tensor ranks that wait show all of what they send, whatever may hide.
TEST(TensorOverlap, IsNoneBeforeItsStackHadIt) {
  const HardwareSpec hw = test::switched_chip();
  const ModelSpec model = test::dense_model(4);
  PlanRequest request = test::request(model, hw, 8);
  request.fix = {.tp = 8, .cp = 1, .pp = 1, .zero = 0, .micro_batch_seqs = 1, .remat = Remat::kNone};
  request.workload.runtime.hides_tensor = false;
  const Plan waits = plan(request).plans.at(0);
  request.workload.runtime.hides_tensor = true;
  request.workload.tp_overlap = CommOverlap::kNone;
  EXPECT_EQ(waits.step_s, plan(request).plans.at(0).step_s);
  request.workload.tp_overlap = CommOverlap::kStack;
  EXPECT_GT(waits.step_s, plan(request).plans.at(0).step_s);
}

/// [EXPERT-GATHER] A step loses no more than the experts' matmuls, under which their weights then hide no longer; one
/// without experts is the same. Of 64 experts of 1,024 by 1,024 and 4,096 rows a matmul moves 134.2 + 2 x 8.4 MB at 1
/// TB/s, a weight gradient 2 x 8.4 and 8 bytes of each of 67.1 M: 3 x 2 x 151 and 3 x 554 us a layer.
TEST(ExpertGathers, HideUnderWhatIsBesideExperts) {
  const HardwareSpec hw = test::switched_chip();
  ModelSpec experts = test::moe_model(4);
  experts.moe->experts = 64;
  const auto step = [&](const ModelSpec& model, bool waits) {
    PlanRequest request = test::request(model, hw, 64);
    request.fix = {.dp = 1, .tp = 1, .cp = 1, .pp = 1, .ep = 1, .zero = 3, .micro_batch_seqs = 1};
    request.fix.remat = Remat::kNone;
    request.workload.runtime.expert_gathers_wait = waits;
    return plan(request).plans.at(0);
  };
  const Plan free = step(experts, false), waits = step(experts, true);
  EXPECT_GT(waits.step_s, free.step_s);
  const double layer = 3 * (2 * 151e-6 + 554e-6);
  EXPECT_LE(waits.step_s - free.step_s, 3 * layer * static_cast<double>(free.layout.grad_accum) * 1.01);
  EXPECT_EQ(step(test::dense_model(4), true).step_s, step(test::dense_model(4), false).step_s);
}

/// [SCATTER-WAIT] Where all may hide and scatters wait, these show and gathers do not. Gradients of a layer, 15.2 M
/// parameters in fp32, reach 8 x 8 chips in 60.8 MB x 7/8 over 400 GB/s, 133 us; those of four layers, embedding and
/// head, 126 M, in 1.1 ms, and some latencies.
TEST(GradientScatters, ShowWhereTheyWait) {
  const HardwareSpec hw = test::switched_chip();
  const ModelSpec model = test::dense_model(4);
  const auto step = [&](bool hides, std::int64_t zero) {
    PlanRequest request = test::request(model, hw, 64);
    request.fix = {.dp = zero < 3 ? 64 : 1, .tp = 1, .cp = 1, .pp = 1, .zero = zero, .micro_batch_seqs = 1};
    request.fix.remat = Remat::kNone;
    request.workload.runtime.hides_scatters = hides;
    return plan(request).plans.at(0);
  };
  const Plan hidden = step(true, 3), waits = step(false, 3);
  const double microbatches = static_cast<double>(hidden.layout.grad_accum);
  EXPECT_GE(waits.step_s - hidden.step_s, 4 * 133e-6 * microbatches * 0.999);
  EXPECT_LE(waits.step_s - hidden.step_s, 1.5e-3 * microbatches);
  EXPECT_EQ(step(false, 1).step_s, step(true, 1).step_s) << "without ZeRO-3 nothing is scattered layer by layer";
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
