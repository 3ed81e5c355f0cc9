#include "train/step_operations.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/fixtures.h"

namespace scalecalc {
namespace {

TEST(StepOperations, AMatmulReadsItsOperandsAndWritesItsProduct) {
  TrainAnswer a{.model = test::dense_model(), .hw = test::switched_chip(), .workload = test::workload()};
  a.efficiency = a.hw.efficiency;
  Plan plan;
  plan.layout = {.tp = 2, .micro_batch_seqs = 3};
  const std::vector<StepOperation> operations = step_operations(a, plan);
  // The head: 3 sequences of 2048 tokens, 1024 wide, onto half of 32000 words, all of two bytes.
  const auto head = std::find_if(operations.begin(), operations.end(), [](const StepOperation& o) {
    return o.name.starts_with("head: ") && o.flops == 2.0 * 3 * 2048 * 1024 * 16000;
  });
  ASSERT_NE(head, operations.end());
  EXPECT_DOUBLE_EQ(head->bytes, 2.0 * (3 * 2048 * 1024 + 1024 * 16000 + 3.0 * 2048 * 16000));
  for (const StepOperation& o : operations) {
    EXPECT_LE(o.flops / o.time_s, 100e12) << o.name << " under the chip's peak";
    EXPECT_LE(o.bytes / o.time_s, 1e12 * (1 + 1e-12)) << o.name << " under its memory's";
  }
}

}  // namespace
}  // namespace scalecalc
