// The JSON of `scalecalc train` (docs/schema/train.schema.json).
#pragma once

#include <string>
#include <string_view>

#include "train/question.h"

namespace scalecalc {

/// One document and a newline. InternalError if a figure is not finite. `complete` is false when the search was
/// interrupted.
std::string train_json(const TrainAnswer& answer, std::string_view tool_version, bool complete = true);

/// One line per plan, each with the question's model, hardware and chips, so that lines of many runs can be mixed.
std::string train_jsonl(const TrainAnswer& answer, std::string_view tool_version);

}  // namespace scalecalc
