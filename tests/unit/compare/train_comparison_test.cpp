#include "compare/train_comparison.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/diagnostic.h"
#include "train/figures.h"
#include "train/resolve.h"

namespace scalecalc {
namespace {

const Catalog& catalog() {
  static const Catalog kCatalog;
  return kCatalog;
}

TrainCompareQuestion question(std::vector<SystemAsked> systems) {
  TrainCompareQuestion out;
  out.train.model = "llama3-8b";
  out.train.tokens = 1e12;
  out.systems = std::move(systems);
  return out;
}

SystemAsked system(const char* name, std::optional<std::int64_t> chips = std::nullopt) {
  return {.hardware = name, .chips = chips};
}

/// Run times of the fastest plans on exactly these chips, by count; absent where nothing is built or fits.
std::optional<double> time_on(const char* hardware, std::int64_t chips) {
  TrainQuestion q = question({}).train;
  q.hardware = hardware;
  q.chips = chips;
  const ResolvedQuestion job = resolve_job(q, catalog());
  if (slices_of(job.hw, chips, 1).empty()) return std::nullopt;
  ResolvedQuestion machine = on_machine(q, job);
  std::erase_if(machine.slices, [&](const Slice& s) { return s.chips != chips; });
  const PlanRequest request = request_of(q, machine);
  const PlanResult best = Planner(request).best({.objective = Objective::kTime, .top = 1});
  if (best.plans.empty()) return std::nullopt;
  return ranked(machine, request, best.plans.front()).figures.run->time_s;
}

TEST(CompareTraining, ItsPlanIsTheOneThatTrainRanksFirst) {
  const TrainComparison found = compare_training(question({system("h100-sxm", 64), system("tpu-v5p", 64)}), catalog());
  for (const ComparedRun& row : found.systems) {
    TrainQuestion q = found.question.train;
    q.hardware = row.hardware;
    q.chips = 64;
    const TrainAnswer own = answer(q, catalog());
    EXPECT_EQ(row.sized->plan.plan.layout, own.plans.front().plan.layout) << row.label;
    EXPECT_EQ(row.run().time_s, own.plans.front().figures.run->time_s);
    EXPECT_NEAR(*row.usd, *own.plans.front().figures.run->cost_usd, 1e-9 * *row.usd);
  }
}

TEST(CompareTraining, ADeadlineTakesTheFewestChipsOfAllCounts) {
  for (const char* hardware : {"h100-sxm", "tpu-v5p"}) {
    constexpr std::int64_t kMost = 96;
    for (const double deadline_s : {100 * 86400.0, 45 * 86400.0}) {
      std::int64_t expected = 0;
      for (std::int64_t n = 1; n <= kMost && expected == 0; ++n) {
        const auto time_s = time_on(hardware, n);
        if (time_s && *time_s <= deadline_s) expected = n;
      }
      TrainCompareQuestion q = question({system(hardware)});
      q.train.tokens = 2e11;
      q.chips = kMost;
      q.deadline_s = deadline_s / 5;  // a fifth of the tokens
      const TrainComparison found = compare_training(q, catalog());
      ASSERT_GT(expected, 1) << hardware;
      ASSERT_TRUE(found.systems.front().answered()) << hardware << ": " << found.systems.front().reason;
      EXPECT_EQ(found.systems.front().sized->plan.plan.slice.chips, expected) << hardware;
      EXPECT_LE(*found.systems.front().time_s, *q.deadline_s);
    }
  }
}

TEST(CompareTraining, ADeadlineThatIsMetExactlyIsMet) {
  TrainCompareQuestion q = question({system("h100-sxm", 64)});
  q.deadline_s = time_on("h100-sxm", 64);
  const TrainComparison found = compare_training(q, catalog());
  EXPECT_EQ(found.systems.front().sized->plan.plan.slice.chips, 64);
}

TEST(CompareTraining, ABudgetTakesTheFastestOfAllCounts) {
  constexpr std::int64_t kMost = 64;
  TrainCompareQuestion q = question({system("h100-sxm")});
  q.systems.front().price = 3;
  q.chips = kMost;
  const double cost_of_8 = *time_on("h100-sxm", 8) * 8 / 3600 * 3;
  q.budget_usd = 1.02 * cost_of_8;
  double best_s = 1e99;
  for (std::int64_t n = 1; n <= kMost; ++n) {
    const auto time_s = time_on("h100-sxm", n);
    if (time_s && *time_s * static_cast<double>(n) / 3600 * 3 <= *q.budget_usd) best_s = std::min(best_s, *time_s);
  }
  const TrainComparison found = compare_training(q, catalog());
  ASSERT_TRUE(found.systems.front().answered()) << found.systems.front().reason;
  EXPECT_NEAR(*found.systems.front().time_s, best_s, 1e-9 * best_s);
  EXPECT_LE(*found.systems.front().usd, *q.budget_usd * (1 + 1e-12));
}

TEST(CompareTraining, ImpossibleSystemsStayWithTheirReason) {
  TrainCompareQuestion q =
      question({system("h100-sxm", 64), system("h100-sxm", 65), system("tpu-v5p", 8961), system("t4", 8)});
  q.train.fix.offload = 0;
  const TrainComparison found = compare_training(q, catalog());
  EXPECT_EQ(found.systems[0].status, ComparedStatus::kAnswered);
  EXPECT_EQ(found.systems[1].status, ComparedStatus::kNotBuilt);
  EXPECT_EQ(found.systems[2].status, ComparedStatus::kNotBuilt);
  EXPECT_EQ(found.systems[2].reason, "8,961 chips are more than one tpu-v5p pod of 8,960; tpu-v5p:2x8960 joins pods");
  EXPECT_FALSE(found.systems[3].answered());
  EXPECT_FALSE(found.systems[3].reason.empty());
  EXPECT_EQ(found.baseline, 0U);
}

TEST(CompareTraining, NoDollarsWithoutAPriceAndNoBudgetEither) {
  TrainCompareQuestion q = question({system("gaudi3", 64), system("h100-sxm", 64)});
  EXPECT_FALSE(compare_training(q, catalog()).systems.front().usd);
  q.budget_usd = 1e7;
  const TrainComparison found = compare_training(q, catalog());
  EXPECT_EQ(found.systems.front().status, ComparedStatus::kNoPrice);
  EXPECT_TRUE(found.systems.back().answered());
}

TEST(CompareTraining, TooLateAndTooDearAreSaidSo) {
  TrainCompareQuestion q = question({system("h100-sxm")});
  q.chips = 64;
  q.deadline_s = 86400;
  EXPECT_EQ(compare_training(q, catalog()).systems.front().status, ComparedStatus::kTooSlow);
  q.deadline_s.reset();
  q.budget_usd = 1000;
  EXPECT_EQ(compare_training(q, catalog()).systems.front().status, ComparedStatus::kOverBudget);
}

TEST(CompareTraining, EqualTimeIsTheFewestChipsThatAreAsFast) {
  TrainCompareQuestion q = question({system("h100-sxm", 64), system("tpu-v5p", 64)});
  q.equal_time = true;
  const TrainComparison found = compare_training(q, catalog());
  const SizedPlan& same = *found.systems[1].same_time->found;
  EXPECT_LE(same.plan.figures.run->time_s, *found.systems[0].time_s);
  std::int64_t below = same.plan.plan.slice.chips - 1;
  while (below > 0 && !time_on("tpu-v5p", below)) --below;
  EXPECT_GT(*time_on("tpu-v5p", below), *found.systems[0].time_s);
}

TEST(CompareTraining, WhatEverySystemRefusesIsAWrongQuestion) {
  TrainCompareQuestion q = question({system("h100-sxm", 64), system("tpu-v5p", 64)});
  q.train.model = "llama3-9b";
  EXPECT_THROW(compare_training(q, catalog()), UserError);
  q.train.model = "llama3-8b";
  q.train.precision = "fp16";
  EXPECT_EQ(compare_training(q, catalog()).systems[1].status, ComparedStatus::kUnsuited);
}

TEST(RunCosts, AtTheBreakEvenPriceBothCostTheSame) {
  TrainCompareQuestion q = question({system("h100-sxm", 64), system("tpu-v5p", 128)});
  const TrainComparison found = compare_training(q, catalog());
  const RunCosts a = run_costs(found, found.systems[0], false);
  const RunCosts b = run_costs(found, found.systems[1], false);
  const double price = break_even_price(*a.usd, b.chip_hours).value().value();
  q.systems[1].price = price;
  const TrainComparison again = compare_training(q, catalog());
  EXPECT_NEAR(*again.systems[1].usd / *again.systems[0].usd, 1, 1e-12);
}

TEST(RunCosts, TokensForTheSameDollarsCostTheSameDollars) {
  TrainCompareQuestion q = question({system("h100-sxm", 64), system("tpu-v5p", 64)});
  const TrainComparison found = compare_training(q, catalog());
  const RunCosts a = run_costs(found, found.systems[0], false);
  const RunCosts b = run_costs(found, found.systems[1], false);
  q.train.tokens = tokens_for_equal_usd(Traced(1e12), *a.usd, *b.usd).value();
  const TrainComparison again = compare_training(q, catalog());
  EXPECT_NEAR(*again.systems[1].usd / *found.systems[0].usd, 1, 1e-12);
}

TEST(RunCosts, AreTheRunsFiguresAndExplained) {
  const TrainComparison found = compare_training(question({system("h100-sxm", 64)}), catalog());
  const ComparedRun& row = found.systems.front();
  for (const bool explain : {false, true}) {
    const RunCosts costs = run_costs(found, row, explain);
    EXPECT_NEAR(costs.time.value().value() / row.run().time_s, 1, 1e-12);
    EXPECT_NEAR(costs.chip_hours.value() / row.run().chip_hours, 1, 1e-12);
    EXPECT_NEAR(costs.energy->value().value() / *row.run().energy_j, 1, 1e-12);
    EXPECT_NEAR(costs.usd->value().value() / *row.usd, 1, 1e-12);
  }
  EXPECT_GT(explain(run_costs(found, row, true).usd->value()).size(),
            explain(run_costs(found, row, false).usd->value()).size());
}

}  // namespace
}  // namespace scalecalc
