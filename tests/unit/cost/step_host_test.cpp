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

}  // namespace
}  // namespace scalecalc
