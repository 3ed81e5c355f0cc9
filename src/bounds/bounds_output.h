// The answer of `scalecalc bounds` as an Output.
#pragma once

#include "bounds/bounds.h"
#include "report/output.h"

namespace scalecalc {

Output bounds_output(const BoundsQuestion& question, const BoundsAnswer& answer);

/// Throughput of decoding and its step over the batch, where they are known.
std::vector<Plot> bounds_plots(const BoundsAnswer& answer);

}  // namespace scalecalc
