// The points of a collective as an Output.
#pragma once

#include "collective/collective_answer.h"
#include "report/output.h"

namespace scalecalc {

Output collective_output(const CollectiveAnswer& answer, const HardwareSpec& hw);

/// Time over bytes, or over members of the group.
Plot collective_plot(const CollectiveAnswer& answer);

}  // namespace scalecalc
