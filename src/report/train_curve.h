// The answer of `scalecalc train` over several counts of chips, in every format (docs/schema/train-curve.schema.json).
#pragma once

#include <string>
#include <string_view>

#include "report/report.h"
#include "train/curve.h"

namespace scalecalc {

/// The records are the points; with --pareto they are the plans of the front. `complete` is false when the search was
/// interrupted.
Report train_curve_report(const TrainCurve& curve, bool complete = true);

std::string train_curve_json(const TrainCurve& curve, std::string_view tool_version, bool complete = true);
/// One line per record, each with the question's model and hardware.
std::string train_curve_jsonl(const TrainCurve& curve, std::string_view tool_version);

/// The job as the answer of one count with these plans, for what is written of single answers.
TrainAnswer answer_at(const TrainCurve& curve, std::int64_t chips, std::vector<RankedPlan> plans);

}  // namespace scalecalc
