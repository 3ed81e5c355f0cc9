// Finds the machine of a training question, and smaller ones worth offering.
#pragma once

#include "train/resolve.h"

namespace scalecalc {

/// Fills in `out.slices` and what is assumed of them, for hardware that is there already. UserError for a machine that
/// is not built.
void resolve_machine(const TrainQuestion& question, ResolvedQuestion& out);

}  // namespace scalecalc
