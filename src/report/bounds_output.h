// The answer of `scalecalc bounds` as an Output.
#pragma once

#include "bounds/bounds.h"
#include "report/output.h"

namespace scalecalc {

Output bounds_output(const BoundsQuestion& question, const BoundsAnswer& answer);

}  // namespace scalecalc
