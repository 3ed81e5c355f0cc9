#include "report/answer_bars.h"

#include <gtest/gtest.h>

#include "unit/report/sample_answer.h"
#include "unit/validate/measured.h"

namespace scalecalc {
namespace {

JobPart job_part(const std::string& label, double seconds) {
  return {label, label, searched_seconds(seconds, label, "test")};
}

TEST(PartsPlot, EachBeginsWhereTheOneBeforeEnds) {
  const Plot plot = parts_plot({job_part("generation", 3), job_part("nothing", 0), job_part("update", 1.5)});
  ASSERT_EQ(plot.bars.size(), 2U);
  EXPECT_EQ(plot.bars[0].label, "generation: 3.00 s");
  EXPECT_DOUBLE_EQ(plot.bars[0].spans.at(0).to, 3);
  EXPECT_DOUBLE_EQ(plot.bars[1].spans.at(0).from, 3);
  EXPECT_DOUBLE_EQ(plot.bars[1].spans.at(0).to, 4.5);
}

TEST(TrainPlots, StepsHaveTheirBandsAndPartsAddUp) {
  const std::vector<Plot> plots = train_plots(sample_answer());
  ASSERT_EQ(plots.size(), 3U);
  ASSERT_EQ(plots[0].bars.size(), 2U);
  EXPECT_EQ(plots[0].bars[0].label, "1: 2.00 s");
  EXPECT_DOUBLE_EQ(plots[0].bars[0].spans.at(0).to, 2);
  EXPECT_DOUBLE_EQ(plots[0].bars[0].spans.at(1).from, 1.75);
  EXPECT_DOUBLE_EQ(plots[0].bars[0].spans.at(1).to, 2.5);
  EXPECT_DOUBLE_EQ(plots[1].bars.back().spans.at(0).to, 2);  // 1.5 + 0.25 + 0.25
  EXPECT_EQ(plots[2].bars.back().label, "free: 49.0 GB");    // 100 - 20 - 30 - 1
  EXPECT_DOUBLE_EQ(plots[2].bars.back().spans.at(0).to, 100e9);
  EXPECT_TRUE(train_plots(sample_miss()).empty());
}

TEST(StackedPlot, PartsOfOneNameAreOneKind) {
  const Plot plot = stacked_plot("", {}, {{"a", {{"x", 1}, {"none", 0}, {"y", 2}}}, {"b", {{"y", 4}, {"z", 1}}}});
  EXPECT_EQ(plot.bar_kinds, (std::vector<std::string>{"x", "y", "z"}));
  ASSERT_EQ(plot.bars.at(1).spans.size(), 2U);
  EXPECT_EQ(plot.bars[1].spans[0].kind, 1U);
  EXPECT_EQ(plot.bars[1].spans[1].from, 4);
  EXPECT_EQ(plot.bars[1].spans[1].to, 5);
}

TEST(RecordBars, RecordsWithoutTheFigureHaveNoBar) {
  Block block;
  block.records = {{{text_figure("system", "system", "a"), number_figure("usd", "cost", Format::kUsd, 2000)}},
                   {{text_figure("system", "system", "b"), number_figure("usd", "cost", Format::kUsd, std::nullopt)}},
                   {{text_figure("system", "system", "c")}}};
  const Plot plot = record_bars(block, "system", "usd", "Cost");
  ASSERT_EQ(plot.bars.size(), 1U);
  EXPECT_EQ(plot.bars[0].label.substr(0, 3), "a: ");
  EXPECT_DOUBLE_EQ(plot.bars[0].spans.at(0).to, 2000);
  EXPECT_EQ(plot.x.title, "cost");
  EXPECT_FALSE(has_data(record_bars(block, "system", "time_s", "Time")));
}

TEST(TimelinePlot, WorkIsDrawnAndSendsAreNot) {
  StepTrace trace;
  trace.simulated_s = 11;
  trace.stages.resize(2);
  trace.stages[1].holds.first = 1;
  trace.step.host_s = 1;
  trace.timeline.end_s = 10;
  const auto block = [&](BlockKind kind, std::int64_t stage, double from, double to) {
    trace.timeline.blocks.push_back({.kind = kind, .stage = stage, .start_s = from, .end_s = to});
  };
  block(BlockKind::kForward, 0, 0, 2);
  block(BlockKind::kSendActivation, 0, 2, 3);
  block(BlockKind::kForward, 1, 3, 4);
  block(BlockKind::kForward, 1, 4, 5);  // one span with the one before
  block(BlockKind::kBackward, 1, 5, 7);
  block(BlockKind::kBackwardInput, 0, 7, 8);
  block(BlockKind::kBackwardWeight, 0, 8, 9);
  block(BlockKind::kReduce, 0, 8.5, 9.5);  // beside the backward, and seen behind it
  const Plot plot = timeline_plot(trace);
  ASSERT_EQ(plot.bars.size(), 2U);
  const auto spans = [&](std::size_t stage) {
    std::vector<std::array<double, 3>> out;
    for (const PlotSpan& s : plot.bars[stage].spans) out.push_back({s.from, s.to, static_cast<double>(s.kind)});
    return out;
  };
  using Spans = std::vector<std::array<double, 3>>;
  EXPECT_EQ(spans(0), (Spans{{0, 2, 0}, {7, 9, 1}, {9, 9.5, 2}, {10, 11, 2}}));
  EXPECT_EQ(spans(1), (Spans{{3, 5, 0}, {5, 7, 1}, {10, 11, 2}}));
  EXPECT_EQ(plot.bar_kinds.size(), 3U);
}

TEST(ValidationPlots, EveryRowIsAPointAndIsCounted) {
  Validation v{.compared = Compared::kStepTime};
  for (const double error : {-0.9, -0.01, 0.0, 0.04, 0.05, 0.31}) {
    PredictedRow row;
    row.row = test::measurement();
    row.measured = 10;
    row.predicted = 10 * (1 + error);
    row.error = error;
    v.rows.push_back(row);
  }
  const std::vector<Plot> plots = validation_plots(v);
  ASSERT_EQ(plots.size(), 2U);
  EXPECT_EQ(plots[0].series.at(0).points.size(), 6U);
  EXPECT_DOUBLE_EQ(plots[0].series.at(1).points.at(0).x, plots[0].series.at(1).points.at(0).y);
  std::vector<std::string> counted;
  for (const PlotBar& bar : plots[1].bars) {
    if (bar.spans.at(0).to > 0) counted.push_back(bar.label);
  }
  EXPECT_EQ(counted, (std::vector<std::string>{"below -30 %: 1", "-5 % to 0 %: 1", "0 % to +5 %: 2", "+5 % to +10 %: 1",
                                               "above +30 %: 1"}));
  EXPECT_FALSE(has_data(validation_plots(Validation{}).at(1)));
}

}  // namespace
}  // namespace scalecalc
