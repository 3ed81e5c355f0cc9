// Objects that several parts of train's JSON hold.
#pragma once

#include "report/json_text.h"
#include "train/question.h"

namespace scalecalc {

/// The pins of a filter, by the keys of a layout.
Json filter_json(const LayoutFilter& filter);
/// Layout, placement, machine and batch of a plan.
Json machine_json(const TrainAnswer& answer, const RankedPlan& ranked);
/// The causes of the step.
Json time_json(const RankedPlan& ranked);
/// The parts of memory, their total and the capacity.
Json memory_json(const TrainAnswer& answer, const RankedPlan& ranked);
/// A plan that does not fit, and by how much.
Json miss_json(const TrainAnswer& answer, const RankedPlan& ranked);

}  // namespace scalecalc
