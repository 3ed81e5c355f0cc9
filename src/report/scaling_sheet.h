// The answer of `scalecalc scaling-law` as a sheet.
#pragma once

#include "design/scaling.h"
#include "report/sheet.h"

namespace scalecalc {

Sheet scaling_sheet(const ScalingQuestion& question, const ScalingAnswer& found);

}  // namespace scalecalc
