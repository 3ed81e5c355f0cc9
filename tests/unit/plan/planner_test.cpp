#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <set>

#include "plan/enumerate.h"
#include "plan/request.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

/// Every layout of the space, costed on every placement without bounds or dominance: what the search must equal.
std::vector<Plan> brute_force(const PlanRequest& request) {
  std::vector<Plan> out;
  SearchStats stats;
  const Reader<double> reader;
  enumerate(request, stats, [&](const Branch& branch) {
    if (partition(*request.model, branch.layout.pp, branch.layout.vpp).empty()) return;
    for (const Layout& layout : shardings(request, branch.layout, stats)) {
      const Slice& slice = request.slices[branch.slice];
      for (Placement& p : placements(*request.hw, slice, {layout.tp, layout.cp, layout.fsdp, layout.dp, layout.pp})) {
        if (!experts_fold(p, layout)) continue;
        Plan plan{.layout = layout, .slice = slice, .placement = std::move(p)};
        const PlanReading<double> reading = read_plan(reader, request, plan);
        if (request.hw->hbm_capacity < reading.memory.total()) continue;
        plan.time = reading.time;
        plan.memory = reading.memory;
        plan.step_s = reading.time.total().value();
        plan.batch_seqs = static_cast<double>(layout.batch_seqs());
        out.push_back(std::move(plan));
      }
    }
  });
  return out;
}

double time_per_token(const Plan& p) { return p.step_s / p.batch_seqs; }

struct Small {
  const char* name;
  bool torus;
  bool moe;
  std::int64_t chips;
  double batch;
  double capacity;
  Objective objective;
};

void PrintTo(const Small& problem, std::ostream* out) { *out << problem.name; }

class SearchIsExact : public testing::TestWithParam<Small> {};

TEST_P(SearchIsExact, AgainstBruteForce) {
  const Small& c = GetParam();
  HardwareSpec hw = c.torus ? test::torus_chip() : test::switched_chip();
  hw.hbm_capacity = Bytes(c.capacity);
  hw.efficiency.overlap_tp.value = 0.5;
  hw.efficiency.overlap_ep.value = 0.3;
  hw.efficiency.contention_scale_up.value = 0.1;
  const ModelSpec model = c.moe ? test::moe_model(4) : test::dense_model(4);
  PlanRequest request = test::request(model, hw, c.chips);
  request.workload.batch_seqs = c.batch;
  request.variants = true;
  request.top = 20;
  request.objective = c.objective;
  const PlanResult found = plan(request);
  std::vector<Plan> all = brute_force(request);
  ASSERT_FALSE(all.empty());
  ASSERT_FALSE(found.plans.empty());
  if (c.objective == Objective::kMemory) {
    const auto least = std::min_element(
        all.begin(), all.end(), [](const Plan& a, const Plan& b) { return a.memory.total() < b.memory.total(); });
    EXPECT_EQ(found.plans.front().memory.total().value(), least->memory.total().value());
    return;
  }
  double best = 1e300;
  for (const Plan& p : all) best = std::min(best, time_per_token(p));
  // Ties within one per cent rank by memory, the rest by time; each layout counts with its best placement.
  const auto key = [&](const Plan& p) {
    const double t = time_per_token(p);
    return t <= best * 1.01 ? std::tuple(0.0, p.memory.total().value(), t) : std::tuple(t, 0.0, 0.0);
  };
  std::sort(all.begin(), all.end(),
            [&](const Plan& a, const Plan& b) { return key(a) != key(b) ? key(a) < key(b) : a.layout < b.layout; });
  std::vector<Plan> expected;
  for (Plan& p : all) {
    const bool seen =
        std::any_of(expected.begin(), expected.end(), [&](const Plan& e) { return e.layout == p.layout; });
    if (!seen) expected.push_back(std::move(p));
    if (expected.size() == request.top) break;
  }
  ASSERT_EQ(found.plans.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(found.plans[i].step_s, expected[i].step_s, 1e-12 * expected[i].step_s) << "rank " << i + 1;
    EXPECT_NEAR(time_per_token(found.plans[i]), time_per_token(expected[i]), 1e-12) << "rank " << i + 1;
  }
}

INSTANTIATE_TEST_SUITE_P(Problems, SearchIsExact,
                         testing::Values(Small{"dense_torus", true, false, 64, 64, 32e9, Objective::kTime},
                                         Small{"dense_torus_tight", true, false, 64, 48, 2e9, Objective::kTime},
                                         Small{"dense_nodes", false, false, 32, 64, 32e9, Objective::kTime},
                                         Small{"dense_nodes_tight", false, false, 16, 32, 1.5e9, Objective::kTime},
                                         Small{"moe_nodes", false, true, 16, 32, 32e9, Objective::kTime},
                                         Small{"moe_torus", true, true, 64, 64, 32e9, Objective::kTime},
                                         Small{"least_memory", false, false, 16, 32, 32e9, Objective::kMemory}),
                         [](const auto& test) { return test.param.name; });

