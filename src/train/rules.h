// The scaling book's rules of thumb with this question's numbers in them, as traced formulas for --explain.
#pragma once

#include "train/resolve.h"

namespace scalecalc {

/// Chapters 4 to 6: tokens per chip against the FSDP limit, the optimal FSDP x TP split, 6 N D, chip-years, days.
ExplainSection rules_of_thumb(const ResolvedQuestion& question);

}  // namespace scalecalc
