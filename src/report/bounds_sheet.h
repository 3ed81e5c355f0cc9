// The answer of `scalecalc bounds` as a Sheet.
#pragma once

#include "report/sheet.h"
#include "rules/bounds.h"

namespace scalecalc {

Sheet bounds_sheet(const BoundsQuestion& question, const BoundsAnswer& answer);

}  // namespace scalecalc
