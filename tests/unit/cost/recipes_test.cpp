// What the recipe of a layout does to time and memory: remat by part and by layers, offload, schedules, context ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "plan/request.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

class Recipes : public testing::Test {
 protected:
  Recipes() {
    nodes.host_ram = Bytes(256e9);
    nodes.pcie_bandwidth = BytesPerSecond(32e9);
  }

  Plan first(const HardwareSpec& hw, const LayoutFilter& fix, std::int64_t chips = 8) const {
    PlanRequest request = test::request(model, hw, chips);
    request.fix = fix;
    const PlanResult result = plan(request);
    EXPECT_FALSE(result.plans.empty());
    return result.plans.empty() ? Plan{} : result.plans.front();
  }

  static LayoutFilter one_stage() {
    return {.tp = 1, .cp = 1, .pp = 1, .zero = 1, .micro_batch_seqs = 1, .offload = 0, .loss = LossKind::kWhole};
  }

  LayoutFilter treating(Remat remat, std::int64_t layers = 0) const {
    LayoutFilter fix = one_stage();
    fix.remat = remat;
    fix.remat_layers = layers;
    return fix;
  }

  ModelSpec model = test::dense_model();  // 8 layers
  HardwareSpec nodes = test::switched_chip();
};

TEST_F(Recipes, PoliciesTradeTimeForMemory) {
  const Plan none = first(nodes, treating(Remat::kNone));
  const Plan selective = first(nodes, treating(Remat::kSelective));
  const Plan full = first(nodes, treating(Remat::kFull));
  EXPECT_LT(none.step_s, selective.step_s);
  EXPECT_GT(none.memory.activations.value(), selective.memory.activations.value());
  double parts = 0;
  for (const Remat part : {Remat::kAttention, Remat::kMlp}) {
    const Plan some = first(nodes, treating(part));
    EXPECT_LT(selective.step_s, some.step_s) << name_of(part);
    EXPECT_LT(some.step_s, full.step_s) << name_of(part);
    EXPECT_LT(full.memory.activations.value(), some.memory.activations.value()) << name_of(part);
    EXPECT_LT(some.memory.activations.value(), selective.memory.activations.value()) << name_of(part);
    parts += some.step_s - selective.step_s;
  }
  // Full remat repeats attention, MLP and what selective repeats, each once.
  EXPECT_NEAR(parts, full.step_s - selective.step_s, 1e-3 * full.step_s);
}

TEST_F(Recipes, APolicyForSomeLayersLiesBetween) {
  const Plan none = first(nodes, treating(Remat::kNone));
  const Plan full = first(nodes, treating(Remat::kFull));
  for (const std::int64_t layers : {1, 4, 7}) {
    const Plan some = first(nodes, treating(Remat::kFull, layers));
    const double share = static_cast<double>(layers) / 8;
    EXPECT_NEAR(some.step_s, none.step_s + share * (full.step_s - none.step_s), 1e-9 * full.step_s);
  }
}

TEST_F(Recipes, TheFewestLayersThatFitAreTreated) {
  const LayoutFilter all = treating(Remat::kFull);
  const double room = first(nodes, treating(Remat::kNone)).memory.total().value() * 0.9;
  LayoutFilter open = all;
  open.remat_layers.reset();
  nodes.hbm_capacity = Bytes(room);
  const Plan chosen = first(nodes, open);
  ASSERT_GT(chosen.layout.remat_layers, 0);
  EXPECT_LE(chosen.memory.total().value(), room);
  PlanRequest fewer = test::request(model, nodes, 8);
  fewer.fix = open;
  fewer.fix.remat_layers = chosen.layout.remat_layers - 1;
  if (*fewer.fix.remat_layers > 0) {
    EXPECT_TRUE(plan(fewer).plans.empty());
  }
}

TEST_F(Recipes, OptimizerStateOffTheChipCrossesTheHostsLink) {
  LayoutFilter fix = one_stage();
  fix.zero = 0;
  const Plan kept = first(nodes, fix);
  fix.offload = kOffloadOptimizer;
  const Plan moved = first(nodes, fix);
  const double state = kept.memory.optimizer.value();
  EXPECT_DOUBLE_EQ(moved.memory.host.value(), state);
  EXPECT_DOUBLE_EQ(moved.memory.optimizer.value(), state * 2 / 8) << "two of eight layers on their way";
  EXPECT_EQ(kept.memory.host.value(), 0);
  EXPECT_NEAR(moved.time.optimizer.value(), state / 32e9, 1e-9);
  EXPECT_LT(kept.time.optimizer.value(), moved.time.optimizer.value());
}

