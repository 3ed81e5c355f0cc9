#pragma once

#include "compare/serve_comparison.h"
#include "compare/train_comparison.h"
#include "report/sheet.h"

namespace scalecalc {

/// With `explain` the step times stand as sums of their causes.
Sheet compare_sheet(const TrainComparison& comparison, bool explain);
Sheet compare_serve_sheet(const ServeComparison& comparison, bool explain);

}  // namespace scalecalc
