// The answer of `scalecalc model design` as an output.
#pragma once

#include "design/design.h"
#include "report/output.h"

namespace scalecalc {

Output design_output(const DesignQuestion& question, const DesignAnswer& found);

}  // namespace scalecalc
