#include "serve/serving_cost.h"

#include <gtest/gtest.h>

#include "config/catalog.h"
#include "spec/load_stack.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

class ServeMemoryRules : public testing::Test {
 protected:
  ServeMemory memory(CacheRule rule, double share, const ServeLayout& layout = {}) {
    system_.model = &model_;
    system_.hw = &hw_;
    system_.efficiency = hw_.efficiency;
    system_.engine.rule = rule;
    system_.engine.share = share;
    system_.engine.graph_bytes = 1e9;
    return {ServeBasis<double>({}, system_), layout};
  }

  ModelSpec model_ = test::dense_model();
  HardwareSpec hw_ = test::switched_chip();
  ServingSystem system_;
};

TEST_F(ServeMemoryRules, EachEngineCountsInItsOwnWay) {
  const ServeMemoryParts fixed = memory(CacheRule::kAll, 1).parts(0, 1);
  const double total = hw_.hbm_capacity.value();
  const double left = total - fixed.weights - fixed.activations - fixed.graphs;
  EXPECT_DOUBLE_EQ(memory(CacheRule::kAll, 1).cache_room(), left - fixed.reserve);
  EXPECT_NEAR(memory(CacheRule::kShareOfAll, 0.9).cache_room(), left - 0.1 * total, 1);
  EXPECT_DOUBLE_EQ(memory(CacheRule::kShareOfFree, 0.9).cache_room(), 0.9 * (left - fixed.reserve));
  EXPECT_DOUBLE_EQ(memory(CacheRule::kStaticShare, 0.8).cache_room(), 0.8 * total - fixed.weights);
}

TEST_F(ServeMemoryRules, TheEquationHasItsNumbers) {
  EXPECT_NE(memory(CacheRule::kShareOfAll, 0.9).equation(1, 1).find("0.9 x"), std::string::npos);
  EXPECT_NE(memory(CacheRule::kShareOfFree, 0.9).equation(1, 1).find("runtime"), std::string::npos);
}

/// Graphs inside the share leave the cache less; outside it they come from what the share leaves.
TEST_F(ServeMemoryRules, GraphsAreInsideTheShareOrNot) {
  system_.engine.graphs_in_share = true;
  const ServeMemory inside = memory(CacheRule::kShareOfAll, 0.9);
  system_.engine.graphs_in_share = false;
  const ServeMemory outside = memory(CacheRule::kShareOfAll, 0.9);
  EXPECT_NEAR(outside.cache_room() - inside.cache_room(), inside.parts(0, 1).graphs, 1);
  EXPECT_NE(inside.equation(1, 1).find(" graphs"), std::string::npos);
  EXPECT_EQ(outside.equation(1, 1).find(" graphs"), std::string::npos);
}

TEST_F(ServeMemoryRules, BatchAndContextAreTheSameRoomSeenTwice) {
  const ServeMemory m = memory(CacheRule::kAll, 1);
  const double batch = m.max_batch(1000);
  EXPECT_GT(batch, 1);
  EXPECT_GE(m.max_context(batch), 1000);
  EXPECT_LT(m.max_context(batch + 1), 1000);
  EXPECT_TRUE(m.fits(batch, 1000));
  EXPECT_FALSE(m.fits(batch + 1, 1000));
}

TEST_F(ServeMemoryRules, RanksShareWeightsAndCache) {
  const ServeMemory one = memory(CacheRule::kAll, 1);
  const ServeMemory four = memory(CacheRule::kAll, 1, {.tp = 4, .etp = 4});
  EXPECT_NEAR(four.parts(0, 1).weights, one.parts(0, 1).weights / 4, one.parts(0, 1).weights * 0.001);
  EXPECT_NEAR(four.sequence_bytes(1000), one.sequence_bytes(1000) / 4, 1);
  // Four KV heads: eight ranks keep each twice.
  EXPECT_NEAR(memory(CacheRule::kAll, 1, {.tp = 8, .etp = 8}).sequence_bytes(1000), one.sequence_bytes(1000) / 4, 1);
  EXPECT_NEAR(memory(CacheRule::kAll, 1, {.tp = 4, .etp = 8, .cp = 2}).sequence_bytes(1000),
              one.sequence_bytes(1000) / 8, 1);
}

TEST_F(ServeMemoryRules, TheRuntimeHasRoomUnderEveryRule) {
  hw_.efficiency.memory_reserve.value = 8e9;
  for (const CacheRule rule :
       {CacheRule::kAll, CacheRule::kShareOfAll, CacheRule::kShareOfFree, CacheRule::kStaticShare}) {
    const ServeMemory m = memory(rule, 0.95);
    EXPECT_LE(m.parts(m.max_batch(1000), 1000).total(), hw_.hbm_capacity.value() * (1 + 1e-12));
  }
}

/// Logits of 256 sequences over 32,000 words in fp32, twice: more than the activations of a step of 64 tokens.
TEST_F(ServeMemoryRules, TheSamplersPeakIsHeldBack) {
  system_.chunk_tokens = 64;
  system_.engine.most_sequences = 256;
  system_.engine.sampler_copies = 2;
  EXPECT_DOUBLE_EQ(memory(CacheRule::kAll, 1).parts(0, 1).activations, 2 * 256 * 32000 * 4.0);
}

/// Two layers of four keep 1,024 tokens, whose parts lie on four ranks as all others do.
TEST_F(ServeMemoryRules, ContextRanksShareWindowsToo) {
  model_.attention.window = 1024;
  model_.kinds.push_back({MixerKind::kSliding, FfnKind::kDense});
  model_.layer_kind = {0, 0, 1, 1};
  const double one = memory(CacheRule::kAll, 1).sequence_bytes(32768);
  EXPECT_DOUBLE_EQ(memory(CacheRule::kAll, 1, {.etp = 4, .cp = 4}).sequence_bytes(32768), one / 4);
  EXPECT_DOUBLE_EQ(one, 2 * (32768 + 1024) * 2 * 4 * 64 * 2.0);
}

/// Qwen3-32B in bf16 with the defaults of vLLM 0.12 on 80 GB: 5 to 7 sequences of 4,000 tokens.
TEST(ServeMemoryOfEngines, QwenOnOneH100) {
  const Catalog catalog;
  const ModelSpec model = test::shipped_model("qwen3-32b");
  const HardwareSpec hw = test::shipped_chip("h100-sxm");
  ServingSystem system{.model = &model, .hw = &hw, .efficiency = hw.efficiency};
  system.engine = engine_release(serving_stack(catalog, "vllm").serving, "0.12").on(hw);
  system.chunk_tokens = system.engine.chunk_tokens;
  const double most = ServeMemory(ServeBasis<double>({}, system), {}).max_batch(4000);
  EXPECT_GE(most, 5);
  EXPECT_LE(most, 7);
}

TEST_F(ServeMemoryRules, WeightsThatDoNotFitLeaveNoRoom) {
  hw_.hbm_capacity = Bytes(1e8);
  const ServeMemory m = memory(CacheRule::kAll, 1);
  EXPECT_LT(m.cache_room(), 0);
  EXPECT_EQ(m.max_batch(1), 0);
}

}  // namespace
}  // namespace scalecalc