TEST(Planner, EveryPlanIsLegalAndFits) {
  const HardwareSpec hw = test::switched_chip();
  const ModelSpec model = test::moe_model();
  PlanRequest request = test::request(model, hw, 64);
  request.top = 200;
  request.variants = true;
  std::set<std::string> seen;
  for (const Plan& p : plan(request).plans) {
    const Layout& l = p.layout;
    EXPECT_EQ(l.chips(), p.slice.chips);
    EXPECT_EQ(l.batch_seqs(), static_cast<std::int64_t>(p.batch_seqs));
    EXPECT_EQ(model.attention.heads % l.tp, 0);
    EXPECT_EQ(model.moe->experts % l.ep, 0);
    EXPECT_EQ(l.data() * l.cp * (l.tp / l.etp) % l.ep, 0);
    EXPECT_LE(l.pp, model.layers());
    EXPECT_LE(p.memory.total().value(), hw.hbm_capacity.value());
    EXPECT_NEAR(p.batch_seqs, request.workload.batch_seqs,
                request.workload.batch_seqs * request.workload.batch_tolerance);
    if (l.schedule == Schedule::kInterleaved) {
      EXPECT_EQ(l.grad_accum % l.pp, 0);
    }
  }
}

TEST(Planner, PinsAndLimitsHold) {
  const HardwareSpec hw = test::switched_chip();
  const ModelSpec model = test::dense_model();
  PlanRequest request = test::request(model, hw, 64);
  request.fix = {.tp = 4, .pp = 2, .zero = 1, .remat = Remat::kFull};
  request.max = {.cp = 2};
  const PlanResult result = plan(request);
  ASSERT_FALSE(result.plans.empty());
  for (const Plan& p : result.plans) {
    EXPECT_EQ(p.layout.tp, 4);
    EXPECT_EQ(p.layout.pp, 2);
    EXPECT_EQ(p.layout.zero, 1);
    EXPECT_EQ(p.layout.remat, Remat::kFull);
    EXPECT_LE(p.layout.cp, 2);
  }
  EXPECT_GT(result.stats.rejected[static_cast<std::size_t>(Reject::kPinned)], 0u);
}

TEST(Planner, NothingFitsReportsTheNearestMiss) {
  HardwareSpec hw = test::switched_chip();
  hw.hbm_capacity = Bytes(1e8);
  const ModelSpec model = test::dense_model();
  const PlanResult result = plan(test::request(model, hw, 8));
  EXPECT_TRUE(result.plans.empty());
  ASSERT_TRUE(result.nearest_miss.has_value());
  EXPECT_GT(result.nearest_miss->memory.total().value(), 1e8);
}

TEST(Planner, BatchSmallerThanTheRanksIsCountedNotRun) {
  const HardwareSpec hw = test::switched_chip();
  const ModelSpec model = test::dense_model();
  PlanRequest request = test::request(model, hw, 64);
  request.workload.batch_seqs = 4;
  const PlanResult result = plan(request);
  for (const Plan& p : result.plans) EXPECT_LE(p.layout.data(), 4);
  EXPECT_GT(result.stats.rejected[static_cast<std::size_t>(Reject::kBatchSmall)], 0u);
}

TEST(Planner, ABatchThatDoesNotDivideIsAdjustedWithinTolerance) {
  const HardwareSpec hw = test::switched_chip();
  const ModelSpec model = test::dense_model();
  PlanRequest request = test::request(model, hw, 56);
  request.workload.batch_seqs = 64;
  request.fix = {.tp = 1, .cp = 1, .pp = 1};
  const PlanResult result = plan(request);
  ASSERT_FALSE(result.plans.empty());
  EXPECT_EQ(result.plans.front().batch_seqs, 56);
}

TEST(Planner, TheSameQuestionGivesTheSameAnswer) {
  const HardwareSpec hw = test::torus_chip();
  const ModelSpec model = test::dense_model();
  const PlanRequest request = test::request(model, hw, 512);
  const PlanResult a = plan(request);
  const PlanResult b = plan(request);
  ASSERT_EQ(a.plans.size(), b.plans.size());
  for (std::size_t i = 0; i < a.plans.size(); ++i) {
    EXPECT_EQ(a.plans[i].layout, b.plans[i].layout);
    EXPECT_EQ(a.plans[i].step_s, b.plans[i].step_s);
    EXPECT_EQ(a.plans[i].placement.dims, b.plans[i].placement.dims);
  }
  EXPECT_EQ(a.stats.candidates, b.stats.candidates);
}

}  // namespace
}  // namespace scalecalc
