// The answer of `scalecalc train` (docs/schema/train.schema.json).
#pragma once

#include <string_view>

#include "report/output.h"
#include "train/question.h"

namespace scalecalc {

/// `complete` is false when the search was interrupted. `all_reasons`: people read every count of what was excluded,
/// and not the largest alone.
Output train_output(const TrainAnswer& answer, bool complete = true, bool all_reasons = false);

/// What any answer about training plans starts with: the query, what is assumed, what must be read first.
Output training_output(const TrainAnswer& job, std::string_view command, std::string title, bool complete,
                       std::string_view searched);

/// The plans' steps with their bands, where the step of the detailed plan goes, and the memory of its fullest chip.
std::vector<Plot> train_plots(const TrainAnswer& answer);

}  // namespace scalecalc
