// What became of the layouts an asker had in mind (--why-not) or came from (--from).
#pragma once

#include <string>
#include <vector>

#include "report/output.h"
#include "train/question.h"

namespace scalecalc {

/// One sentence: the outcome, how far from plan 1, and the main reason.
std::string verdict_text(const TrainAnswer& answer, const LayoutVerdict& verdict);

/// Each --why-not, then --from, for people.
std::vector<Block> why_blocks(const TrainAnswer& answer);

/// "why_not" and "from".
Figure why_not_figure(const TrainAnswer& answer);
Record from_record(const TrainAnswer& answer);

}  // namespace scalecalc
