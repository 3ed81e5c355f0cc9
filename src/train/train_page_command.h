// The pictures of a training answer's page.
#pragma once

#include <optional>
#include <vector>

#include "report/plot.h"
#include "train/curve.h"
#include "train/question.h"
#include "train/resolve.h"

namespace scalecalc {

/// The plans' steps and memory by part, and of the plan in detail its operations under the roofs, its timeline and
/// where its ranks lie.
std::vector<Plot> train_page_plots(const TrainAnswer& answer);

/// What the step of the plan in detail answers to. `resolved` as it was when `answer` was found.
Plot train_tornado_plot(const TrainAnswer& answer, const ResolvedQuestion& resolved);

/// The question of the plan in detail on a quarter of its chips to four times as many: the same layout but for its data
/// ranks, what they take of a step and recomputation. Cheap, since little is left to search; what is fastest on each
/// count is --chips A..B's to say. Nothing where no plan was found.
std::optional<CurveQuestion> page_curve_question(const TrainAnswer& answer);
Plot page_curve_plot(const TrainAnswer& answer, const TrainCurve& curve);

}  // namespace scalecalc
