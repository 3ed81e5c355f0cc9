#include "cost/pipeline_sim.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "cost/stage_time.h"

namespace scalecalc {
namespace {

PipelineRun even(Schedule schedule, std::int64_t pp, std::int64_t vpp, std::int64_t m, ChunkTimes times = {1, 1, 1}) {
  PipelineRun run{.schedule = schedule, .pp = pp, .vpp = vpp, .microbatches = m};
  run.chunks.assign(static_cast<std::size_t>(pp * (schedule == Schedule::kDualPipe ? 1 : vpp)), times);
  return run;
}

double length(const ChunkTimes& t) { return t.forward + t.backward_input + t.backward_weight; }

void expect_sound(const PipelineRun& run, const Timeline& timeline) {
  // No stage does two things at once.
  for (std::int64_t s = 0; s < run.pp; ++s) {
    double end = 0;
    for (const PipelineBlock& b : timeline.blocks) {
      if (b.stage != s || !is_compute(b.kind)) continue;
      EXPECT_GE(b.start_s, end - 1e-12);
      end = b.end_s;
    }
  }
  // Every microbatch goes through every chunk forward and backward, once; what is put off is done.
  const auto blocks = [&](BlockKind kind) {
    return std::count_if(timeline.blocks.begin(), timeline.blocks.end(),
                         [&](const PipelineBlock& b) { return b.kind == kind; });
  };
  const auto all = static_cast<std::ptrdiff_t>(run.chunks.size()) * run.microbatches;
  EXPECT_EQ(blocks(BlockKind::kForward), all);
  EXPECT_EQ(blocks(BlockKind::kBackward) + blocks(BlockKind::kBackwardInput), all);
  EXPECT_EQ(blocks(BlockKind::kBackwardWeight), blocks(BlockKind::kBackwardInput));
  const bool split = run.schedule == Schedule::kZeroBubble || run.schedule == Schedule::kDualPipe;
  EXPECT_EQ(blocks(BlockKind::kBackwardInput) > 0, split);
}

TEST(PipelineSim, EqualStagesTakeTheTextbookTime) {
  for (const std::int64_t pp : {1, 2, 4, 8}) {
    for (const std::int64_t m : {8, 16, 32}) {
      for (const Schedule schedule : {Schedule::kGpipe, Schedule::k1F1B}) {
        const PipelineRun run = even(schedule, pp, 1, m);
        const Timeline t = simulate(run);
        expect_sound(run, t);
        EXPECT_DOUBLE_EQ(t.compute_end_s, static_cast<double>(m + pp - 1) * 3) << pp << " stages, " << m;
      }
    }
  }
}

TEST(PipelineSim, InterleavingDividesTheBubble) {
  for (const std::int64_t vpp : {2, 3, 4}) {
    const PipelineRun run = even(Schedule::kInterleaved, 4, vpp, 16);
    const Timeline t = simulate(run);
    expect_sound(run, t);
    // Chunks are a vpp-th of a stage; here each takes 3, so a stage takes 3 vpp.
    EXPECT_DOUBLE_EQ(t.compute_end_s, 16.0 * 3 * static_cast<double>(vpp) + 3 * 3);
  }
}

TEST(PipelineSim, ZeroBubbleFillsTheDrainWithWeightGradients) {
  for (const std::int64_t pp : {2, 4, 8}) {
    const ChunkTimes times{1, 1, 1};
    const PipelineRun run = even(Schedule::kZeroBubble, pp, 1, 4 * pp, times);
    const Timeline t = simulate(run);
    expect_sound(run, t);
    const double bubble = static_cast<double>(pp - 1) * (times.forward + times.backward_input - times.backward_weight);
    EXPECT_DOUBLE_EQ(t.compute_end_s, static_cast<double>(4 * pp) * length(times) + bubble) << pp;
  }
}

TEST(PipelineSim, KeepsWhatTheClosedFormSays) {
  for (const Schedule schedule : {Schedule::kGpipe, Schedule::k1F1B, Schedule::kInterleaved}) {
    const std::int64_t vpp = schedule == Schedule::kInterleaved ? 2 : 1;
    const Timeline t = simulate(even(schedule, 4, vpp, 16));
    for (std::int64_t s = 0; s < 4; ++s) {
      EXPECT_DOUBLE_EQ(t.peak_in_flight[static_cast<std::size_t>(s)], in_flight(schedule, 4, vpp, s, 16)) << s;
    }
  }
}

/// Stages of any length, from one microbatch on: the greedy simulation ends within a third of the closed form, in the
/// mean of a thousand pipelines within five per cent.
TEST(PipelineSim, ZeroBubbleEndsWhereTheClosedFormSays) {
  std::mt19937 random(1);
  const auto between = [&](double low, double high) { return std::uniform_real_distribution(low, high)(random); };
  double sum = 0;
  constexpr int kPipelines = 1000;
  for (int i = 0; i < kPipelines; ++i) {
    const std::int64_t pp = 2 + i % 7;
    PipelineRun run{.schedule = Schedule::kZeroBubble, .pp = pp, .microbatches = 1 + i / 7 % (3 * pp)};
    PassTime<double> all;
    std::vector<PassTime<double>> stages;
    for (std::int64_t s = 0; s < pp; ++s) {
      run.chunks.push_back({between(0.5, 1.5), between(0.5, 1.5), between(0.3, 1.3)});
      stages.push_back({Seconds(length(run.chunks.back())), Seconds(run.chunks.back().backward_weight)});
      all.time += stages.back().time;
      all.put_off += stages.back().put_off;
    }
    const double m = static_cast<double>(run.microbatches);
    double closed = 0;
    for (const PassTime<double>& stage : stages) {
      const Seconds bubble = split_bubble(run.schedule, m, static_cast<double>(pp), all, Seconds(0), stage);
      closed = std::max(closed, (m * stage.time + bubble).value());
    }
    const double ratio = closed / simulate(run).compute_end_s;
    EXPECT_GT(ratio, 2.0 / 3) << i;
    EXPECT_LT(ratio, 4.0 / 3) << i;
    sum += ratio;
  }
  EXPECT_NEAR(sum / kPipelines, 1, 0.05);
}

TEST(PipelineSim, SendsDelayTheNextStageOnly) {
  PipelineRun run = even(Schedule::k1F1B, 4, 1, 16);
  const double without = simulate(run).compute_end_s;
  run.send_s = 0.1;
  const double with = simulate(run).compute_end_s;
  EXPECT_GE(with, without + 2 * 3 * 0.1 - 1e-12);
  EXPECT_LE(with, without + 2 * 16 * 0.1 + 2 * 3 * 0.1);
}

TEST(PipelineSim, ReductionsStartWhenAStageIsDone) {
  PipelineRun run = even(Schedule::k1F1B, 4, 1, 8);
  run.tails.assign(4, {.reduce_s = 5});
  const Timeline t = simulate(run);
  EXPECT_DOUBLE_EQ(t.end_s, t.compute_end_s + 5);  // the first stage finishes last
  run.tails[0].reduce_s = 0;
  EXPECT_DOUBLE_EQ(simulate(run).end_s, t.compute_end_s + 5 - 2);  // the second stage ends one backward earlier
}

TEST(PipelineSim, ASlowStageSetsThePace) {
  PipelineRun run = even(Schedule::k1F1B, 4, 1, 32);
  run.chunks[2] = {2, 2, 2};
  const Timeline t = simulate(run);
  EXPECT_GE(t.compute_end_s, 32 * 6);
  EXPECT_LE(t.compute_end_s, 32 * 6 + 3 * 3 + 1e-9);
}

/// Table 2 of arXiv:2412.19437: a bubble of (pp/2 - 1)(F&B + B - 3W) and pp + 1 microbatches in flight. The paper runs
/// the forward and backward of a pair in step; here each starts as soon as it can, which ends earlier, by
/// 8 % where a step is as short as the schedule allows.
TEST(PipelineSim, DualPipeRunsFromBothEnds) {
  for (const std::int64_t pp : {2, 4, 8, 16}) {
    for (const std::int64_t m : {2 * pp, 4 * pp, 4 * pp + 2}) {
      for (const ChunkTimes& times : {ChunkTimes{1, 1, 1}, ChunkTimes{1, 1.5, 0.5}, ChunkTimes{2, 2.5, 1}}) {
        const PipelineRun run = even(Schedule::kDualPipe, pp, 1, m, times);
        const Timeline t = simulate(run);
        expect_sound(run, t);
        const double b = times.backward_input + times.backward_weight;
        const double bubble = static_cast<double>(pp / 2 - 1) * (times.forward + b + b - 3 * times.backward_weight);
        const double closed = static_cast<double>(m) * length(times) + bubble;
        EXPECT_LE(t.compute_end_s, closed * (1 + 1e-12)) << pp << " stages, " << m << " microbatches";
        EXPECT_GE(t.compute_end_s, closed * 0.92) << pp << " stages, " << m << " microbatches";
        EXPECT_GE(t.compute_end_s, static_cast<double>(m) * length(times));
        for (const double peak : t.peak_in_flight) EXPECT_LE(peak, static_cast<double>(pp + 1));
      }
    }
  }
}

TEST(PipelineSim, StagesAreBusyWithTheirWorkAlone) {
  const Timeline t = simulate(even(Schedule::k1F1B, 4, 1, 8));
  for (const double busy : t.busy_s) EXPECT_DOUBLE_EQ(busy, 8 * 3);
  for (std::size_t s = 0; s < 4; ++s) EXPECT_EQ(t.peak_in_flight[s], 4 - static_cast<double>(s));
  // Nothing is sent in no time, so no block is on its way.
  for (const PipelineBlock& b : t.blocks) EXPECT_EQ(b.onward, PipelineBlock{}.onward);
}

}  // namespace
}  // namespace scalecalc
