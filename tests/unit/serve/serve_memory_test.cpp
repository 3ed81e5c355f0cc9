#include "serve/serving_cost.h"

#include <gtest/gtest.h>

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
  EXPECT_NE(memory(CacheRule::kShareOfAll, 0.9).equation().find("0.9 x"), std::string::npos);
  EXPECT_NE(memory(CacheRule::kShareOfFree, 0.9).equation().find("runtime"), std::string::npos);
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

TEST_F(ServeMemoryRules, WeightsThatDoNotFitLeaveNoRoom) {
  hw_.hbm_capacity = Bytes(1e8);
  const ServeMemory m = memory(CacheRule::kAll, 1);
  EXPECT_LT(m.cache_room(), 0);
  EXPECT_EQ(m.max_batch(1), 0);
}

}  // namespace
}  // namespace scalecalc
