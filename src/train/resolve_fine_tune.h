// What of a model trains, from a question as typed.
#pragma once

#include "train/resolve.h"

namespace scalecalc {

/// Sets the workload's adapters and says what they are; nothing where the whole model trains. Multi-token-prediction
/// modules are left out of the model. UserError where no projection of the model is meant.
void resolve_fine_tune(const TrainQuestion& question, ResolvedQuestion& out);

/// Says how the frozen weights lie in memory and what MFU counts, once the precision is known.
void assume_base(ResolvedQuestion& out);

}  // namespace scalecalc
