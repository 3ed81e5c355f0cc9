// What the whole run is asked with: the asker's terms, the defaults for those that are missing, and what of them the
// answer does not count.
#pragma once

#include "train/resolve.h"

namespace scalecalc {

/// Fills in `job.run` and names in the assumptions what was filled in or is left out. UserError if failures are to be
/// counted and nothing says how long a checkpoint takes.
void add_run_terms(const TrainQuestion& question, ResolvedQuestion& job);

/// The run of one plan. The length of the run must be known.
RunInput run_input(const ResolvedQuestion& job, const Plan& plan, double mfu);

}  // namespace scalecalc
