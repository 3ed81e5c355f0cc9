// Several values in one text, for flags that draw a curve.
//
//   8           one value            8,16,64      a list
//   8..8192*2   8, 16, 32 ... 8192   0..4096+512  0, 512, 1024 ... 4096
//   1..512      doubling: 1, 2, 4 ... 512; the end is always the last value
// Every value takes the suffixes of its unit: 1MiB..1GiB*4.
#pragma once

#include <string_view>
#include <variant>
#include <vector>

#include "base/limits.h"
#include "base/units.h"

namespace scalecalc {

/// The values in the order written, in the base unit of `kind`. A range must rise, and all give at most `most`.
std::variant<std::vector<double>, UnitError> parse_sweep(std::string_view text, UnitKind kind, bool bare_ok = false,
                                                         std::size_t most = limits::kSweepValues);

}  // namespace scalecalc
