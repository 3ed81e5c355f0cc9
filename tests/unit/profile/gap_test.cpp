#include "profile/gap.h"

#include <gtest/gtest.h>

#include <cmath>

#include "config/catalog.h"
#include "config/yaml_reader.h"
#include "profile/kernel_rows.h"
#include "unit/profile/recordings.h"
#include "validate/kernel_measurement.h"

namespace scalecalc {
namespace {

TEST(Gap, BothColumnsSumToTheirStep) {
  TrainQuestion q{.model = "llama3-8b", .hardware = "h100-sxm", .chips = 8};
  const TrainAnswer job = answer(q, Catalog());
  const ProfileAnswer found = test::profiled(test::recorded("kineto.json"));
  const GapAnswer gap = explain_gap(found, job, job.plans.front());
  double measured = 0, predicted = 0, last = INFINITY;
  for (const GapTerm& term : gap.terms) {
    measured += term.measured_s;
    predicted += term.predicted_s;
    EXPECT_LE(std::abs(term.more_s()), last);
    last = std::abs(term.more_s());
  }
  EXPECT_NEAR(measured, found.step_s, 1e-12);
  EXPECT_NEAR(predicted / job.plans.front().plan.step_s, 1, 1e-9);
  EXPECT_NEAR(gap.flops / (job.plans.front().figures.hfu * 989.4e12 * job.plans.front().plan.step_s), 1, 1e-3);
}

// 40 us for the product, 10 us for the sum, of which calibrate is told nothing: it is too short.
TEST(Gap, KernelRowsAreWhatCalibrateReads) {
  const KernelRows rows = kernel_rows(test::profiled(test::recorded("kineto.json")));
  const auto read = read_kernels(read_yaml(rows.yaml, "kernels.yaml"));
  ASSERT_EQ(read.size(), rows.count);
  ASSERT_EQ(read.size(), 1U);
  EXPECT_NEAR(read.front().seconds, 40e-6, 1e-12);
  const Matmul& product = std::get<Matmul>(std::get<RooflineQuestion>(read.front().work).operations.front());
  EXPECT_EQ(product.rows * product.contraction * product.columns, 1e9);
}

}  // namespace
}  // namespace scalecalc
