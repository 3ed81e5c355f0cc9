// Shows the ranked plans and the recommended one, for `scalecalc train`.
#include "train/train_output.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "plan/ranking.h"
#include "report/brief_blocks.h"
#include "report/plot_bars.h"
#include "train/train_plan_output.h"
#include "train/train_sections_output.h"
#include "train/train_why_output.h"
#include "train/train_words.h"

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
    say(out, Role::kBad,
        "Nothing fits. Chip memory is short: the nearest layout needs {} of the {} on each "
        "chip, {} too many.",
        bytes_text(total), bytes_text(capacity), bytes_text(total - capacity));
    const Layout& layout = a.nearest_miss->plan.layout;
    say(out, "Nearest layout: {}", layout_words(layout));
  }
  if (!a.would_fit.empty()) out.push_back({"What would fit: " + either_of(a.would_fit), Role::kGood});
}

std::string near_note(const TrainAnswer& a, Depth depth) {
  const auto near = [&](const RankedPlan& p) {
    return &p != &a.plans.front() && is_near(a.question.objective, a.plans.front().plan, p.plan);
  };
  if (std::none_of(a.plans.begin(), a.plans.end(), near)) return "";
  return fmt::format("= within {} of plan 1{}.", fraction_text(kNear),
                     depth == Depth::kFull ? ", less than any coefficient is known to" : "");
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
  const std::string room = bytes_text(a.hw.hbm_capacity.value() * (1 - r.usable)) + " of memory free" +
                           (depth == Depth::kFull ? ", the error of its prediction" : "");
  if (!r.has_room) return fmt::format("no plan leaves {}: it may not fit", room);
  return fmt::format("the simplest within {} of the best{} that leaves {}{}", fraction_text(a.question.tie),
                     left_aside(r), room, r.only_unmeasured ? "; nothing fits without what no measured run shows" : "");
}

/// "Recommended: plan 1, dp 8; mb 1, remat none, zero 1".
std::string recommended_name(const TrainAnswer& a) {
  const Recommendation& r = *a.recommended;
  return fmt::format("Recommended: {}{}", r.rank ? fmt::format("plan {}, ", *r.rank) : "",
                     layout_words(r.plan.plan.layout));
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
  out += fmt::format(", MFU {}, {} of {}, {} tokens/s; bound by {}", fraction_text(f.mfu),
                     bytes_text(sum_of(f.memory_bytes)), bytes_text(a.hw.hbm_capacity.value()),
                     compact_count(f.tokens_per_s), f.bound_by);
  const bool recommended = a.question.plan == 0 && a.recommended;
  return {
      {recommended ? recommended_name(a) : detailed_name(a) + ", " + layout_words(shown->plan.layout), Role::kHeading},
      {std::move(out), Role::kGood}};
}

/// Ranked by time, fewer chips never win; whoever pays should still see them.
std::string cheaper_note(const TrainAnswer& a, Depth depth) {
  if (!a.cheaper || a.plans.empty()) return "";
  const Plan& plan = a.cheaper->plan;
  const PlanFigures& f = a.cheaper->figures;
  const double saved = 1 - a.plans.front().figures.tokens_per_s_per_chip / f.tokens_per_s_per_chip;
  const std::string fewer = fmt::format("{:.1f}% fewer chip-hours than plan 1", 100 * saved);
  const std::string run = f.run ? ", run " + seconds_text(f.run->time_s) : "";
  const std::string lead = "Cheaper per token on fewer chips: ";
  if (depth == Depth::kBrief) return fmt::format("{}--chips {}, {}{}.", lead, plan.slice.chips, fewer, run);
  return fmt::format("{}{}{}, {}: step {}{}, {}.", lead, group_thousands(plan.slice.chips),
                     plan.slice.shape.empty() ? "" : fmt::format(" ({})", plan.slice.name()), layout_words(plan.layout),
                     seconds_text(plan.step_s), run, fewer);
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
      fraction_text(1 - busy / best.plan.step_s), compact_count(*a.batch_to_fill));
}

/// What the mark of the table means.
std::string tight_note(const TrainAnswer& a, Depth depth) {
  if (std::none_of(a.plans.begin(), a.plans.end(), is_tight)) return "";
  if (depth == Depth::kBrief) return "! may not fit.";
  return fmt::format(
      "! may not fit: nine of ten measured runs need at most {:g} % more than predicted, it has less to spare.",
      100 * a.workload.memory.error);
}

std::vector<Line> lines_of(std::initializer_list<std::string> notes) {
  std::vector<Line> out;
  for (const std::string& note : notes) {
    if (!note.empty()) out.push_back({note});
  }
  return out;
}

