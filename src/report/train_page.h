// The pictures of a training answer's page.
#pragma once

#include <vector>

#include "report/plot.h"
#include "train/question.h"

namespace scalecalc {

/// The plans' steps and memory by part, and of the plan in detail its operations under the roofs, its timeline and
/// where its ranks lie.
std::vector<Plot> train_page_plots(const TrainAnswer& answer);

}  // namespace scalecalc
