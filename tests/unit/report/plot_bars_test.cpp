#include "report/plot_bars.h"

#include <gtest/gtest.h>

namespace scalecalc {
namespace {

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

}  // namespace
}  // namespace scalecalc
