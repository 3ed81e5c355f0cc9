// Where the ranks of a layout lie: a square for each chip of the torus, or of the nodes of a switched machine.
#pragma once

#include <cstdint>

#include "network/placement.h"
#include "report/plot.h"

namespace scalecalc {

/// Empty where the placement does not cover the slice, or there is one chip. Of a large machine the first planes or
/// nodes alone, which the title says.
/// `ep` expert ranks are the first of tensor (where an expert is on one of them, `etp` 1), context and data ranks.
Plot layout_map(const HardwareSpec& hw, const Slice& slice, const Placement& placement, std::int64_t ep = 1,
                std::int64_t etp = 1);

}  // namespace scalecalc
