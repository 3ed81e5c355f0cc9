// The answer of `scalecalc rl` as an Output.
#pragma once

#include "report/output.h"
#include "rl/rl.h"

namespace scalecalc {

/// `explain` works out the formulas of the trainer's plan and of the engine's step too.
Output rl_output(const RlAnswer& answer, bool explain);

}  // namespace scalecalc
