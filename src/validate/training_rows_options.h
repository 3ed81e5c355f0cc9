// Files of measured training runs. A row says what ran in the words of the flags of `train` (Flag::row).
#pragma once

#include <vector>

#include "config/node.h"
#include "validate/measurement.h"

namespace scalecalc::cli {

/// A list of rows, or a map with `rows` and the `models` and `sources` they share. UserError with every problem found.
std::vector<Measurement> read_measurements(const ConfigNode& document);

}  // namespace scalecalc::cli
