// The answer of `scalecalc distill` as a Sheet.
#pragma once

#include "distill/distill.h"
#include "report/sheet.h"

namespace scalecalc {

/// `explain` works out the formulas of the student's plan and of the teacher's pass too.
Sheet distill_sheet(const DistillAnswer& answer, bool explain);

}  // namespace scalecalc
