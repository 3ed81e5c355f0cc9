// The answer of `scalecalc rl` as a Sheet.
#pragma once

#include "jobs/rl.h"
#include "report/sheet.h"

namespace scalecalc {

Sheet rl_sheet(const RlAnswer& answer);

}  // namespace scalecalc
