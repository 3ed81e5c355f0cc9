// The whole question, as a library user asks it.
#include "sensitivity/sensitivity.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace scalecalc {
namespace {

SensitivityQuestion small() {
  SensitivityQuestion q;
  q.train.model = "gpt2-1.5b";
  q.train.hardware = "h100-sxm";
  q.train.chips = 8;
  q.train.batch_seqs = 64;
  return q;
}

TEST(Sensitivity, AsksAboutPlanOneOfTrain) {
  const SensitivityAnswer a = sensitivity(small(), Catalog(), false);
  const TrainAnswer train = answer(small().train, Catalog());
  ASSERT_TRUE(a.plan);
  EXPECT_EQ(a.plan->plan.layout, train.plans.front().plan.layout);
  EXPECT_EQ(a.plan->plan.step_s, train.plans.front().plan.step_s);
  EXPECT_NEAR(sum_rule(a.elasticities).sum(), -1, 1e-9);
  EXPECT_FALSE(a.step);
  EXPECT_TRUE(a.complete);
}

TEST(Sensitivity, OneChipHasNoLinks) {
  SensitivityQuestion q = small();
  q.train.chips = 1;
  const SensitivityAnswer a = sensitivity(q, Catalog(), false);
  for (const RateChange& change : a.reoptimised.rates) EXPECT_EQ(change.rate.name.find("network"), std::string::npos);
  EXPECT_EQ(a.balance.size(), 2U);
}

TEST(Sensitivity, FixedSearchesForNothing) {
  SensitivityQuestion q = small();
  q.fixed = true;
  for (const RateChange& change : sensitivity(q, Catalog(), false).reoptimised.rates) EXPECT_FALSE(change.free);
}

TEST(Sensitivity, RatesAreSortedByWhatTheyGain) {
  const SensitivityAnswer a = sensitivity(small(), Catalog(), false);
  EXPECT_TRUE(std::is_sorted(a.reoptimised.rates.begin(), a.reoptimised.rates.end(),
                             [](const RateChange& x, const RateChange& y) { return x.free->gain > y.free->gain; }));
}

TEST(Sensitivity, NothingFitsIsAnAnswer) {
  SensitivityQuestion q = small();
  q.train.model = "llama3-70b";
  q.train.chips = 1;
  const SensitivityAnswer a = sensitivity(q, Catalog(), false);
  EXPECT_FALSE(a.plan);
  ASSERT_TRUE(a.none);
  EXPECT_TRUE(a.elasticities.empty());
}

TEST(Sensitivity, AnInterruptedOneSaysSo) {
  EXPECT_FALSE(sensitivity(small(), Catalog(), false, [] { return true; }).complete);
}

/// More memory may buy another layout, which no derivative of one plan's time can see.
TEST(Sensitivity, CapacityMattersToAFreePlanAlone) {
  const SensitivityAnswer a = sensitivity(small(), Catalog(), false);
  const auto capacity = std::find_if(a.reoptimised.rates.begin(), a.reoptimised.rates.end(),
                                     [](const RateChange& c) { return c.rate.name == "hw.hbm.usable"; });
  ASSERT_NE(capacity, a.reoptimised.rates.end());
  EXPECT_EQ(capacity->gain, 0);
  EXPECT_GE(capacity->free->gain, 0);
}

}  // namespace
}  // namespace scalecalc
