// The answer of `scalecalc train` over several counts of chips (docs/schema/train-curve.schema.json).
#pragma once

#include "report/output.h"
#include "report/plot.h"
#include "train/curve.h"

namespace scalecalc {

/// CSV and JSON Lines have the points; with --pareto they have the plans of the front. `complete` is false when the
/// search was interrupted.
Output train_curve_output(const TrainCurve& curve, bool complete = true);

/// Throughput over chips beside a linear one, and with --pareto time against cost.
std::vector<Plot> train_curve_plots(const TrainCurve& curve);

}  // namespace scalecalc
