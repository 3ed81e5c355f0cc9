// The points of a collective as an Output.
#pragma once

#include "collective/collective_answer.h"
#include "report/output.h"

namespace scalecalc {

Output collective_output(const CollectiveAnswer& answer, const HardwareSpec& hw);

}  // namespace scalecalc
