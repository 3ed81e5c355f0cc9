// A pipeline laid out block by block: no stage and no link does two things at once, nothing is lost, and no run is
// shorter than its critical paths or longer than all its blocks one after the other.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "cost/step_run.h"
#include "plan/plan_costs.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

constexpr double kTraceRounding = 1e-9;

double length(const ChunkTimes& t) { return t.forward + t.backward_input + t.backward_weight; }

void check_tracks(const Timeline& timeline) {
  std::map<std::tuple<std::int64_t, int>, double> until;  // by stage: compute, link onward, link back
  for (const PipelineBlock& b : timeline.blocks) {
    if (b.kind >= BlockKind::kReduce) continue;
    double& end = until[{b.stage, is_compute(b.kind) ? 0 : (b.onward ? 1 : 2)}];
    RC_ASSERT(b.start_s >= end - kTraceRounding * timeline.end_s);
    end = b.end_s;
  }
}

void check_nothing_is_lost(const PipelineRun& run, const Timeline& timeline) {
  std::set<std::tuple<bool, std::int64_t, std::int64_t>> passes;
  for (const PipelineBlock& b : timeline.blocks) {
    if (!is_compute(b.kind)) continue;
    RC_ASSERT(b.stage == b.chunk % run.pp);
    RC_ASSERT(passes.insert({b.kind == BlockKind::kForward, b.chunk, b.microbatch}).second);
  }
  RC_ASSERT(passes.size() == 2 * run.chunks.size() * static_cast<std::size_t>(run.microbatches));
  for (std::size_t s = 0; s < timeline.busy_s.size(); ++s) {
    double work = 0;
    for (std::size_t c = s; c < run.chunks.size(); c += timeline.busy_s.size()) work += length(run.chunks[c]);
    work *= static_cast<double>(run.microbatches);
    RC_ASSERT(std::abs(timeline.busy_s[s] - work) <= kTraceRounding * work);
  }
}

/// A stage waits for the first forward to reach it, works, and what it made last goes back to the first stage. One
/// microbatch goes through everything.
void check_critical_paths(const PipelineRun& run, const Timeline& timeline) {
  const double longest = timeline.compute_end_s * (1 + kTraceRounding);
  double before = 0;
  double one = 2 * static_cast<double>(run.pp > 1 ? run.chunks.size() - 1 : 0) * run.send_s;
  for (std::size_t s = 0; s < timeline.busy_s.size(); ++s) {
    RC_ASSERT(longest >= before + timeline.busy_s[s]);
    before += length(run.chunks[s]) + 2 * run.send_s;
  }
  double all = 0;
  for (const ChunkTimes& chunk : run.chunks) one += length(chunk);
  RC_ASSERT(longest >= one);
  for (const PipelineBlock& b : timeline.blocks) {
    if (b.kind < BlockKind::kReduce) all += b.end_s - b.start_s;
  }
  RC_ASSERT(timeline.compute_end_s <= all * (1 + kTraceRounding));
  RC_ASSERT(timeline.end_s >= timeline.compute_end_s);
}

void check_run(const PipelineRun& run) {
  const Timeline timeline = simulate(run);
  check_tracks(timeline);
  check_nothing_is_lost(run, timeline);
  check_critical_paths(run, timeline);
}

double hundredths(int least, int most) { return *rc::gen::inRange(least, most) / 100.0; }

TEST(TraceProperty, AnyTimesRunSoundly) {
  EXPECT_TRUE(rc::check([] {
    PipelineRun run;
    run.pp = *rc::gen::inRange(1, 7);
    run.schedule = *rc::gen::element(Schedule::kGpipe, Schedule::k1F1B, Schedule::kInterleaved);
    if (run.schedule == Schedule::kInterleaved && run.pp > 1) run.vpp = *rc::gen::inRange(1, 5);
    run.microbatches = *rc::gen::inRange(1, 9) * (run.schedule == Schedule::kInterleaved ? run.pp : 1);
    for (std::int64_t c = 0; c < run.pp * run.vpp; ++c) {
      run.chunks.push_back({hundredths(1, 300), hundredths(1, 300), hundredths(0, 300)});
    }
    run.send_s = *rc::gen::arbitrary<bool>() ? 0 : hundredths(0, 400);
    for (std::int64_t s = 0; s < run.pp; ++s) {
      run.tails.push_back({hundredths(0, 100), hundredths(0, 100), hundredths(0, 100), hundredths(0, 100)});
    }
    check_run(run);
  }));
}

ModelSpec traced_model() {
  switch (*rc::gen::inRange(0, 3)) {
    case 0: return test::hybrid_model(14);
    case 1: return test::moe_model(*rc::gen::inRange(4, 17));
    default: return test::dense_model(*rc::gen::inRange(4, 17));
  }
}

TEST(TraceProperty, UnevenPlansRunSoundly) {
  EXPECT_TRUE(rc::check([] {
    const ModelSpec model = traced_model();
    HardwareSpec hw = test::switched_chip();
    hw.hbm_capacity = Bytes(1e15);
    hw.efficiency.overlap_dp.value = hundredths(0, 101);
    hw.efficiency.overlap_tp.value = hundredths(0, 101);
    PlanRequest request = test::request(model, hw, 16);
    request.workload = test::workload(1024, *rc::gen::element(16.0, 32.0, 48.0));
    request.top = 1;
    request.threads = 1;
    request.fix = {.tp = *rc::gen::element(1, 2), .cp = 1, .pp = *rc::gen::element(1, 2, 4)};
    request.fix.schedule = *rc::gen::element(Schedule::kGpipe, Schedule::k1F1B, Schedule::kInterleaved);
    if (*request.fix.pp == 1) request.fix.schedule.reset();
    const PlanResult found = plan(request);
    RC_PRE(!found.plans.empty());
    const PlanCosts<double> costs(Reader<double>{}, request, found.plans.front());
    const StepInput<double> in = costs.input();
    const StepRun step = step_run(in, phases(in));
    check_run(step.run);
    const double simulated = simulate(step.run).end_s + step.host_s;
    for (std::size_t s = 0; s < step.stages.size(); ++s) {
      const StageTail& tail = step.run.tails[s];
      const double busy = simulate(step.run).busy_s[s];
      RC_ASSERT(simulated * (1 + kTraceRounding) >= busy + tail.reduce_s + tail.update_s + tail.gather_s + step.host_s);
    }
  }));
}

}  // namespace
}  // namespace scalecalc
