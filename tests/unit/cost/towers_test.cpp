// A tower whose layers are the model's, and which reads each token once, is more layers of the model.
#include <gtest/gtest.h>

#include "cost/step.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

/// `in_tower` of 8 layers stand in a tower that is one with the model's own weights or beside them.
ModelSpec with_tower_of(std::int64_t in_tower, double per_token = 1) {
  ModelSpec model = test::dense_model(8 - in_tower);
  TowerSpec tower;
  tower.network = test::dense_model(in_tower);
  tower.network.final_norm = false;
  tower.counted = true;
  tower.per_token = per_token;
  model.towers = {tower};
  return model;
}

Plan only(const ModelSpec& model, Remat remat, std::int32_t zero) {
  const HardwareSpec hw = test::switched_chip();
  PlanRequest request = test::request(model, hw, 8);
  request.fix = {
      .dp = zero == 3 ? 1 : 8, .tp = 1, .cp = 1, .pp = 1, .zero = zero, .micro_batch_seqs = 1, .remat = remat};
  const PlanResult result = plan(request);
  EXPECT_FALSE(result.plans.empty());
  return result.plans.empty() ? Plan{} : result.plans.front();
}

TEST(Towers, AreLayersInTimeAndMemory) {
  const ModelSpec layers = test::dense_model(8), tower = with_tower_of(5);
  for (const Remat remat : {Remat::kNone, Remat::kSelective, Remat::kFull}) {
    for (const std::int32_t zero : {0, 3}) {
      const Plan a = only(layers, remat, zero), b = only(tower, remat, zero);
      const std::string which = std::string(name_of(remat)) + ", zero " + std::to_string(zero);
      // The tower's ends read and write d_model once more a token.
      EXPECT_NEAR(b.step_s / a.step_s, 1, 2e-3) << which;
      EXPECT_NEAR(b.time.compute.value() / a.time.compute.value(), 1, 2e-3) << which;
      EXPECT_NEAR(b.memory.activations.value() / a.memory.activations.value(), 1, 1e-9) << which;
      EXPECT_NEAR(b.memory.weights.value() / a.memory.weights.value(), 1, 1e-9) << which;
      EXPECT_NEAR(b.memory.buffers.value(), a.memory.buffers.value(), 1) << which;
    }
  }
}

/// A tower that is shown nothing is held, and nothing else.
TEST(Towers, ThatReadNothingAreHeldAlone) {
  const ModelSpec without = test::dense_model(3), idle = with_tower_of(5, 0);
  const Plan a = only(without, Remat::kFull, 3), b = only(idle, Remat::kFull, 3);
  EXPECT_EQ(b.memory.activations.value(), a.memory.activations.value());
  EXPECT_EQ(b.memory.buffers.value(), a.memory.buffers.value());
  EXPECT_EQ(b.time.compute.value(), a.time.compute.value());
  EXPECT_GT(b.memory.weights.value(), a.memory.weights.value());
}

}  // namespace
}  // namespace scalecalc
