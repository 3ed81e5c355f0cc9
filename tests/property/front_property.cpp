// The Pareto front against all plans of small random problems, and the scaling curve of such problems: more chips are
// never slower.
#include "train/pareto.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <utility>

#include "property/cases.h"
#include "support/fixtures.h"
#include "train/curve.h"

namespace scalecalc {
namespace {

ModelSpec some_model() {
  return *rc::gen::arbitrary<bool>() ? test::dense_model(*rc::gen::element(2, 3, 4))
                                     : test::moe_model(*rc::gen::element(2, 3));
}

HardwareSpec some_chip() {
  HardwareSpec hw = *rc::gen::arbitrary<bool>() ? test::torus_chip() : test::switched_chip();
  hw.hbm_capacity = Bytes(*rc::gen::element(1e9, 2e9, 4e9, 32e9));
  const double links = *rc::gen::element(0.25, 1.0, 4.0);
  for (Tier& tier : hw.network) {
    tier.torus.link_bandwidth = tier.torus.link_bandwidth * links;
    tier.switched.bandwidth_per_chip = tier.switched.bandwidth_per_chip * links;
  }
  return hw;
}

PlanRequest some_request(const ModelSpec& model, const HardwareSpec& hw) {
  PlanRequest request = test::request(model, hw, 1);
  request.slices.clear();
  for (const std::int64_t chips : {8, 6, 4, 3, 2, 1}) {
    if (*rc::gen::inRange(0, chips == 8 ? 4 : 2) > 0) continue;  // 8 take brute force the longest
    const std::vector<Slice> found = slices_of(hw, chips, 1);
    request.slices.insert(request.slices.end(), found.begin(), found.end());
  }
  if (request.slices.empty()) request.slices = slices_of(hw, 8, 1);
  request.workload = test::workload(512, *rc::gen::element(4.0, 6.0, 8.0));
  request.fix.remat = *rc::gen::element(Remat::kNone, Remat::kSelective, Remat::kFull);
  request.threads = 1;
  return request;
}

using Point = std::pair<double, double>;

Point point_of(const Plan& plan, const PlanRequest& request) {
  const double time = plan.step_s / (plan.batch_seqs * static_cast<double>(request.workload.seq));
  return {time, static_cast<double>(plan.slice.chips) * time};
}

/// Every layout on its best placement: a ranking too long to fill, so that no bound excludes anything. A slice at a
/// time, for a long ranking grows with the square of its plans.
std::vector<Point> all_points(const PlanRequest& request) {
  std::vector<Point> out;
  for (const Slice& slice : request.slices) {
    PlanRequest alone = request;
    alone.slices = {slice};
    alone.objective = Objective::kChips;
    alone.variants = true;
    alone.top = 1'000'000;
    for (const Plan& plan : plan(alone).plans) out.push_back(point_of(plan, request));
  }
  return out;
}

/// Straight from the definition: no point is better in one and no worse in the other.
std::vector<Point> undominated_points(const std::vector<Point>& all) {
  std::vector<Point> out;
  for (const Point& p : all) {
    const bool beaten = std::any_of(
        all.begin(), all.end(), [&](const Point& q) { return q.first <= p.first && q.second <= p.second && q != p; });
    if (!beaten) out.push_back(p);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

TEST(FrontProperty, EqualsTheFrontOfAllPlans) {
  std::size_t longer = 0;
  EXPECT_TRUE(rc::check("time against cost", [&] {
    const ModelSpec model = some_model();
    const HardwareSpec hw = some_chip();
    const PlanRequest request = some_request(model, hw);
    Planner planner(request);
    std::vector<Point> found;
    for (const Plan& plan : pareto_front(planner, request)) found.push_back(point_of(plan, request));
    RC_ASSERT(found == undominated_points(all_points(request)));
    if (found.size() > 1) ++longer;
  }));
  if (!test::all_cases()) return;
  EXPECT_GE(longer, 20U) << "fronts with a choice to make";
}

TEST(CurveProperty, MoreChipsAreNeverSlower) {
  std::size_t compared = 0;
  EXPECT_TRUE(rc::check("throughput does not fall", [&] {
    ResolvedQuestion job;
    job.model = some_model();
    job.hw = some_chip();
    job.efficiency = job.hw.efficiency;
    job.workload = test::workload(512, *rc::gen::element(4.0, 6.0, 8.0, 16.0));
    const CurveQuestion question{.train = {.chips = 32}, .chips = {1, 2, 4, 6, 7, 8, 12, 16, 24, 32}, .pareto = true};
    const TrainCurve curve = train_curve(question, job);
    double most = 0;
    for (const CurvePoint& point : curve.points) {
      RC_ASSERT(point.plan.has_value() != !point.reason.empty());
      if (!point.plan) continue;
      const double rate = point.plan->figures.tokens_per_s;
      RC_ASSERT(rate >= most);
      RC_ASSERT(point.plan->plan.layout.chips() <= point.chips);
      most = std::max(most, rate);
      ++compared;
    }
    // The front holds the fastest plan of all, which the curve's may tie with.
    if (!curve.front.empty()) RC_ASSERT(curve.front.front().figures.tokens_per_s >= most);
  }));
  if (!test::all_cases()) return;
  EXPECT_GE(compared, 200U);
}

}  // namespace
}  // namespace scalecalc
