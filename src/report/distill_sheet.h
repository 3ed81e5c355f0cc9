// The answer of `scalecalc distill` as a Sheet.
#pragma once

#include "jobs/distill.h"
#include "report/sheet.h"

namespace scalecalc {

Sheet distill_sheet(const DistillAnswer& answer);

}  // namespace scalecalc
