#include "calibrate/next_runs.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "calibrate/training_calibration.h"
#include "unit/validate/measured.h"

namespace scalecalc {
namespace {

Layout layout_of(const Measurement& row) {
  Layout out;
  out.dp = 4;
  out.tp = row.layout.tp.value_or(2);
  return out;
}

TEST(NextRuns, DataRanksMakeUpForADegree) {
  const Measurement row = test::measurement();
  std::size_t degrees = 0;
  for (const NearRun& near : runs_near(row, layout_of(row))) {
    const RowLayout& l = near.row.layout;
    EXPECT_EQ(*l.dp * *l.tp * *l.pp * *l.cp, near.row.chips) << near.change;
    EXPECT_LE(near.row.chips, row.chips) << "more chips than one has cannot be measured";
    if (near.change.starts_with("tp ") || near.change.starts_with("pp ")) ++degrees;
  }
  EXPECT_EQ(degrees, 3U) << "tp 4, tp 1, pp 2";
}

TEST(NextRuns, LongerSequencesKeepTheTokens) {
  const Measurement row = test::measurement();
  const std::vector<NearRun> near = runs_near(row, layout_of(row));
  const auto longer = std::find_if(near.begin(), near.end(), [](const NearRun& r) { return r.row.seq == 4096; });
  ASSERT_NE(longer, near.end());
  EXPECT_EQ(longer->row.batch_seqs, 16);
}

/// Steps of one chip alone say nothing of links: a run over more chips, or a collective, is what to measure.
TEST(NextRuns, AsksForWhatTheRunsDoNotShow) {
  std::vector<Measurement> rows;
  for (const double batch : {8.0, 16.0, 32.0}) {
    Measurement row = test::measurement(
        "  micro_batch: 1\n  recompute: none\n  parallel: {dp: 1, tp: 8, pp: 1, sp: true, zero_stage: 1}\n");
    row.id += std::to_string(batch);
    row.batch_seqs = batch;
    row.step_s = 0.05 * batch;
    rows.push_back(row);
  }
  const Calibration c = calibrate({.rows = rows, .hardware = "h100-sxm"}, Catalog());
  ASSERT_EQ(c.next.size(), 3U);
  EXPECT_LT(c.next.front().band_after, c.next.front().band_before);
  EXPECT_TRUE(std::is_sorted(c.next.begin(), c.next.end(),
                             [](const NextRun& a, const NextRun& b) { return a.band_after > b.band_after; }));
  const Calibration none = calibrate({.rows = rows, .hardware = "h100-sxm", .next_runs = 0}, Catalog());
  EXPECT_TRUE(none.next.empty());
}

/// Once it is measured, the band is as narrow as was said.
TEST(NextRuns, TheBandShrinksAsForetold) {
  Measurement row = test::measurement();
  row.layout.tp = 1;
  row.layout.dp = 8;
  const StepObservation first(row, Catalog(), {});
  row.seq = 8192;
  row.batch_seqs = 8;
  const StepObservation second(row, Catalog(), {});
  const CoefficientFit fit({&first, &second}, first.base);
  const Slopes target = fit.slopes(second, fit.none());
  const Posterior before(fit.slots().size(), {{fit.slopes(first, fit.none()), 100}});
  const Posterior after(fit.slots().size(), {{fit.slopes(first, fit.none()), 100}, {target, 100}});
  EXPECT_NEAR(before.variance(target) - before.lessened(target, target, 0.01), after.variance(target), 1e-9);
}

}  // namespace
}  // namespace scalecalc
