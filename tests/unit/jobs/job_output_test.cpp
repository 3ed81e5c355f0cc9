#include "jobs/job_output.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace scalecalc
