#include "jobs/job_part.h"

#include <gtest/gtest.h>

#include "serve/serve_search.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

struct Fixture {
  ModelSpec model = test::dense_model(4);
  HardwareSpec hw = test::switched_chip();
  ServingSystem system{.model = &model, .hw = &hw, .efficiency = ideal_efficiency(hw.efficiency)};
  ServeBasis<double> basis{Reader<double>{}, system};
  double room = hw.hbm_capacity.value();
};

TEST(ForwardPasses, TheFrontFallsInMemoryAndRisesInTime) {
  const Fixture f;
  const auto front = forward_passes(f.basis, 8, {.sequences = 64, .tokens = 512, .all_logits = true}, f.room);
  ASSERT_FALSE(front.empty());
  for (std::size_t i = 1; i < front.size(); ++i) {
    EXPECT_GT(front[i].seconds, front[i - 1].seconds);
    EXPECT_LT(front[i].memory_bytes, front[i - 1].memory_bytes);
  }
}

TEST(ForwardPasses, EveryLogitCostsMoreThanTheLast) {
  const Fixture f;
  const auto all = forward_passes(f.basis, 8, {.sequences = 64, .tokens = 512, .all_logits = true}, f.room);
  const auto last = forward_passes(f.basis, 8, {.sequences = 64, .tokens = 512}, f.room);
  ASSERT_FALSE(all.empty());
  EXPECT_GT(all.front().seconds, last.front().seconds);
  EXPECT_GT(all.front().memory_bytes, last.front().memory_bytes);
}

TEST(ForwardPasses, NothingFitsInNoRoomAndNoCountThatIsNotBuilt) {
  const Fixture f;
  EXPECT_TRUE(forward_passes(f.basis, 8, {.sequences = 64, .tokens = 512}, 1).empty());
  EXPECT_FALSE(engine_slice(f.hw, 13).has_value());
  EXPECT_TRUE(forward_passes(f.basis, 13, {.sequences = 64, .tokens = 512}, f.room).empty());
}

TEST(ForwardPasses, FormulasGiveTheTimeOfABatch) {
  const Fixture f;
  const ForwardLoad load{.sequences = 64, .tokens = 512, .all_logits = true};
  for (const ForwardPass& pass : forward_passes(f.basis, 8, load, f.room)) {
    EXPECT_DOUBLE_EQ(value_of(explain_pass(f.system, load, pass)) * pass.batches, pass.seconds);
  }
}

TEST(ForwardPasses, TwiceTheSequencesTakeTwiceAsLong) {
  const Fixture f;
  const auto once = forward_passes(f.basis, 8, {.sequences = 256, .tokens = 512}, f.room);
  const auto twice = forward_passes(f.basis, 8, {.sequences = 512, .tokens = 512}, f.room);
  ASSERT_FALSE(once.empty());
  EXPECT_NEAR(twice.front().seconds / once.front().seconds, 2, 1e-9);
}

}  // namespace
}  // namespace scalecalc
