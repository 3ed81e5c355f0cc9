// What the outputs of composed jobs share: a step's parts, the whole run, what is short.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "jobs/job_part.h"
#include "report/output.h"
#include "serve/serving_system.h"

namespace scalecalc {

/// "time_s.KEY" of each part, "step_time_s" and then each part's share of it.
void add_parts(std::vector<Figure>& out, const std::vector<JobPart>& parts, const SecondsOf<Traced>& step);

/// The layout of a training plan and what tells it apart; absent members if there is none.
std::string plan_words(const TrainedPlan& plan);

Block run_block(const JobRun& run, double steps);
Block shortage_block(const std::vector<JobShortage>& shortages);
std::string shortage_text(const JobShortage& shortage);
/// In a brief answer, where a step goes.
Block brief_parts_block(const std::vector<JobPart>& parts, const SecondsOf<Traced>& step);
/// In a brief answer, the memory of a chip that trains.
Block brief_trainer_block(std::string_view who, const TrainedPlan& plan, double capacity);
/// The plan's own step and "memory_bytes.PART" of a chip that trains; with `explain` from their formulas.
Block trainer_block(std::string_view key, std::string_view title, const TrainedPlan& plan, double capacity,
                    bool explain);

/// The parts of a step one after the other.
Plot parts_plot(const std::vector<JobPart>& parts);

}  // namespace scalecalc
