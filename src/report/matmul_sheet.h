// The answer of `scalecalc matmul` as a Sheet.
#pragma once

#include "primitives/matmul.h"
#include "report/sheet.h"

namespace scalecalc {

/// `top` strategies are listed, and the textbook ones (matmul.h) whatever their rank. `hw` may be nullptr for a single
/// array.
Sheet matmul_sheet(const MatmulAnswer& found, const HardwareSpec* hw, std::size_t top);

}  // namespace scalecalc
