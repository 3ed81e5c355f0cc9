// Pictures of answers that are no curve: bars, parts of a step, timelines, and predictions against measurements.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calibrate/training_calibration.h"
#include "jobs/job_part.h"
#include "report/output.h"
#include "report/plot.h"
#include "train/question.h"
#include "train/step_trace.h"
#include "validate/rl_validation.h"
#include "validate/serving_validation.h"
#include "validate/training_validation.h"

namespace scalecalc {

/// The tornado's bars: from zero to either side.
PlotBar bar_of_two(std::string label, double low, double high);
/// A bar for each value, from zero, with the value in words.
Plot value_bars(std::string title, PlotAxis axis, const std::vector<std::pair<std::string, double>>& values);
/// A figure of records by another: a bar for each record that has it. Both by their key.
Plot record_bars(const Block& block, std::string_view label, std::string_view value, std::string title);
/// The parts of a sum one after the other.
Plot parts_plot(std::string title, PlotAxis axis, const std::vector<std::pair<std::string, double>>& parts);
Plot parts_plot(const std::vector<JobPart>& parts);
/// What each bar of a stack is made of: its label and its parts by name. The kinds are those of all bars, in order.
using StackedBars = std::vector<std::pair<std::string, std::vector<std::pair<std::string, double>>>>;
Plot stacked_plot(std::string title, PlotAxis axis, const StackedBars& bars);
/// The plans' steps with their bands, where the step of the detailed plan goes, and the memory of its fullest chip.
std::vector<Plot> train_plots(const TrainAnswer& answer);
/// What each stage of a pipeline does with the step.
Plot timeline_plot(const StepTrace& trace);
/// Each row's prediction over its measurement, and how many rows err by how much.
template <class Kind>
std::vector<Plot> validation_plots(const ValidationOf<Kind>& validation);
/// By how much each coefficient moved.
Plot coefficients_plot(const Calibration& calibration);

}  // namespace scalecalc
