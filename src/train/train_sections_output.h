// What people read below a ranking of training plans: the best plan taken apart, its run, what was searched.
#pragma once

#include <string_view>
#include <vector>

#include "report/output.h"
#include "train/question.h"

namespace scalecalc {

/// Plan 1: its layout, step, memory, conventions, placement and run.
std::vector<Block> plan_blocks(const TrainAnswer& answer);
std::vector<Block> run_blocks(const TrainAnswer& answer, const RankedPlan& ranked);
/// The parts of a chip's memory.
Block memory_block(const TrainAnswer& answer, const RankedPlan& ranked, std::string_view title);
/// What was searched and what was cut. `all_reasons`: every count of what was cut, and not the largest alone.
std::vector<Block> search_blocks(const TrainAnswer& answer, bool all_reasons);

}  // namespace scalecalc
