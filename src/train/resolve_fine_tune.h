// What of a model trains, from a question as typed.
#pragma once

#include "train/resolve.h"

namespace scalecalc {

/// Sets the workload's adapters and says what they are; nothing where the whole model trains. Multi-token-prediction
/// modules are left out of the model. UserError where no projection of the model is meant.
void resolve_fine_tune(const TrainQuestion& question, ResolvedQuestion& out);

}  // namespace scalecalc
