// The answer of `scalecalc train` (docs/schema/train.schema.json).
#pragma once

#include <string_view>

#include "report/sheet.h"
#include "train/question.h"

namespace scalecalc {

/// `complete` is false when the search was interrupted. `all_reasons`: people read every count of what was excluded,
/// and not the largest alone.
Sheet train_sheet(const TrainAnswer& answer, bool complete = true, bool all_reasons = false);

/// What any answer about training plans starts with: the query, what is assumed, what must be read first.
Sheet training_sheet(const TrainAnswer& job, std::string_view command, std::string title, bool complete,
                     std::string_view searched);

}  // namespace scalecalc
