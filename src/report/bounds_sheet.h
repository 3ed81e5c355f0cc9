// The answer of `scalecalc bounds` as a Sheet.
#pragma once

#include "book/bounds.h"
#include "report/sheet.h"

namespace scalecalc {

Sheet bounds_sheet(const BoundsQuestion& question, const BoundsAnswer& answer);

}  // namespace scalecalc
