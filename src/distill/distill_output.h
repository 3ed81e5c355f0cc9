// The answer of `scalecalc distill` as an Output.
#pragma once

#include "distill/distill.h"
#include "report/output.h"

namespace scalecalc {

/// `explain` works out the formulas of the student's plan and of the teacher's pass too.
Output distill_output(const DistillAnswer& answer, bool explain);

}  // namespace scalecalc
