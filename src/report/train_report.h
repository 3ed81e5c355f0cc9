// The answer of `scalecalc train` as a Report.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/report.h"
#include "train/question.h"

namespace scalecalc {

/// `complete` is false when the search was interrupted. `all_reasons`: every count of what was excluded, and not the
/// largest alone.
Report train_report(const TrainAnswer& answer, bool complete = true, bool all_reasons = false);

/// "fsdp 1120, tp 4+sp, cp 2": the degrees above one.
std::string degrees_text(const Layout& layout);
/// "mb 1 x 4, remat selective, zero 3": what else tells two layouts apart.
std::string recipe_text(const Layout& layout);
/// "--fix dp=1,fsdp=1120,... --fix ...": the flags that leave exactly this layout.
std::string fix_text(const Layout& layout);

/// "Training", or with which adapters a model is fine-tuned.
std::string training_words(const Workload& workload);

/// A cause of the step in words ("tensor-parallel communication"); a name that is none stays as it is.
std::string cause_words(const std::string& key);

/// Key of a Reject in JSON, in the order of the enum: "batch_small".
std::string_view key_of(Reject reason);

/// The figure of one name; 0 if the list has none.
double figure(const std::vector<std::pair<std::string, double>>& figures, std::string_view name);
double sum_of(const std::vector<std::pair<std::string, double>>& figures);

/// Chips of the question that this plan leaves unused.
std::int64_t idle_chips(const TrainAnswer& answer, const Plan& plan);
/// The price the run is charged at: the one given, else the hardware's first.
std::optional<double> price_of(const TrainAnswer& answer);

// Parts of the report, one file each.
Table plan_table(const TrainAnswer& answer);
Table plan_records(const TrainAnswer& answer);
std::vector<Section> plan_sections(const TrainAnswer& answer);
Section memory_section(const TrainAnswer& answer, const RankedPlan& ranked, const std::string& title);
std::vector<Section> run_sections(const TrainAnswer& answer, const RankedPlan& ranked);
std::vector<Section> search_sections(const TrainAnswer& answer, bool all_reasons);

}  // namespace scalecalc