Block ranking(const TrainAnswer& a) {
  Block out{.key = "plans", .columns = ranking_columns(a), .header = no_plan_record(a)};
  for (std::size_t i = 0; i < a.plans.size(); ++i) {
    out.records.push_back(plan_record(a, a.plans[i], i + 1, a.question.chips));
    Figure& rank = out.records.back().figures.front();
    const bool near = i > 0 && is_near(a.question.objective, a.plans.front().plan, a.plans[i].plan);
    const bool recommended = a.recommended && a.recommended->rank == i + 1;
    rank.shown =
        fmt::format("{}{}{}{}", i + 1, near ? "=" : "", recommended ? "*" : "", is_tight(a.plans[i]) ? "!" : "");
    if (a.recommended && a.recommended->rank == i + 1) out.records.back().role = Role::kGood;
  }
  constexpr std::size_t kBriefRows = 5;
  out.brief_rows = a.question.top == TrainQuestion{}.top ? kBriefRows : a.question.top;
  const bool more = a.search.feasible > a.plans.size() && !a.plans.empty();
  out.lines = lines_of({more ? fmt::format("The best {} are shown; --top N shows more.", a.plans.size()) : "",
                        near_note(a, Depth::kFull), recommended_note(a), tight_note(a, Depth::kFull),
                        cheaper_note(a, Depth::kFull), batch_note(a)});
  const std::string rule = a.recommended ? recommended_rule(a, Depth::kBrief) : "";
  std::vector<std::string> marks;
  for (const Line& mark : lines_of({near_note(a, Depth::kBrief), rule.empty() ? "" : "* Recommended: " + rule + ".",
                                    tight_note(a, Depth::kBrief)})) {
    marks.push_back(mark.text);
  }
  out.brief_lines = lines_of({join(marks, " "), cheaper_note(a, Depth::kBrief), batch_note(a)});
  return out;
}

/// What JSON says beside the ranking.
Block beside_ranking(const TrainAnswer& a, bool complete) {
  std::vector<Figure> f{
      object_figure("best", a.recommended, [&](const auto&) { return recommended_record(a); }),
      object_figure("cheaper_on_fewer_chips", a.cheaper,
                    [&](const RankedPlan& plan) { return plan_record(a, plan, 1, a.question.chips); }),
      object_figure("search", search_record(a.search, complete)),
      texts_figure("completeness", a.completeness),
      object_figure("nearest_miss", a.nearest_miss, [&](const RankedPlan& miss) { return miss_record(a, miss); }),
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
  out.software = software_text(job.software, job.question);
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
  const TrainQuestion& asked = answer.question;
  if (asked.asides || asked.ranks || !out.answer) out.blocks = {ranking(answer)};
  if (!asked.asides) return out;  // rows are of the plans alone

  out.plots = train_plots(answer);

  const auto add = [&](std::vector<Block> blocks) {
    for (Block& block : blocks) out.blocks.push_back(std::move(block));
  };
  add({beside_ranking(answer, complete)});
  add(why_blocks(answer));
  if (!answer.plans.empty()) add(plan_blocks(answer));
  if (answer.plans.empty() && answer.nearest_miss) {
    Block memory = in_full(memory_block(answer, *answer.nearest_miss, "Memory of the nearest layout"));
    memory.section = "memory";
    add({std::move(memory),
         brief_memory_block("Memory of the nearest layout", answer.nearest_miss->figures.memory_bytes)});
  }
  add(search_blocks(answer, all_reasons));
  if (!answer.would_fit.empty()) add({next_block({next_line({.flags = {answer.would_fit.front()}})})});
  return out;
}

std::vector<Plot> train_plots(const TrainAnswer& answer) {
  const RankedPlan* detailed = detailed_plan(answer);
  if (detailed == nullptr) return {};
  const PlotAxis axis{.title = "time of the step", .format = Format::kSeconds};
  Plot plans{
      .title = "The plans", .x = axis, .bar_kinds = {"predicted", "from every coefficient at its best to its worst"}};
  for (const RankedPlan& ranked : answer.plans) {
    const auto rank = static_cast<std::size_t>(&ranked - answer.plans.data()) + 1;
    plans.bars.push_back({fmt::format("{}: {}", rank, text_of(Cell(ranked.plan.step_s), Format::kSeconds)),
                          {{0, ranked.plan.step_s, 0}, {ranked.figures.step_low_s, ranked.figures.step_high_s, 1}}});
  }
  std::vector<std::pair<std::string, double>> times;
  for (const auto& [cause, time] : detailed->figures.time_s) times.emplace_back(cause_words(cause), time);
  std::vector<std::pair<std::string, double>> memory = detailed->figures.memory_bytes;
  memory.emplace_back("free", answer.hw.hbm_capacity.value() - sum_of(memory));
  const std::string name = detailed_name(answer);
  return {std::move(plans), parts_plot(fmt::format("Where the step goes: {}", name), axis, times),
          parts_plot(fmt::format("Memory of the fullest chip: {}", name),
                     {.title = "memory of a chip", .format = Format::kBytes}, memory)};
}

}  // namespace scalecalc
