// The answer of `scalecalc rl` as a Sheet.
#pragma once

#include "report/sheet.h"
#include "rl/rl.h"

namespace scalecalc {

/// `explain` works out the formulas of the trainer's plan and of the engine's step too.
Sheet rl_sheet(const RlAnswer& answer, bool explain);

}  // namespace scalecalc
