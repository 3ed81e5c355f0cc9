#pragma once

#include "compare/serve_comparison.h"
#include "compare/train_comparison.h"
#include "report/output.h"

namespace scalecalc {

/// With `explain` the step times stand as sums of their causes.
Output compare_output(const TrainComparison& comparison, bool explain);
Output compare_serve_output(const ServeComparison& comparison, bool explain);

}  // namespace scalecalc
