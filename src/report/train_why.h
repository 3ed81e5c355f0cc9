// What became of the layouts an asker had in mind (--why-not) or came from (--from): sections of the report, and JSON.
#pragma once

#include <string>
#include <vector>

#include "report/json_text.h"
#include "report/report.h"
#include "train/question.h"

namespace scalecalc {

/// One sentence: the outcome, how far from plan 1, and the main reason.
std::string verdict_text(const TrainAnswer& answer, const LayoutVerdict& verdict);

/// Each --why-not, then --from.
std::vector<Section> why_sections(const TrainAnswer& answer);

Json why_not_json(const TrainAnswer& answer);
Json from_json(const TrainAnswer& answer);

}  // namespace scalecalc
