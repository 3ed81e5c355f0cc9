// The figures of a training plan, each described once: JSON, CSV and tables are made from them. A new figure is a line
// in train_plan.cpp, and where people shall read it, its key in a list of columns.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "report/output.h"
#include "train/question.h"

namespace scalecalc {

/// An item of "plans"; rank 0: not among them. `job` gives the model, the machine and the workload; `asked` chips of it
/// were asked for.
Record plan_record(const TrainAnswer& job, const RankedPlan& ranked, std::size_t rank, std::int64_t asked);
/// The plan to run, whole, and why that one.
Record recommended_record(const TrainAnswer& answer);
/// A plan that does not fit, and by how much.
Record miss_record(const TrainAnswer& job, const RankedPlan& ranked);
/// A plan beside the ranking: its machine, its step and its memory.
Record fitting_record(const TrainAnswer& job, const RankedPlan& ranked);
/// The columns of a CSV without plans.
Record no_plan_record(const TrainAnswer& job);

/// What the table of a ranking shows of its plans.
std::vector<ShownColumn> ranking_columns(const TrainAnswer& answer);

/// The pins of a filter, by the keys of a layout.
Record filter_record(const LayoutFilter& filter);
Record search_record(const SearchStats& search, bool complete);
/// What was asked, but for the flags.
Record train_query(const TrainAnswer& answer);

/// A word of an enumeration by its list of names.
template <class Names, class Word>
Figure word_of(std::string_view key, const Names& names, Word word) {
  return datum(key, std::string(names.at(static_cast<std::size_t>(word))));
}
Figure texts_figure(std::string_view key, const std::vector<std::string>& texts);

/// "economics" and "power" of a run, objects behind `around` ("run."); null where the run has none.
std::vector<Figure> run_conditions(const std::optional<RunFigures>& run, const std::string& around);

/// Tokens of a step of this plan.
double step_tokens(const TrainAnswer& job, const Plan& plan);
/// Whether it may not fit: where runs err from their prediction as measured ones do.
bool is_tight(const RankedPlan& ranked);
/// Whether the plan runs another batch than the one asked for.
bool adjusts_batch(const TrainAnswer& job, const Plan& plan);

}  // namespace scalecalc
