#include "scaling_law/scaling.h"

#include <gtest/gtest.h>

#include "config/catalog.h"
#include "support/errors.h"

namespace scalecalc {
namespace {

ScalingLaw law(const std::string& name) { return load_law(Catalog().load(CatalogKind::kLaw, name)); }

ScalingQuestion asking(const std::string& name = "chinchilla-besiroglu") { return {.law = law(name)}; }

SizedModel llama3_8b() {
  return {.name = "llama3-8b", .title = "Llama 3 8B", .parameters = 8.03e9, .counted = "all", .tokens = 15e12};
}

ComputePrice price(double mfu) {
  return {.hardware = "chip", .precision = "bf16", .usd_per_chip_hour = 3.6, .peak = FlopsPerSecond(1e15), .mfu = mfu};
}

double life(const AllocationFigures& a) { return a.lifetime.value().value(); }

TEST(Scaling, TheWholeBudgetIsSpent) {
  ScalingQuestion q = asking();
  q.flops = 1e24;
  EXPECT_NEAR(answer(q).allocations.front().training.value().value() / 1e24, 1, 1e-12);
  q.inference_tokens = 1e12;
  q.lifetime_budget = true;
  const ScalingAnswer found = answer(q);
  EXPECT_NEAR(life(found.allocations[1]) / 1e24, 1, 1e-12);
  EXPECT_GT(life(found.allocations[0]), 1e24);
  EXPECT_NEAR(found.allocations[0].loss->value(), found.allocations[1].loss->value(), 1e-12);
}

// 3.6 dollars per chip-hour are 1e-3 a second, in which 4e14 FLOPs run: 4e17 FLOPs a dollar.
TEST(Scaling, DollarsBuyFlopsAtTheMfu) {
  ScalingQuestion q = asking();
  q.budget_usd = 5e6;
  q.price = price(0.4);
  const ScalingAnswer found = answer(q);
  EXPECT_NEAR(found.budget.value().value() / 2e24, 1, 1e-12);
  EXPECT_NEAR(found.allocations.front().usd->training.value().value(), 5e6, 1e-3);
}

TEST(Scaling, DearServingCountsAsMoreTokens) {
  ScalingQuestion q = asking();
  q.flops = 1e24;
  q.price = price(0.4);
  q.inference_tokens = 4e12;
  const ScalingAnswer plain = answer(q);
  q.inference_tokens = 1e12;
  q.serve_mfu = 0.1;
  const ScalingAnswer dear = answer(q);
  EXPECT_NEAR(dear.allocations[1].at.tokens.value() / plain.allocations[1].at.tokens.value(), 1, 1e-12);
  // 2 N FLOPs of llama3-8b at 4e17 FLOPs a dollar, four times over.
  q.serve_mfu.reset();
  q.model = llama3_8b();
  q.serve_usd_per_million = 4 * 1e6 * 2 * 8.03e9 / 4e17;
  EXPECT_NEAR(answer(q).allocations[1].at.tokens.value() / plain.allocations[1].at.tokens.value(), 1, 1e-9);
}

// Worked out apart: 102 times the optimum's tokens per parameter, 5.5 times the FLOPs, 189T tokens to be served.
TEST(Scaling, Llama3EightBillionIsOverTrained) {
  ScalingQuestion q = asking();
  q.model = llama3_8b();
  const ScalingAnswer found = answer(q);
  EXPECT_NEAR(found.standing->over_trained.value(), 102, 1);
  EXPECT_NEAR(found.standing->compute_ratio->value(), 5.499, 0.001);
  EXPECT_NEAR(*found.standing->serving_tokens / 189.5e12, 1, 0.001);
  q.law = law("chinchilla");
  EXPECT_NEAR(*answer(q).standing->serving_tokens / 86.4e12, 1, 0.001);
}

// Under the refitted law Chinchilla lies on the optimum: Besiroglu et al., section 4.
TEST(Scaling, ChinchillaIsComputeOptimalByTheRefit) {
  ScalingQuestion q = asking();
  q.model = {.name = "chinchilla", .title = "Chinchilla", .parameters = 70e9, .counted = "all", .tokens = 1.4e12};
  const ScalingAnswer found = answer(q);
  EXPECT_NEAR(found.standing->over_trained.value(), 1, 0.1);
  EXPECT_NEAR(found.standing->compute_ratio->value(), 1, 0.01);
}

TEST(Scaling, TooFewTokensAreNoLifesOptimum) {
  ScalingQuestion q = asking();
  q.model = {.name = "gpt3", .title = "GPT-3", .parameters = 175e9, .counted = "all", .tokens = 300e9};
  EXPECT_FALSE(answer(q).standing->serving_tokens);
}

TEST(Scaling, SizesAroundTheOptimum) {
  ScalingQuestion q = asking();
  q.flops = 1e24;
  const ScalingAnswer found = answer(q);
  ASSERT_EQ(found.sizes.size(), 9U);
  EXPECT_EQ(found.sizes.front().factor, 0.25);
  EXPECT_EQ(found.sizes.back().factor, 4);
  EXPECT_EQ(*found.sizes[4].wasted, 0);
  for (const SizePoint& p : found.sizes) {
    EXPECT_GE(*p.loss, *found.sizes[4].loss);
    EXPECT_NEAR(6 * p.at.parameters * p.at.tokens / 1e24, 1, 1e-12);
    if (p.lifetime_same_loss) {
      EXPECT_GE(*p.lifetime_same_loss, 1e24 * (1 - 1e-9));
    }
  }
  q.inference_tokens = 1e13;
  bool never = false;
  for (const SizePoint& p : answer(q).sizes) never = never || !p.tokens_same_loss;
  EXPECT_TRUE(never);  // a quarter of the lifetime-optimal size never reaches the loss
}

TEST(Scaling, EveryTracedFigureIsItsFormula) {
  ScalingQuestion q = asking();
  q.flops = 1e24;
  q.price = price(0.4);
  q.inference_tokens = 1e12;
  for (const AllocationFigures& a : answer(q).allocations) {
    for (const Traced& t : {a.at.parameters, a.tokens_per_parameter, *a.loss, a.training.value(), a.lifetime.value(),
                            a.usd->lifetime.value()}) {
      EXPECT_EQ(reevaluate(t), t.value());
    }
  }
}

TEST(Scaling, SaysWhatALawCannotAnswer) {
  ScalingQuestion q = asking("kaplan");
  q.flops = 1e24;
  EXPECT_FALSE(answer(q).allocations.front().loss);
  EXPECT_TRUE(answer(q).sizes.empty());
  q.inference_tokens = 1e12;
  EXPECT_NE(test::problems_of([&] { answer(q); }).find("kaplan"), std::string::npos);
  ScalingQuestion low = asking();
  low.loss = 1.8;
  EXPECT_NE(test::problems_of([&] { answer(low); }).find("1.8172"), std::string::npos);
}

}  // namespace
}  // namespace scalecalc
