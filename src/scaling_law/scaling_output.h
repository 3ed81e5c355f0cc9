// The answer of `scalecalc scaling-law` as an output.
#pragma once

#include "report/output.h"
#include "scaling_law/scaling.h"

namespace scalecalc {

Output scaling_output(const ScalingQuestion& question, const ScalingAnswer& found);

/// Loss over parameters for one budget of FLOPs, and what each law would train.
std::vector<Plot> scaling_plots(const ScalingQuestion& question, const ScalingAnswer& found);

}  // namespace scalecalc
