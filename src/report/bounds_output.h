// The answer of `scalecalc bounds` as an Output.
#pragma once

#include "report/output.h"
#include "rules/bounds.h"

namespace scalecalc {

Output bounds_output(const BoundsQuestion& question, const BoundsAnswer& answer);

}  // namespace scalecalc
