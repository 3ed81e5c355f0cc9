// Parts that the JSON documents of `scalecalc train` share.
#pragma once

#include "report/json_text.h"
#include "train/question.h"

namespace scalecalc {

/// An item of `plans[]`. The question's chips tell how many are idle.
Json plan_json(const TrainAnswer& answer, const RankedPlan& ranked, std::size_t rank);
Json query_json(const TrainAnswer& answer);
Json search_json(const SearchStats& search, bool complete);

}  // namespace scalecalc
