// Divisors of chip, layer and batch counts.
#pragma once

#include <cstdint>
#include <vector>

namespace scalecalc {

/// All positive divisors of n >= 1, ascending.
std::vector<std::int64_t> divisors(std::int64_t n);

}  // namespace scalecalc
