// Objects that the JSON documents of `scalecalc train` share.
#pragma once

#include "report/json_text.h"
#include "train/question.h"

namespace scalecalc {

/// The pins of a filter, by the keys of a layout.
Json filter_json(const LayoutFilter& filter);
/// Layout, placement, machine and batch of a plan.
Json machine_json(const TrainAnswer& answer, const RankedPlan& ranked);
/// All null if the length of the run is not known.
Json run_json(const std::optional<RunFigures>& run);
/// The causes of the step.
Json time_json(const RankedPlan& ranked);
/// The parts of memory, their total and the capacity.
Json memory_json(const TrainAnswer& answer, const RankedPlan& ranked);
/// A plan that does not fit, and by how much.
Json miss_json(const TrainAnswer& answer, const RankedPlan& ranked);
/// An item of `plans[]`. The question's chips tell how many are idle.
Json plan_json(const TrainAnswer& answer, const RankedPlan& ranked, std::size_t rank);
Json query_json(const TrainAnswer& answer);
Json search_json(const SearchStats& search, bool complete);

}  // namespace scalecalc
