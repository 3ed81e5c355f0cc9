// Where the ranks of a layout lie: a square for each chip of the torus, or of the nodes of a switched machine.
#pragma once

#include "network/placement.h"
#include "report/plot.h"

namespace scalecalc {

/// Empty where the placement does not cover the slice, or there is one chip. Of a large machine the first planes or
/// nodes alone, which the title says.
Plot layout_map(const HardwareSpec& hw, const Slice& slice, const Placement& placement);

}  // namespace scalecalc
