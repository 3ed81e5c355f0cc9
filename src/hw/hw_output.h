// What `scalecalc hw` prints: every figure of a chip, or one line for each chip of the catalog.
#pragma once

#include "hw/hw.h"
#include "report/output.h"

namespace scalecalc {

Output hw_output(const HwAnswer& answer);
Output hw_list_output(const HwList& list);

/// The roofs of several chips, or of one chip in its number formats.
Plot hw_plot(const HwAnswer& answer);

}  // namespace scalecalc
