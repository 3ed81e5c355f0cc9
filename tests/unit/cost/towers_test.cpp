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
  tower.network.vocab = 0;  // it reads what it is given
  tower.network.final_norm = false;
  tower.counted = true;
  tower.per_token = per_token;
  model.towers = {tower};
  return model;
}

Plan only(const ModelSpec& model, const LayoutFilter& fix) {
  HardwareSpec hw = test::switched_chip();
  if (fix.offload) hw.offload = OffloadMemory{.capacity = Bytes(1e12), .bandwidth = BytesPerSecond(1e11)};
  PlanRequest request = test::request(model, hw, 8);
  request.fix = fix;
  request.fix.pp = 1;
  request.fix.micro_batch_seqs = 1;
  const PlanResult result = plan(request);
  EXPECT_FALSE(result.plans.empty());
  return result.plans.empty() ? Plan{} : result.plans.front();
}

Plan only(const ModelSpec& model, Remat remat, std::int32_t zero) {
  return only(model, {.dp = zero == 3 ? 1 : 8, .tp = 1, .cp = 1, .zero = zero, .remat = remat});
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

/// Tensor ranks divide a tower's weights and work as the model's own, context ranks exchange its keys and values too.
TEST(Towers, AreLayersOfTensorAndContextRanks) {
  for (const std::int32_t sp : {0, 1}) {
    for (const std::int64_t cp : {1, 2}) {
      for (const bool counted : {true, false}) {
        ModelSpec tower = with_tower_of(5);
        tower.towers.front().counted = counted;
        const LayoutFilter fix{.tp = 4 / cp, .sp = sp, .cp = cp, .zero = 0, .remat = Remat::kFull};
        const Plan a = only(test::dense_model(8), fix), b = only(tower, fix);
        const std::string which = std::to_string(cp) + (counted ? ", counted, sp " : ", sp ") + std::to_string(sp);
        EXPECT_NEAR(b.step_s / a.step_s, 1, 5e-3) << which;  // each rank does the ends whole
        EXPECT_NEAR(b.time.tp.value(), a.time.tp.value(), 1e-9) << which;
        EXPECT_NEAR(b.time.cp.value(), a.time.cp.value(), 1e-9) << which;
        EXPECT_NEAR(b.memory.weights.value() / a.memory.weights.value(), 1, 1e-9) << which;
        EXPECT_NEAR(b.memory.activations.value() / a.memory.activations.value(), 1, 1e-9) << which;
        EXPECT_NEAR(b.memory.buffers.value(), a.memory.buffers.value(), 1) << which;
      }
    }
  }
}

/// Heads that do not divide stand whole on each rank.
TEST(Towers, StandWholeWhereTensorRanksDivideNoHeads) {
  ModelSpec whole = with_tower_of(5), divided = with_tower_of(5);
  whole.towers.front().network.attention = {.heads = 2, .kv_heads = 2, .head_dim = 512};
  divided.towers.front().network.attention = {.heads = 4, .kv_heads = 4, .head_dim = 256};
  const LayoutFilter fix{.tp = 4, .cp = 1, .zero = 0, .remat = Remat::kFull};
  const double layer = 4.0 * 1024 * 1024 + 3.0 * 1024 * 4096;  // without norms, which are whole either way
  const double more = only(whole, fix).memory.weights.value() - only(divided, fix).memory.weights.value();
  EXPECT_NEAR(more, 5 * layer * 0.75 * 2, 1);
}

/// More layers under a policy keep less and take longer; a tower's are under it as soon as one of the model's is.
TEST(Towers, RematIsMonotone) {
  for (const bool counted : {true, false}) {
    ModelSpec tower = with_tower_of(5);
    tower.towers.front().counted = counted;
    const auto of = [&](Remat remat, std::int64_t layers) {
      LayoutFilter fix{.dp = 8, .tp = 1, .cp = 1, .zero = 0, .remat = remat};
      if (layers > 0) fix.remat_layers = layers;
      return only(tower, fix);
    };
    for (const Remat policy : {Remat::kFull, Remat::kAttention, Remat::kMlp}) {
      Plan before = of(Remat::kNone, 0);
      for (const std::int64_t layers : {1, 2, 0}) {
        const Plan now = of(policy, layers);
        const std::string which =
            std::string(name_of(policy)) + ' ' + std::to_string(layers) + (counted ? "" : " apart");
        EXPECT_LT(now.memory.activations.value(), before.memory.activations.value()) << which;
        EXPECT_GT(now.time.compute.value(), before.time.compute.value()) << which;
        before = now;
      }
    }
  }
}

/// Activations that are offloaded leave the chip, whichever stack they are of, and the host holds them.
TEST(Towers, OffloadTheirActivations) {
  const LayoutFilter stay{.dp = 8, .tp = 1, .cp = 1, .zero = 0, .remat = Remat::kNone, .offload = 0};
  LayoutFilter leave = stay;
  leave.offload = kOffloadActivations;
  leave.offload_layers = 0;  // all
  const ModelSpec tower = with_tower_of(5);
  const Plan kept = only(tower, stay), away = only(tower, leave), layers = only(test::dense_model(8), leave);
  EXPECT_LT(away.memory.activations.value(), kept.memory.activations.value());
  EXPECT_NEAR(away.memory.activations.value() / layers.memory.activations.value(), 1, 1e-9);
  EXPECT_NEAR(away.memory.host.value() / layers.memory.host.value(), 1, 1e-9);
  EXPECT_NEAR(away.time.host.value(), layers.time.host.value(), 1e-3 * layers.step_s);
  leave.offload_layers = 1;
  const Plan one = only(tower, leave);
  EXPECT_LT(one.memory.activations.value(), kept.memory.activations.value());
  EXPECT_GT(one.memory.activations.value(), away.memory.activations.value());
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