/// State goes both ways at once. Eight chips of a host with 128 GB/s of DRAM read and write 16 GB/s each, 8 of it
/// either way; two on one uplink of 32 GB/s have 16 each way, as has one that reaches half of it.
TEST_F(Recipes, ChipsShareTheirHostsMemoryAndUplinks) {
  LayoutFilter fix = one_stage();
  fix.zero = 0;
  fix.offload = kOffloadOptimizer;
  const Plan alone = first(nodes, fix);
  const double state = alone.memory.host.value();
  EXPECT_NEAR(alone.time.optimizer.value(), state / 32e9, 1e-9);
  HardwareSpec shared = nodes;
  shared.host_memory_bandwidth = BytesPerSecond(128e9);
  EXPECT_NEAR(first(shared, fix).time.optimizer.value(), state / 8e9, 1e-9);
  shared = nodes;
  shared.uplink_chips = 2;
  EXPECT_NEAR(first(shared, fix).time.optimizer.value(), state / 16e9, 1e-9);
  shared = nodes;
  shared.efficiency.link_host.value = 0.5;
  EXPECT_NEAR(first(shared, fix).time.optimizer.value(), state / 16e9, 1e-9);
}

TEST_F(Recipes, ActivationsAndWeightsHideUnderTheWorkBesideThem) {
  LayoutFilter fix = one_stage();
  fix.remat = Remat::kNone;
  fix.offload = kOffloadActivations;
  fix.offload_layers = 0;
  nodes.efficiency.overlap_host.value = 1;
  const Plan hidden = first(nodes, fix);
  nodes.efficiency.overlap_host.value = 0;
  const Plan shown = first(nodes, fix);
  EXPECT_LT(hidden.time.host.value(), shown.time.host.value());
  // Each tensor goes once and comes back once.
  const double bytes = shown.memory.host.value() * static_cast<double>(shown.layout.grad_accum);
  EXPECT_NEAR(shown.time.host.value(), 2 * bytes / 32e9, 1e-6 * shown.time.host.value());
  fix.offload = kOffloadWeights;
  const Plan weights = first(nodes, fix);
  const double each = weights.memory.host.value() * static_cast<double>(weights.layout.grad_accum);
  EXPECT_NEAR(weights.time.host.value(), 2 * each / 32e9, 1e-2 * weights.time.host.value())
      << "all but the norms' share";
}

TEST_F(Recipes, ActivationsOfSomeLayersLieBetween) {
  LayoutFilter fix = one_stage();
  fix.remat = Remat::kNone;
  nodes.efficiency.overlap_host.value = 0;
  const Plan none = first(nodes, fix);
  fix.offload = kOffloadActivations;
  fix.offload_layers = 0;
  const Plan all = first(nodes, fix);
  for (const std::int64_t layers : {1, 2, 5, 7}) {
    fix.offload_layers = layers;
    const Plan some = first(nodes, fix);
    const double share = static_cast<double>(layers) / 8;
    EXPECT_EQ(some.layout.offload_layers, layers);
    EXPECT_NEAR(some.step_s, none.step_s + share * (all.step_s - none.step_s), 1e-9 * all.step_s);
    EXPECT_NEAR(some.memory.host.value(), share * all.memory.host.value(), 1e-6 * all.memory.host.value());
    // Two of the offloaded layers are on their way, the others gone.
    const double layer = all.memory.host.value() / 8;
    const double gone = std::max(0.0, static_cast<double>(layers) - 2) * layer;
    EXPECT_NEAR(some.memory.activations.value(), none.memory.activations.value() - gone, 1e-6 * layer);
  }
}

