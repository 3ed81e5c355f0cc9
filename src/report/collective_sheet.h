// The points of a collective as a Sheet.
#pragma once

#include "primitives/collective_answer.h"
#include "report/sheet.h"

namespace scalecalc {

Sheet collective_sheet(const CollectiveAnswer& answer, const HardwareSpec& hw);

}  // namespace scalecalc
