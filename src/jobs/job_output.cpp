// Makes the blocks that the outputs of `distill` and `rl` share: parts of a step, the run, what is short.
#include "jobs/job_output.h"

#include <fmt/format.h>

#include "base/scalar.h"
#include "base/units.h"
#include "report/brief_blocks.h"
#include "report/plot_bars.h"
#include "train/train_words.h"

namespace scalecalc {

void add_parts(std::vector<Figure>& out, const std::vector<JobPart>& parts, const SecondsOf<Traced>& step) {
  for (const JobPart& part : parts) {
    const bool nothing = value_of(part.time) <= 0;
    out.push_back(figure("time_s." + part.key, nothing ? "" : part.label, Format::kSeconds, part.time));
  }
  out.push_back(figure("step_time_s", "step", Format::kSeconds, step));
}

Block brief_parts_block(const std::vector<JobPart>& parts, const SecondsOf<Traced>& step) {
  std::vector<std::pair<std::string, double>> named;
  for (const JobPart& part : parts) named.emplace_back(part.label, value_of(part.time));
  return brief_time_block("Where a step goes", named, value_of(step));
}

Block brief_trainer_block(std::string_view who, const TrainedPlan& plan, double capacity) {
  return brief_memory_block(fmt::format("Memory: {} of {} on a chip that trains the {}", bytes_text(plan.total_bytes()),
                                        bytes_text(capacity), who),
                            plan.ranked.figures.memory_bytes);
}

std::string plan_words(const TrainedPlan& plan) {
  const std::string degrees = degrees_text(plan.ranked.plan.layout);
  return fmt::format("{}; {}", degrees.empty() ? "unsharded" : degrees, recipe_text(plan.ranked.plan.layout));
}

Block run_block(const JobRun& run, double steps) {
  std::vector<Figure> f{number_figure("steps", "steps", Format::kCount, steps),
                        figure("time_s", "time", Format::kSeconds, run.time),
                        figure("chip_hours", "chip-hours", Format::kCount, run.chip_hours)};
  f.push_back(maybe_figure("cost_usd", run.cost ? "cost" : "", Format::kUsd, run.cost));
  f.push_back(maybe_figure("energy_j", run.energy ? "energy" : "", Format::kNumber, run.energy));
  if (run.energy) f.back().shown = energy_text(value_of(*run.energy));
  return {.key = "run", .title = "The whole run", .is_list = false, .records = {{std::move(f), {}}}};
}

std::string shortage_text(const JobShortage& s) {
  if (s.needs <= 0) return fmt::format("{}: {}", s.who, s.how);
  return fmt::format("{}: a chip has {}, {} needs {} ({})", s.who, bytes_text(s.has), s.who, bytes_text(s.needs),
                     s.how);
}

Block shortage_block(const std::vector<JobShortage>& shortages) {
  Block out{.key = "shortages", .title = "What is short", .for_people = false};
  for (const JobShortage& s : shortages) {
    out.records.push_back(
        {{text_figure("who", "who", s.who), number_figure("needs_bytes", "needs of a chip", Format::kBytes, s.needs),
          number_figure("has_bytes", "a chip has", Format::kBytes, s.has), text_figure("how", "nearest", s.how)},
         {}});
  }
  if (shortages.empty()) out.title.clear();
  return out;
}

Block trainer_block(std::string_view key, std::string_view title, const TrainedPlan& plan, double capacity,
                    bool explain) {
  std::vector<Figure> f{
      number_figure("plan_step_time_s", "step of the plan", Format::kSeconds, plan.ranked.plan.step_s),
      number_figure("plan_tokens", "tokens of it", Format::kCount,
                    plan.ranked.plan.batch_seqs * static_cast<double>(plan.resolved->workload.seq))};
  for (const auto& [name, bytes] : plan.ranked.figures.memory_bytes) {
    f.push_back(number_figure("memory_bytes." + name, bytes > 0 ? name : "", Format::kBytes, bytes));
  }
  f.push_back(number_figure("memory_bytes.total", "of a chip", Format::kBytes, plan.total_bytes()));
  if (explain) {
    const PlanReading<Traced> reading = explain_plan(plan);
    f.front() =
        figure("plan_step_time_s", "step of the plan", Format::kSeconds, reading.time.total(), "sum of its causes");
    f.back() = figure("memory_bytes.total", "of a chip", Format::kBytes, reading.memory.total(), "sum of its parts");
  }
  f.push_back(number_figure("memory_bytes.capacity", "it has", Format::kBytes, capacity));
  return {.key = std::string(key), .title = std::string(title), .is_list = false, .records = {{std::move(f), {}}}};
}

Plot parts_plot(const std::vector<JobPart>& parts) {
  std::vector<std::pair<std::string, double>> times;
  times.reserve(parts.size());
  for (const JobPart& part : parts) times.emplace_back(part.label, value_of(part.time));
  return parts_plot("A step, part by part", {.title = "time of the step", .format = Format::kSeconds}, times);
}

}  // namespace scalecalc
