// The scaling curve and the front for people, and the rows of their CSV.
#include "report/train_curve.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "report/explained_text.h"
#include "report/train_report.h"

namespace scalecalc {
namespace {

/// One count has no curve.
bool front_alone(const TrainCurve& curve) { return curve.pareto && curve.points.size() == 1; }

std::string title(const TrainCurve& c) {
  const TrainAnswer& a = c.job;
  const double batch_tokens = a.workload.batch_seqs * static_cast<double>(a.workload.seq);
  const std::string counts = front_alone(c) ? fmt::format("up to {}", group_thousands(c.points.front().chips))
                                            : fmt::format("{} to {}", group_thousands(c.points.front().chips),
                                                          group_thousands(c.points.back().chips));
  std::string lead = front_alone(c) ? "Time against cost of training" : "Scaling of";
  if (a.workload.fine_tune) {
    lead = fmt::format("{} {}", front_alone(c) ? "Time against cost of" : "Scaling of", training_words(a.workload));
  }
  return fmt::format("{} {} on {} x {}: batch {} tokens, sequences of {}, {}, {}; {}", lead, a.model.title, counts,
                     a.hw.title, compact_count(batch_tokens), group_thousands(a.workload.seq),
                     a.workload.precision.name, a.workload.optimizer.name,
                     front_alone(c) ? "fastest first" : "the fastest plan of each count");
}

double batch_tokens(const TrainCurve& curve, const Plan& plan) {
  return plan.batch_seqs * static_cast<double>(curve.job.workload.seq);
}

bool adjusts_batch(const TrainCurve& curve, const Plan& plan) {
  return plan.batch_seqs != curve.job.workload.batch_seqs;
}

/// What a point of the curve and of the front both show: first which plan, then what the whole run takes.
std::vector<Column> plan_columns(bool adjusted) {
  return {{.title = "layout", .key = "layout", .flexible = true},
          {.title = "recipe", .key = "recipe", .importance = 6, .flexible = true},
          {.title = "batch", .key = "batch_tokens", .format = Format::kCount, .importance = adjusted ? 4 : 7},
          {.title = "step", .key = "step_time_s", .format = Format::kSeconds, .importance = 2},
          {.title = "MFU", .key = "mfu", .format = Format::kFraction, .importance = 2},
          {.title = "tokens/s", .key = "tokens_per_s", .format = Format::kCount, .importance = 5}};
}

std::vector<Cell> plan_cells(const TrainCurve& curve, const RankedPlan& p) {
  return {degrees_text(p.plan.layout),
          recipe_text(p.plan.layout),
          batch_tokens(curve, p.plan),
          p.plan.step_s,
          p.figures.mfu,
          p.figures.tokens_per_s};
}

std::vector<Column> run_columns(const TrainCurve& curve) {
  if (!curve.job.workload.tokens) return {};
  return {{.title = "run", .key = "run_time_s", .format = Format::kSeconds, .importance = 3},
          {.title = "cost", .key = "run_cost_usd", .format = Format::kUsd, .importance = 3}};
}

std::vector<Cell> run_cells(const RankedPlan& p) {
  if (!p.figures.run) return {};
  return {p.figures.run->time_s, p.figures.run->cost_usd ? Cell(*p.figures.run->cost_usd) : Cell()};
}

template <class T>
void append(std::vector<T>& to, const std::vector<T>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

bool leaves_idle(const TrainCurve& curve) {
  return std::any_of(curve.points.begin(), curve.points.end(),
                     [](const CurvePoint& p) { return p.plan && p.plan->plan.layout.chips() < p.chips; });
}

std::string status_text(const CurvePoint& point) {
  return std::string(kPointStatusNames.at(static_cast<std::size_t>(point.status)));
}

Row curve_row(const TrainCurve& curve, const CurvePoint& point, bool idle) {
  Row row{{cell_of(point.chips)}};
  if (!point.plan) {
    if (idle) row.cells.emplace_back();
    row.cells.emplace_back(status_text(point));
    row.role = Role::kDim;
    return row;
  }
  if (idle) row.cells.push_back(cell_of(point.plan->plan.layout.chips()));
  append(row.cells, plan_cells(curve, *point.plan));
  append(row.cells, {point.speed_up, point.efficiency});
  append(row.cells, run_cells(*point.plan));
  row.cells.emplace_back(point.plan->figures.bound_by);
  if (curve.end && &curve.points[curve.end->last] == &point) row.role = Role::kGood;
  return row;
}

Table curve_table(const TrainCurve& curve) {
  const bool idle = leaves_idle(curve);
  const bool adjusted = std::any_of(curve.points.begin(), curve.points.end(),
                                    [&](const CurvePoint& p) { return p.plan && adjusts_batch(curve, p.plan->plan); });
  Table table;
  table.columns = {{.title = "chips", .key = "chips", .format = Format::kInteger}};
  if (idle) {
    table.columns.push_back({.title = "used", .key = "chips_used", .format = Format::kInteger, .importance = 1});
  }
  append(table.columns, plan_columns(adjusted));
  table.columns.push_back({.title = "speed-up", .key = "speed_up", .format = Format::kNumber, .importance = 1});
  table.columns.push_back({.title = "efficiency", .key = "efficiency", .format = Format::kFraction});
  append(table.columns, run_columns(curve));
  table.columns.push_back({.title = "bound by", .key = "bound_by", .importance = 2});
  for (const CurvePoint& point : curve.points) {
    table.rows.push_back(curve_row(curve, point, idle));
    table.rows.back().cells.resize(table.columns.size());
  }
  return table;
}

Table front_table(const TrainCurve& curve) {
  const bool adjusted = std::any_of(curve.front.begin(), curve.front.end(),
                                    [&](const RankedPlan& p) { return adjusts_batch(curve, p.plan); });
  Table table;
  table.columns = {{.title = "chips", .key = "chips", .format = Format::kInteger}};
  append(table.columns, plan_columns(adjusted));
  table.columns.push_back(
      {.title = "per chip", .key = "tokens_per_s_per_chip", .format = Format::kCount, .importance = 1});
  append(table.columns, run_columns(curve));
  for (const RankedPlan& p : curve.front) {
    Row row{{cell_of(p.plan.layout.chips())}};
    append(row.cells, plan_cells(curve, p));
    row.cells.emplace_back(p.figures.tokens_per_s_per_chip);
    append(row.cells, run_cells(p));
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// One count offers few smaller machines.
std::string ask_for_range(const TrainCurve& curve) {
  const std::int64_t chips = curve.job.question.chips;
  if (!front_alone(curve) || chips == 1) return "";
  return fmt::format(" A range compares more: --chips {}..{}.", std::max<std::int64_t>(1, chips / 16), chips);
}

std::vector<Line> front_lines(const TrainCurve& curve) {
  if (curve.front.empty()) return {};
  if (curve.machine_sizes == 1) {
    return {
        {"Every layout searched uses the same number of chips, so time and cost are one axis: the fastest plan is "
         "the cheapest." +
         ask_for_range(curve)}};
  }
  const std::string sizes = fmt::format("{} machine sizes", curve.machine_sizes);
  if (curve.front.size() == 1) {
    return {{fmt::format("Of the plans on {} the fastest is also the cheapest.{}", sizes, ask_for_range(curve))}};
  }
  return {
      {fmt::format("Of the plans on {}, none is faster than one of these without costing more, or cheaper without "
                   "taking longer. Cost falls as tokens/s per chip rise.",
                   sizes)}};
}

std::string machine_of(const CurvePoint& point) {
  return group_thousands(point.chips) + (point.chips == 1 ? " chip" : " chips");
}

std::string growth_text(const CurveEnd& end) {
  if (end.cause.empty()) return "Everything takes longer alike.";
  const bool idle = end.cause == "idle";
  return fmt::format("Grown most: {}, {} -> {} of the {}.", idle ? "idle chips" : cause_words(end.cause),
                     text_of(end.share_before, Format::kFraction), text_of(end.share_after, Format::kFraction),
                     idle ? "machine" : "machine's time");
}

/// What grew, and what a batch that grows with the machine would be.
std::vector<Line> linear_lines(const TrainCurve& curve) {
  const CurveEnd& end = *curve.end;
  const CurvePoint& last = curve.points[end.last];
  const auto first =
      std::find_if(curve.points.begin(), curve.points.end(), [](const auto& p) { return p.plan.has_value(); });
  std::vector<Line> out{{fmt::format("{} {}: each chip does {} of the work it does at {}; linear is at least {}.",
                                     end.next ? "Up to" : "The whole range, up to", machine_of(last),
                                     text_of(last.efficiency, Format::kFraction), group_thousands(first->chips),
                                     text_of(kLinearShare, Format::kFraction))}};
  const auto best = std::max_element(curve.points.begin(), curve.points.end(),
                                     [](const auto& a, const auto& b) { return a.efficiency < b.efficiency; });
  if (best->efficiency > 1 / kLinearShare) {  // the first count is short of memory, as a rule
    out.push_back({fmt::format("Chips do most at {}, {} of the first: a curve from there bends earlier.",
                               group_thousands(best->chips), text_of(best->efficiency, Format::kFraction))});
  }
  if (!end.next) return out;
  const CurvePoint& next = curve.points[*end.next];
  if (!next.plan) {
    out.push_back({fmt::format("At {} there is no plan: {}.", machine_of(next), status_text(next)), Role::kWarning});
    return out;
  }
  out.push_back({fmt::format("At {} it is {}. {}", machine_of(next), text_of(next.efficiency, Format::kFraction),
                             growth_text(end)),
                 Role::kWarning});
  const Layout& layout = next.plan->plan.layout;
  if (layout.micro_batch_seqs * layout.grad_accum == 1) {
    out.push_back({"Each data rank of that plan has one sequence of a step: the batch divides no further."});
  }
  const double asked = curve.job.workload.batch_seqs * static_cast<double>(curve.job.workload.seq);
  const double each = asked / static_cast<double>(last.chips);
  out.push_back({fmt::format("As many tokens per chip as at {} ({}) would take --batch-tokens {}.", machine_of(last),
                             compact_count(each), compact_count(each * static_cast<double>(next.chips)))});
  return out;
}

/// Why counts have no plan.
void add_reasons(const TrainCurve& curve, Report& report) {
  constexpr std::size_t kMostReasons = 12;
  std::size_t count = 0;
  for (const CurvePoint& p : curve.points) {
    if (p.plan || ++count > kMostReasons) continue;
    report.notes.push_back(fmt::format("{}, {}: {}.", machine_of(p), status_text(p), p.reason));
  }
  if (count > kMostReasons) {
    report.notes.push_back(fmt::format("{} more counts have no plan; --json says why.", count - kMostReasons));
  }
}

Section searched_section(const TrainCurve& curve) {
  double candidates = 0, evaluated = 0, elapsed = 0;
  for (const CurvePoint& point : curve.points) {
    candidates += static_cast<double>(point.search.candidates);
    evaluated += static_cast<double>(point.search.evaluated);
    elapsed += point.search.elapsed_s;
  }
  Section out{.title = "Searched",
              .lines = {{fmt::format("{} legal layouts, {} costed in full", compact_count(candidates),
                                     compact_count(evaluated))},
                        {"searched in " + format_quantity(elapsed, UnitKind::kSeconds)}}};
  if (!front_alone(curve)) {
    out.lines.push_back(
        {"each count as `train --chips N` ranks it: of plans within 1% of its fastest the one that "
         "needs least memory"});
  }
  return out;
}

Table curve_records(const TrainCurve& curve) {
  Table out;
  for (const char* key : {"chips_asked", "reason", "speed_up", "efficiency"}) {
    out.columns.push_back({.title = key, .key = key});
  }
  // Those of a single answer follow, but for its rank, which is always 1.
  const Table none = plan_records(answer_at(curve, 0, {}));
  out.columns.insert(out.columns.end(), none.columns.begin() + 1, none.columns.end());
  for (const CurvePoint& point : curve.points) {
    Row row{{cell_of(point.chips)}};
    if (point.plan) {
      row.cells.insert(row.cells.end(), {Cell(), point.speed_up, point.efficiency});
      const Row plan = plan_records(answer_at(curve, point.chips, {*point.plan})).rows.front();
      row.cells.insert(row.cells.end(), plan.cells.begin() + 1, plan.cells.end());
    } else {
      row.cells.emplace_back(point.reason);
    }
    row.cells.resize(out.columns.size());
    out.rows.push_back(std::move(row));
  }
  return out;
}

}  // namespace

TrainAnswer answer_at(const TrainCurve& curve, std::int64_t chips, std::vector<RankedPlan> plans) {
  TrainAnswer out = curve.job;
  out.question.chips = chips;
  out.plans = std::move(plans);
  return out;
}

Report train_curve_report(const TrainCurve& curve, bool complete) {
  Report report{.title = title(curve)};
  if (curve.job.question.ideal) {
    report.summary.push_back({"Ideal efficiency: the upper bound of the roofline, which no real run reaches."});
  }
  if (!complete) report.warnings.push_back("interrupted: the curve is incomplete, better layouts may be missing");
  if (!any_plan(curve) && complete) report.summary.push_back({"There is no plan at any count asked for.", Role::kBad});
  const Table front = front_table(curve);
  if (front_alone(curve)) {
    if (!curve.front.empty()) report.plans = front;
    for (const Line& line : front_lines(curve)) report.notes.push_back(line.text);
  } else {
    report.plans = curve_table(curve);
    if (leaves_idle(curve)) {
      report.notes.emplace_back("Where fewer chips are used, no plan searched on more of them is as fast.");
    }
    if (curve.end) report.sections.push_back({.title = "Linear scaling", .lines = linear_lines(curve)});
    if (!curve.front.empty()) report.sections.push_back({"Time against cost", front, front_lines(curve)});
  }
  add_reasons(curve, report);
  report.records =
      curve.pareto ? plan_records(answer_at(curve, curve.job.question.chips, curve.front)) : curve_records(curve);
  if (!curve.job.assumptions.empty()) report.sections.push_back(assumed_section(curve.job.assumptions));
  report.sections.push_back(searched_section(curve));
  return report;
}

}  // namespace scalecalc
