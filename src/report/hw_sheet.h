// What `scalecalc hw` prints: every figure of a chip, or one line for each chip of the catalog.
#pragma once

#include "primitives/hw.h"
#include "report/sheet.h"

namespace scalecalc {

Sheet hw_sheet(const HwAnswer& answer);
Sheet hw_list_sheet(const HwList& list);

}  // namespace scalecalc
