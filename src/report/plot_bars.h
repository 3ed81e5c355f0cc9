// The parts of pictures that several commands have: bars, stacks of parts, a line for a bound.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/output.h"
#include "report/plot.h"

namespace scalecalc {

/// A line of no points: a bound.
PlotSeries bound_series(std::string name, std::vector<PlotPoint> points);
/// The tornado's bars: from zero to either side.
PlotBar bar_of_two(std::string label, double low, double high);
/// A bar for each value, from zero, with the value in words.
Plot value_bars(std::string title, PlotAxis axis, const std::vector<std::pair<std::string, double>>& values);
/// A figure of records by another: a bar for each record that has it. Both by their key.
Plot record_bars(const Block& block, std::string_view label, std::string_view value, std::string title);
/// The parts of a sum one after the other.
Plot parts_plot(std::string title, PlotAxis axis, const std::vector<std::pair<std::string, double>>& parts);
/// What each bar of a stack is made of: its label and its parts by name. The kinds are those of all bars, in order.
using StackedBars = std::vector<std::pair<std::string, std::vector<std::pair<std::string, double>>>>;
Plot stacked_plot(std::string title, PlotAxis axis, const StackedBars& bars);

}  // namespace scalecalc
