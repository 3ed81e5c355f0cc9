// Two plans side by side: which dimensions differ, and what each cause of the step and each part of memory gains or
// loses by it.
#pragma once

#include "train/question.h"

namespace scalecalc {

/// The other plan's times are scaled to the best plan's tokens a step, so that a larger batch is no slower plan.
PlanComparison compare_plans(const RankedPlan& best, const RankedPlan& other);

}  // namespace scalecalc
