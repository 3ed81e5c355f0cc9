// One's own step beside its prediction, as blocks of an output.
#pragma once

#include "report/output.h"
#include "train/measured.h"

namespace scalecalc {

/// For JSON the object `measured`, for people a line or two and the terms.
void add_measured(const MeasuredSpeed& speed, const RankedPlan& plan, const MeasuredVerdict& verdict, Output& out);

}  // namespace scalecalc