TEST_F(Recipes, ActivationsOfTheFewestLayersThatFitAreOffloaded) {
  LayoutFilter fix = one_stage();
  fix.remat = Remat::kNone;
  const double kept = first(nodes, fix).memory.total().value();
  fix.offload = kOffloadActivations;
  fix.offload_layers = 0;
  const double least = first(nodes, fix).memory.total().value();
  for (const double share : {0.05, 0.5, 1.0}) {
    const double room = kept - share * (kept - least);
    nodes.hbm_capacity = Bytes(room);
    fix.offload_layers.reset();
    const Plan chosen = first(nodes, fix);
    std::int64_t fewest = 1;
    PlanRequest request = test::request(model, nodes, 8);
    request.fix = fix;
    for (; fewest < 8; ++fewest) {
      request.fix.offload_layers = fewest;
      if (!plan(request).plans.empty()) break;
    }
    EXPECT_EQ(chosen.layout.offload_layers, fewest < 8 ? fewest : 0) << share;
    EXPECT_LE(chosen.memory.total().value(), room);
  }
}

TEST_F(Recipes, NoLayoutCountsLayersForRematAndForOffload) {
  PlanRequest request = test::request(model, nodes, 8);
  request.fix = treating(Remat::kFull, 3);
  request.fix.offload = kOffloadActivations;
  request.fix.offload_layers = 3;
  EXPECT_TRUE(plan(request).plans.empty());
}

TEST_F(Recipes, AFusedLossKeepsTwoCopiesOfTheLogitsAndAChunkedOneAnEighth) {
  PlanRequest request = test::request(model, nodes, 8);
  request.fix = treating(Remat::kNone);
  const double tokens = static_cast<double>(request.workload.seq);
  const double logits = tokens * static_cast<double>(model.vocab);
  std::vector<Plan> plans;
  for (int l = 0; l < kLossCount; ++l) {
    request.fix.loss = static_cast<LossKind>(l);
    plans.push_back(plan(request).plans.at(0));
    EXPECT_EQ(plans.back().layout.loss, static_cast<LossKind>(l));
  }
  EXPECT_DOUBLE_EQ((plans[0].memory.logits - plans[1].memory.logits).value(), logits * (8 - 4));
  EXPECT_DOUBLE_EQ((plans[0].memory.logits - plans[2].memory.logits).value(),
                   logits * (8 - 1) - tokens * static_cast<double>(model.d_model) * 4);
  EXPECT_EQ(plans[1].step_s, plans[0].step_s) << "fusing is charged nothing";
  EXPECT_EQ(plans[2].time.compute.value(), plans[0].time.compute.value());
  EXPECT_GE(plans[2].step_s, plans[0].step_s);
  request.workload.memory.chunks_run_again = true;
  const Plan again = plan(request).plans.at(0);
  const double product = 2 * logits * static_cast<double>(model.d_model);
  const double rate = nodes.matmul_peak[static_cast<std::size_t>(DType::kBf16)]->value();
  const double least = static_cast<double>(again.layout.grad_accum) * product / rate * (1 - 1e-9);
  EXPECT_GE(again.time.compute.value() - plans[2].time.compute.value(), least) << "the vocabulary projection once more";
  EXPECT_LE(again.time.compute.value() - plans[2].time.compute.value(), 2 * least);
}

TEST_F(Recipes, AnotherLossIsTakenWhereALayoutDoesNotFitWithoutIt) {
  LayoutFilter fix = treating(Remat::kNone);
  fix.loss.reset();
  EXPECT_EQ(first(nodes, fix).layout.loss, LossKind::kWhole);
  std::vector<double> bytes;
  for (int l = 0; l < kLossCount; ++l) {
    fix.loss = static_cast<LossKind>(l);
    bytes.push_back(first(nodes, fix).memory.total().value());
  }
  fix.loss.reset();
  ASSERT_GT(bytes[0], bytes[1]);
  ASSERT_GT(bytes[1], bytes[2]);
  nodes.hbm_capacity = Bytes(bytes[1]);
  EXPECT_EQ(first(nodes, fix).layout.loss, LossKind::kFused);
  nodes.hbm_capacity = Bytes(bytes[2]);
  EXPECT_EQ(first(nodes, fix).layout.loss, LossKind::kChunked);
}

