// Properties of the serving rules over random sizes: more of a resource never slows a step, more work never speeds it
// up, and throughput stays below its plateau.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "bounds/bounds.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

BoundsQuestion random_bounds_question() {
  BoundsQuestion q;
  q.parameters = 1e8 * *rc::gen::inRange(1, 5000);
  q.hw = test::torus_chip();
  q.scope = BoundScope::kServing;
  q.chips = 8 * *rc::gen::inRange<std::int64_t>(1, 65);
  q.serving.batches = {static_cast<double>(*rc::gen::inRange(1, 4097))};
  q.serving.context = *rc::gen::inRange(1, 131073);
  q.serving.kv_bytes_per_token = 1e3 * *rc::gen::inRange(1, 1001);
  return q;
}

double step(const BoundsQuestion& q) { return bounds(q).points.front().step->value().value(); }

double value(const BoundsAnswer& answer, const std::string& name) {
  for (const Bound& b : answer.bounds) {
    if (b.name == name) return b.value.value();
  }
  return 0;
}

RC_GTEST_PROP(ServingBounds, MoreBandwidthOrComputeIsNeverSlower, ()) {
  BoundsQuestion q = random_bounds_question();
  const double before = step(q);
  q.hw.hbm_bandwidth = q.hw.hbm_bandwidth * 1.5;
  const double wider = step(q);
  RC_ASSERT(wider < before);
  for (auto& peak : q.hw.matmul_peak) {
    if (peak) peak = *peak * 2.0;
  }
  RC_ASSERT(step(q) <= wider);
}

RC_GTEST_PROP(ServingBounds, MoreSequencesAreSlowerTogetherAndCheaperEach, ()) {
  BoundsQuestion q = random_bounds_question();
  const double before = step(q);
  const double batch = q.serving.batches.front();
  q.serving.batches = {batch + 1};
  const double after = step(q);
  RC_ASSERT(after > before);
  RC_ASSERT((batch + 1) / after >= batch / before * (1 - 1e-12));
}

RC_GTEST_PROP(ServingBounds, ThroughputStaysBelowItsPlateau, ()) {
  const BoundsAnswer answer = bounds(random_bounds_question());
  const double tokens = answer.points.front().tokens_per_s->value().value();
  const double plateau = value(answer, "throughput_plateau");
  RC_ASSERT(tokens <= plateau * (1 + 1e-12));
  RC_ASSERT(plateau <= value(answer, "kv_throughput_plateau") * (1 + 1e-12));
}

RC_GTEST_PROP(ServingBounds, TheLargestBatchFitsAndOneMoreDoesNot, ()) {
  BoundsQuestion q = random_bounds_question();
  const double most = value(bounds(q), "max_batch");
  RC_PRE(most >= 1);
  q.serving.batches = {most};
  RC_ASSERT(*bounds(q).points.front().fits);
  q.serving.batches = {most + 1};
  RC_ASSERT(!*bounds(q).points.front().fits);
}

RC_GTEST_PROP(ServingBounds, TheLargestBatchWithinALimitKeepsItAndOneMoreDoesNot, ()) {
  BoundsQuestion q = random_bounds_question();
  q.serving.latency = step(q) * 1.01;
  const double most = value(bounds(q), "max_batch_for_latency");
  RC_ASSERT(most >= q.serving.batches.front());
  q.serving.batches = {most};
  RC_ASSERT(step(q) <= *q.serving.latency * (1 + 1e-12));
  q.serving.batches = {most + 1};
  RC_ASSERT(step(q) > *q.serving.latency * (1 - 1e-12));
}

}  // namespace
}  // namespace scalecalc
