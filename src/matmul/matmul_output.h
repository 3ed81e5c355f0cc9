// The answer of `scalecalc matmul` as an Output.
#pragma once

#include "matmul/matmul.h"
#include "report/output.h"

namespace scalecalc {

/// `top` strategies are listed, and the textbook ones (matmul.h) whatever their rank. `hw` may be nullptr for a single
/// array.
Output matmul_output(const MatmulAnswer& found, const HardwareSpec* hw, std::size_t top);

}  // namespace scalecalc
