// The answer of `scalecalc model design` as a sheet.
#pragma once

#include "design/design.h"
#include "report/sheet.h"

namespace scalecalc {

Sheet design_sheet(const DesignQuestion& question, const DesignAnswer& found);

}  // namespace scalecalc
