// The answer of `scalecalc scaling-law` as a sheet.
#pragma once

#include "report/sheet.h"
#include "scaling_law/scaling.h"

namespace scalecalc {

Sheet scaling_sheet(const ScalingQuestion& question, const ScalingAnswer& found);

}  // namespace scalecalc