TEST_F(Recipes, NothingIsOffloadedWhereALayoutFits) {
  LayoutFilter fix = one_stage();
  fix.offload.reset();
  EXPECT_EQ(first(nodes, fix).layout.offload, 0);
  fix.remat = Remat::kNone;
  fix.zero = 0;
  nodes.hbm_capacity = Bytes(first(nodes, fix).memory.total().value() * 0.6);
  const Plan moved = first(nodes, fix);
  EXPECT_NE(moved.layout.offload, 0);
  EXPECT_TRUE(fits(nodes, moved.memory));
  nodes.host_ram = Bytes(0);
  PlanRequest request = test::request(model, nodes, 8);
  request.fix = fix;
  EXPECT_TRUE(plan(request).plans.empty()) << "no host memory is published";
}

TEST_F(Recipes, AZeroBubblePipelineWaitsLessInTheSameMemory) {
  LayoutFilter fix{.tp = 1, .cp = 1, .pp = 4, .vpp = 1, .zero = 1, .micro_batch_seqs = 1, .remat = Remat::kNone};
  fix.split.emplace();  // stages dealt alike
  fix.schedule = Schedule::k1F1B;
  const Plan plain = first(nodes, fix);
  fix.schedule = Schedule::kZeroBubble;
  const Plan filled = first(nodes, fix);
  EXPECT_LT(filled.time.bubble.value(), plain.time.bubble.value());
  EXPECT_EQ(filled.memory.total().value(), plain.memory.total().value());
  EXPECT_EQ(filled.time.compute.value(), plain.time.compute.value());
}

TEST_F(Recipes, DualPipeKeepsTwoCopies) {
  LayoutFilter fix{.tp = 1, .cp = 1, .pp = 4, .vpp = 1, .zero = 1, .micro_batch_seqs = 1, .remat = Remat::kNone};
  model = test::dense_model(8);
  model.vocab = 64;  // all stages alike
  fix.schedule = Schedule::k1F1B;
  const Plan one = first(nodes, fix);
  fix.schedule = Schedule::kDualPipe;
  const Plan two = first(nodes, fix);
  EXPECT_NEAR(two.memory.weights.value() / one.memory.weights.value(), 2, 0.02);
  EXPECT_NEAR(two.memory.optimizer.value() / one.memory.optimizer.value(), 1, 0.02) << "divided over both copies";
  EXPECT_LT(two.time.bubble.value(), one.time.bubble.value());
  EXPECT_EQ(two.layout.grad_accum % 2, 0);
  EXPECT_GE(two.layout.grad_accum, 8);
}

TEST_F(Recipes, ContextRanksSendTheSameBytesRoundARing) {
  LayoutFilter fix{.tp = 1, .cp = 4, .pp = 1, .zero = 1, .micro_batch_seqs = 1, .remat = Remat::kNone};
  nodes.efficiency.overlap_cp.value = 0;
  nodes.efficiency.overlap_cp_gather.value = 0;
  for (Tier& tier : nodes.network) tier.switched.latency = Seconds(0);
  fix.cp_comm = CpComm::kAllGather;
  const Plan gather = first(nodes, fix);
  fix.cp_comm = CpComm::kRing;
  const Plan ring = first(nodes, fix);
  EXPECT_NEAR(ring.time.cp.value(), gather.time.cp.value(), 1e-9 * gather.time.cp.value());
  EXPECT_LT(ring.memory.buffers.value(), gather.memory.buffers.value()) << "two pieces instead of the sequence";
  fix.cp_comm = CpComm::kUlysses;
  const Plan ulysses = first(nodes, fix);
  // way.
  EXPECT_GT(ulysses.time.cp.value(), 0);
  fix.cp_comm.reset();
  EXPECT_LE(first(nodes, fix).step_s, std::min({gather.step_s, ring.step_s, ulysses.step_s}) * 1.01);
}

TEST_F(Recipes, UlyssesNeedsHeadsForEveryRank) {
  PlanRequest request = test::request(model, nodes, 32);
  request.fix = {.tp = 1, .cp = 32, .pp = 1, .cp_comm = CpComm::kUlysses};
  EXPECT_TRUE(plan(request).plans.empty()) << "16 heads";
  request.fix.cp = 16;
  EXPECT_FALSE(plan(request).plans.empty());
}

}  // namespace
}  // namespace scalecalc
