#include "report/train_output.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "plan/ranking.h"
#include "report/brief_blocks.h"
#include "report/train_plan.h"
#include "report/train_sections.h"
#include "report/train_why.h"
#include "report/train_words.h"

namespace scalecalc {
namespace {

std::string_view order_words(Objective objective) {
  switch (objective) {
    case Objective::kTime: return "fastest first";
    case Objective::kCost: return "cheapest first";
    case Objective::kMemory: return "least memory first";
    case Objective::kChips: return "fewest chips first";
  }
  return "";
}

std::string train_title(const TrainAnswer& a) {
  // A switched machine's slice is named by its count of chips, which already stands there.
  const std::string shape = a.slice.shape.empty() ? "" : fmt::format(" ({})", a.slice.name());
  return fmt::format("{} {} on {} x {}{}: {}; {}", training_words(a.workload), a.model.title,
                     group_thousands(a.question.chips), a.hw.title, shape, workload_words(a.workload),
                     order_words(a.question.objective));
}

/// What is short, by how much, and what would help.
void add_nothing_fits(const TrainAnswer& a, std::vector<Line>& out) {
  if (!a.nearest_miss) {
    out.push_back(
        {a.obstacles.empty() ? "No layout is possible; the reasons are counted below." : "No layout is possible:",
         Role::kBad});
    for (const std::string& obstacle : a.obstacles) out.push_back({"- " + obstacle, Role::kBad});
  } else {
    const double capacity = a.hw.hbm_capacity.value();
    const double total = sum_of(a.nearest_miss->figures.memory_bytes);
    const auto bytes = [](double value) { return format_quantity(value, UnitKind::kBytes); };
    out.push_back({fmt::format("Nothing fits. Chip memory is short: the nearest layout needs {} of the {} on each "
                               "chip, {} too many.",
                               bytes(total), bytes(capacity), bytes(total - capacity)),
                   Role::kBad});
    const Layout& layout = a.nearest_miss->plan.layout;
    out.push_back({fmt::format("Nearest layout: {}; {}", degrees_text(layout), recipe_text(layout))});
  }
  if (!a.would_fit.empty()) out.push_back({"What would fit: " + either_of(a.would_fit), Role::kGood});
}

std::string near_note(const TrainAnswer& a) {
  const auto near = [&](const RankedPlan& p) {
    return &p != &a.plans.front() && is_near(a.question.objective, a.plans.front().plan, p.plan);
  };
  if (std::none_of(a.plans.begin(), a.plans.end(), near)) return "";
  return fmt::format("= within {} of plan 1, less than any coefficient is known to.",
                     format_quantity(kNear, UnitKind::kFraction));
}

/// " without expert overlap, which no run on this kind of chip shows,": what faster plans use and the recommended does
/// not.
std::string left_aside(const Recommendation& r) {
  if (r.aside.empty()) return "";
  return fmt::format(" without {}, which no run on this kind of chip shows,", join_and(r.aside));
}

/// Why it is recommended rather than plan 1.
std::string recommended_rule(const TrainAnswer& a, Depth depth) {
  const Recommendation& r = *a.recommended;
  if (a.question.objective == Objective::kMemory || a.question.objective == Objective::kChips) return "";
  const std::string room = format_quantity(a.hw.hbm_capacity.value() * (1 - r.usable), UnitKind::kBytes) +
                           " of memory free" + (depth == Depth::kFull ? ", the error of its prediction" : "");
  if (!r.has_room) return fmt::format("no plan leaves {}: it may not fit", room);
  return fmt::format("the simplest within {} of the best{} that leaves {}{}",
                     format_quantity(a.question.tie, UnitKind::kFraction), left_aside(r), room,
                     r.only_unmeasured ? "; nothing fits without what no measured run shows" : "");
}

/// "Recommended: plan 1, dp 8; mb 1, remat none, zero 1".
std::string recommended_name(const TrainAnswer& a) {
  const Recommendation& r = *a.recommended;
  return fmt::format("Recommended: {}{}; {}", r.rank ? fmt::format("plan {}, ", *r.rank) : "",
                     degrees_text(r.plan.plan.layout), recipe_text(r.plan.plan.layout));
}

std::string behind_text(const Recommendation& r) {
  return r.behind == 0 ? "as plan 1" : fmt::format("{:+.1f} % per token", 100 * r.behind);
}

std::string recommended_note(const TrainAnswer& a) {
  if (!a.recommended) return "";
  const std::string rule = recommended_rule(a, Depth::kFull);
  return fmt::format("* {}: step {} ({}){}.", recommended_name(a), seconds_text(a.recommended->plan.plan.step_s),
                     behind_text(*a.recommended), rule.empty() ? "" : "; " + rule);
}

/// The plan shown in detail in one line: how long, how much, what binds.
std::vector<Line> headline(const TrainAnswer& a) {
  const RankedPlan* shown = detailed_plan(a);
  if (shown == nullptr) return {};
  const PlanFigures& f = shown->figures;
  const double step = shown->plan.step_s;
  std::string out =
      fmt::format("step {} ({} to {})", seconds_text(step), seconds_text(f.step_low_s), seconds_text(f.step_high_s));
  if (f.run) {
    out = fmt::format("{} ({} to {}){}, {}", seconds_text(f.run->time_s),
                      seconds_text(f.run->time_s * f.step_low_s / step),
                      seconds_text(f.run->time_s * f.step_high_s / step),
                      f.run->cost_usd ? ", " + compact_usd(*f.run->cost_usd) : "", out);
  }
  out += fmt::format(", MFU {}, {} of {}, {} tokens/s; bound by {}", format_quantity(f.mfu, UnitKind::kFraction),
                     format_quantity(sum_of(f.memory_bytes), UnitKind::kBytes),
                     format_quantity(a.hw.hbm_capacity.value(), UnitKind::kBytes), compact_count(f.tokens_per_s),
                     f.bound_by);
  const bool recommended = a.question.plan == 0 && a.recommended;
  std::vector<Line> lines{{(recommended ? recommended_name(a)
                                        : detailed_name(a) + ", " + degrees_text(shown->plan.layout) + "; " +
                                              recipe_text(shown->plan.layout)),
                           Role::kHeading},
                          {std::move(out), Role::kGood}};
  return lines;
}

/// Ranked by time, fewer chips never win; whoever pays should still see them.
std::string cheaper_note(const TrainAnswer& a) {
  if (!a.cheaper || a.plans.empty()) return "";
  const Plan& plan = a.cheaper->plan;
  const double saved = 1 - a.plans.front().figures.tokens_per_s_per_chip / a.cheaper->figures.tokens_per_s_per_chip;
  const auto& run = a.cheaper->figures.run;
  return fmt::format("Cheaper per token on fewer chips: {}{}, {}; {}: step {}{}, {:.1f}% fewer chip-hours than plan 1.",
                     group_thousands(plan.slice.chips),
                     plan.slice.shape.empty() ? "" : fmt::format(" ({})", plan.slice.name()), degrees_text(plan.layout),
                     recipe_text(plan.layout), seconds_text(plan.step_s),
                     run ? ", run " + seconds_text(run->time_s) : "", 100 * saved);
}

/// The same in a line.
std::string brief_cheaper_note(const TrainAnswer& a) {
  if (!a.cheaper || a.plans.empty()) return "";
  const double saved = 1 - a.plans.front().figures.tokens_per_s_per_chip / a.cheaper->figures.tokens_per_s_per_chip;
  const auto& run = a.cheaper->figures.run;
  return fmt::format("Cheaper per token on fewer chips: --chips {}, {:.1f}% fewer chip-hours than plan 1{}.",
                     a.cheaper->plan.slice.chips, 100 * saved, run ? ", run " + seconds_text(run->time_s) : "");
}

/// A machine too large for its batch waits; more of the same chips do not help, a larger batch does.
std::string batch_note(const TrainAnswer& a) {
  if (!a.batch_to_fill) return "";
  const RankedPlan& best = a.plans.front();
  double busy = 0;
  for (const auto& [cause, seconds] : best.figures.time_s) busy += cause == "compute" || cause == "hbm" ? seconds : 0;
  return fmt::format(
      "The batch does not fill this machine: a step gives each chip {} tokens, and for {} of it the chips wait. With "
      "--batch-tokens {} they would work for more than half of it.",
      compact_count(step_tokens(a, best.plan) / static_cast<double>(best.plan.slice.chips)),
      format_quantity(1 - busy / best.plan.step_s, UnitKind::kFraction), compact_count(*a.batch_to_fill));
}

/// What the mark of the table means.
std::string tight_note(const TrainAnswer& a) {
  if (std::none_of(a.plans.begin(), a.plans.end(), is_tight)) return "";
  return fmt::format(
      "tight: may not fit; nine of ten measured runs need at most {:g} % more than predicted, it has less to spare.",
      100 * a.workload.memory.error);
}

Block ranking(const TrainAnswer& a) {
  Block out{.key = "plans", .columns = ranking_columns(a), .header = no_plan_record(a)};
  for (std::size_t i = 0; i < a.plans.size(); ++i) {
    out.records.push_back(plan_record(a, a.plans[i], i + 1, a.question.chips));
    Figure& rank = out.records.back().figures.front();
    const bool near = i > 0 && is_near(a.question.objective, a.plans.front().plan, a.plans[i].plan);
    const bool recommended = a.recommended && a.recommended->rank == i + 1;
    rank.shown = fmt::format("{}{}{}", i + 1, near ? "=" : "", recommended ? "*" : "");
    if (a.recommended && a.recommended->rank == i + 1) out.records.back().role = Role::kGood;
  }
  constexpr std::size_t kBriefRows = 5;
  out.brief_rows = a.question.top == TrainQuestion{}.top ? kBriefRows : a.question.top;
  std::string why = a.recommended ? recommended_rule(a, Depth::kBrief) : "";
  if (!why.empty()) why = "* Recommended: " + why + ".";
  std::string marks;
  const std::string near =
      near_note(a).empty() ? "" : fmt::format("= within {} of plan 1.", format_quantity(kNear, UnitKind::kFraction));
  const std::string tight = tight_note(a).empty() ? "" : "tight: may not fit.";
  for (const std::string& note : {near, why, tight}) {
    if (!note.empty()) marks += (marks.empty() ? "" : " ") + note;
  }
  for (std::string note : {std::move(marks), brief_cheaper_note(a), batch_note(a)}) {
    if (!note.empty()) out.brief_lines.push_back({std::move(note)});
  }
  std::vector<std::string> notes;
  if (a.search.feasible > a.plans.size() && !a.plans.empty()) {
    notes.push_back(fmt::format("The best {} are shown; --top N shows more.", a.plans.size()));
  }
  for (std::string note : {near_note(a), recommended_note(a), tight_note(a), cheaper_note(a), batch_note(a)})
    notes.push_back(std::move(note));
  for (std::string& note : notes) {
    if (!note.empty()) out.lines.push_back({std::move(note)});
  }
  return out;
}

/// What JSON says beside the ranking.
Block beside_ranking(const TrainAnswer& a, bool complete) {
  std::vector<Figure> f{
      object_figure("best", a.recommended ? std::optional(recommended_record(a)) : std::nullopt),
      object_figure("cheaper_on_fewer_chips",
                    a.cheaper ? std::optional(plan_record(a, *a.cheaper, 1, a.question.chips)) : std::nullopt),
      object_figure("search", search_record(a.search, complete)),
      texts_figure("completeness", a.completeness),
      object_figure("nearest_miss", a.nearest_miss ? std::optional(miss_record(a, *a.nearest_miss)) : std::nullopt),
      texts_figure("obstacles", a.obstacles),
      changes_figure("would_fit", a.would_fit)};
  if (!a.why_not.empty()) f.push_back(why_not_figure(a));
  if (a.from) f.push_back(object_figure("from", from_record(a)));
  f.push_back(maybe_figure("batch_to_fill_tokens", "", Format::kCount, a.batch_to_fill));
  return {.is_list = false, .records = {{std::move(f)}}, .for_files = true};
}

}  // namespace

Output training_output(const TrainAnswer& job, std::string_view command, std::string title, bool complete,
                       std::string_view searched) {
  Output out{.command = std::string(command), .title = std::move(title), .query = train_query(job)};
  out.keeps_points = true;
  out.assumptions = job.assumptions;
  out.deciding = deciding_of_training();
  out.complete = complete;
  out.line_schema = "train-plan";
  out.line_head = Record{{datum("model", job.model.name), datum("hardware", job.hw.name)}};
  if (job.question.ideal) {
    out.summary.push_back({"Ideal efficiency: the upper bound of the roofline, which no real run reaches."});
  }
  if (!complete) {
    out.warnings.push_back(fmt::format("interrupted: the {} is incomplete, better layouts may be missing", searched));
  }
  return out;
}

Output train_output(const TrainAnswer& answer, bool complete, bool all_reasons) {
  Output out = training_output(answer, "train", train_title(answer), complete, "search");
  out.line_head->figures.push_back(count_figure("chips_asked", answer.question.chips));
  out.nothing_fits = answer.plans.empty() && complete;
  if (out.nothing_fits) add_nothing_fits(answer, out.summary);
  out.explanation = answer.explanation;
  if (answer.question.explain) out.explained = detailed_name(answer);
  out.headline = headline(answer);
  if (answer.recommended) {
    const Recommendation& r = *answer.recommended;
    out.answer = plan_record(answer, r.plan, r.rank.value_or(0), answer.question.chips);
  }

  const auto add = [&](std::vector<Block> blocks) {
    for (Block& block : blocks) out.blocks.push_back(std::move(block));
  };
  out.blocks = {ranking(answer), beside_ranking(answer, complete)};
  add(why_blocks(answer));
  if (!answer.plans.empty()) add(plan_blocks(answer));
  if (answer.plans.empty() && answer.nearest_miss) {
    Block memory = in_full(memory_block(answer, *answer.nearest_miss, "Memory of the nearest layout"));
    memory.section = "memory";
    add({std::move(memory),
         brief_memory_block("Memory of the nearest layout", answer.nearest_miss->figures.memory_bytes)});
  }
  add(search_blocks(answer, all_reasons));
  return out;
}

}  // namespace scalecalc
