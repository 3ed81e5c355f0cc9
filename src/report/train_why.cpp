// --why-not and --from as sections: the sentence first, then the layouts, the step and the memory side by side.
#include "report/train_why.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "base/units.h"
#include "plan/dimensions.h"
#include "report/train_report.h"

namespace scalecalc {
namespace {

/// How two plans are shown: the reader of --why-not starts from plan 1, the reader of --from at the reference.
struct Sides {
  std::string name;   ///< of the other plan, in titles
  std::string title;  ///< of its column
  bool other_first = false;
};

std::string signed_text(double change, Format format) {
  return (change < 0 ? "-" : "+") + text_of(std::abs(change), format);
}

/// The cells of both sides, in the order they are shown.
template <class Value>
Row row_of(const Sides& sides, std::string name, Value best, Value other) {
  Row out{.cells = {std::move(name)}};
  out.cells.emplace_back(sides.other_first ? other : best);
  out.cells.emplace_back(sides.other_first ? best : other);
  return out;
}

std::vector<Column> columns_of(const Sides& sides, const char* what, const char* key, Format format) {
  const Column best{.title = "plan 1", .key = fmt::format("plan_1_{}", key), .format = format};
  const Column other{.title = sides.title, .key = fmt::format("other_{}", key), .format = format};
  return {{.title = what, .key = what, .flexible = true},
          sides.other_first ? other : best,
          sides.other_first ? best : other};
}

/// Figures side by side with their change from the first to the second column, and their sum.
Table figures_table(const Sides& sides, const std::vector<ComparedFigure>& figures, const ComparedFigure& sum,
                    const char* what, const char* key, Format format) {
  Table out;
  out.columns = columns_of(sides, what, key, format);
  out.columns.push_back({.title = "change", .key = fmt::format("change_{}", key), .format = format});
  const auto add = [&](const ComparedFigure& f, std::string name, Role role) {
    Row row = row_of(sides, std::move(name), f.best, f.other);
    row.cells.emplace_back(signed_text(sides.other_first ? -f.change() : f.change(), format));
    row.role = role;
    out.rows.push_back(std::move(row));
  };
  constexpr double kSeen = 1e-4;  // of the sum: what the printed digits show
  for (const ComparedFigure& f : figures) {
    if (std::abs(f.change()) >= kSeen * sum.best) add(f, cause_words(f.name), Role::kPlain);
  }
  add(sum, sum.name, Role::kHeading);
  return out;
}

Section time_section(const TrainAnswer& a, const LayoutVerdict& v, const Sides& sides) {
  const PlanComparison& against = *v.against_best;
  const Plan& best = a.plans.front().plan;
  const ComparedFigure step{"step", best.step_s, v.plan->plan.step_s * against.scale};
  Section out{.title = fmt::format("Step: {} against plan 1, causes that differ", sides.name)};
  out.table = figures_table(sides, against.time_s, step, "cause", "time_s", Format::kSeconds);
  if (against.scale != 1) {
    const double seq = static_cast<double>(a.workload.seq);
    out.lines.push_back(
        {fmt::format("times of {} are scaled to the {} tokens a step of plan 1; it runs {}", sides.title,
                     compact_count(best.batch_seqs * seq), compact_count(v.plan->plan.batch_seqs * seq)),
         Role::kDim});
  }
  return out;
}

Section memory_comparison(const TrainAnswer& a, const LayoutVerdict& v, const Sides& sides) {
  const ComparedFigure total{"total", sum_of(a.plans.front().figures.memory_bytes),
                             sum_of(v.plan->figures.memory_bytes)};
  Section out{.title = fmt::format("Memory of a chip: {} against plan 1, parts that differ", sides.name)};
  out.table = figures_table(sides, v.against_best->memory_bytes, total, "part", "bytes", Format::kBytes);
  return out;
}

/// What a file recorded, for one line of the table of layouts.
std::string recorded_dimension(const ReferenceVerdict& from, const std::string& name) {
  if (name == "machine") return group_thousands(from.recorded->chips) + " chips";
  const LayoutDimension* d = find_dimension(name);
  const auto pinned = d == nullptr ? std::nullopt : d->pin(from.pins);
  return pinned ? value_text(*d, *pinned) : "";
}

class LayoutTable {
 public:
  LayoutTable(const TrainAnswer& answer, const LayoutVerdict& verdict, const Sides& sides, const ReferenceVerdict* from)
      : a_(answer), v_(verdict), sides_(sides), from_(from != nullptr && from->recorded ? from : nullptr) {}

  Table table() {
    out_.columns = columns_of(sides_, "dimension", "value", Format::kText);
    if (from_ != nullptr) {
      out_.columns.insert(out_.columns.begin() + 1, {.title = "recorded", .key = "recorded", .importance = 1});
    }
    for (const ComparedDimension& d : v_.against_best->dimensions) {
      add(d.name, d.best, d.other, from_ == nullptr ? "" : recorded_dimension(*from_, d.name));
    }
    const RankedPlan& best = a_.plans.front();
    const RankedPlan& other = *v_.plan;
    const double seq = static_cast<double>(a_.workload.seq);
    if (best.plan.batch_seqs != other.plan.batch_seqs || from_ != nullptr) {
      figure("tokens a step", best.plan.batch_seqs * seq, other.plan.batch_seqs * seq, Format::kCount,
             &RecordedPlan::batch_tokens);
    }
    if (v_.outcome == LayoutOutcome::kOutOfMemory) return std::move(out_);
    figure("step", best.plan.step_s, other.plan.step_s, Format::kSeconds, &RecordedPlan::step_s);
    figure("MFU", best.figures.mfu, other.figures.mfu, Format::kFraction, &RecordedPlan::mfu);
    figure("memory a chip", sum_of(best.figures.memory_bytes), sum_of(other.figures.memory_bytes), Format::kBytes,
           &RecordedPlan::memory_bytes);
    add("bound by", best.figures.bound_by, other.figures.bound_by, from_ == nullptr ? "" : from_->recorded->bound_by);
    return std::move(out_);
  }

 private:
  void add(const std::string& name, const std::string& best, const std::string& other, const std::string& recorded) {
    Row row = row_of(sides_, name, best, other);
    if (from_ != nullptr) row.cells.insert(row.cells.begin() + 1, Cell(recorded));
    out_.rows.push_back(std::move(row));
  }
  void figure(const char* name, double best, double other, Format format, double RecordedPlan::*recorded) {
    add(name, text_of(best, format), text_of(other, format),
        from_ == nullptr ? "" : text_of((*from_->recorded).*recorded, format));
  }

  const TrainAnswer& a_;
  const LayoutVerdict& v_;
  const Sides& sides_;
  const ReferenceVerdict* from_;
  Table out_;
};

Role role_of(LayoutOutcome outcome) {
  switch (outcome) {
    case LayoutOutcome::kIllegal:
    case LayoutOutcome::kOutOfMemory: return Role::kBad;
    case LayoutOutcome::kBest:
    case LayoutOutcome::kBetter: return Role::kGood;
    case LayoutOutcome::kOutranked:
    case LayoutOutcome::kTied: break;
  }
  return Role::kPlain;
}

/// The sentence and what stands behind it.
Section verdict_section(const TrainAnswer& a, const LayoutVerdict& v, std::string title) {
  Section out{.title = std::move(title)};
  out.lines.push_back({verdict_text(a, v), role_of(v.outcome)});
  for (std::size_t i = 1; i < v.obstacles.size(); ++i) out.lines.push_back({"also: " + v.obstacles[i], Role::kBad});
  if (v.plan && v.outcome != LayoutOutcome::kBest) {
    const Layout& layout = v.plan->plan.layout;
    const char* which = v.outcome == LayoutOutcome::kOutOfMemory ? "least memory" : "the best of them";
    out.lines.push_back({fmt::format("{}: {}; {}", which, degrees_text(layout), recipe_text(layout))});
    out.lines.push_back({"this layout alone: " + fix_text(layout), Role::kDim});
  }
  for (const std::string& remedy : v.remedies) out.lines.push_back({remedy, Role::kGood});
  return out;
}

void add_comparison(const TrainAnswer& a, const LayoutVerdict& v, const Sides& sides, const ReferenceVerdict* from,
                    std::vector<Section>& out) {
  if (!v.against_best || v.outcome == LayoutOutcome::kBest) return;
  out.push_back({.title = fmt::format("Layout: {} against plan 1, dimensions that differ", sides.name),
                 .table = LayoutTable(a, v, sides, from).table()});
  if (v.outcome != LayoutOutcome::kOutOfMemory) out.push_back(time_section(a, v, sides));
  if (!v.against_best->memory_bytes.empty()) out.push_back(memory_comparison(a, v, sides));
}

void add_reference(const TrainAnswer& a, const ReferenceVerdict& from, std::vector<Section>& out) {
  Section first = verdict_section(a, from.verdict, "From " + from.name);
  std::vector<Line> before;
  if (from.recorded) {
    const RecordedPlan& r = *from.recorded;
    before.push_back(
        {fmt::format("recorded for {} on {} x {}, sequences of {}: step {}, MFU {}, {} a chip", r.model,
                     group_thousands(r.chips), r.hardware, group_thousands(r.seq), text_of(r.step_s, Format::kSeconds),
                     text_of(r.mfu, Format::kFraction), text_of(r.memory_bytes, Format::kBytes))});
  }
  before.push_back({from.adapted.empty()
                        ? "taken as it stands"
                        : "changed to run this question's batch on its chips: " + join(from.adapted, ", ")});
  if (!from.chosen.empty()) {
    before.push_back({"left open by the reference, so the best was taken: " + join(from.chosen, ", ")});
  }
  first.lines.insert(first.lines.begin(), before.begin(), before.end());
  out.push_back(std::move(first));
  add_comparison(a, from.verdict, {"the reference", "the reference", true}, &from, out);
}

}  // namespace

std::vector<Section> why_sections(const TrainAnswer& answer) {
  std::vector<Section> out;
  for (const LayoutVerdict& v : answer.why_not) {
    const std::string name = pins_text(v.pins);
    out.push_back(verdict_section(answer, v, fmt::format("Why not {}", name)));
    add_comparison(answer, v, {name, "this layout", false}, nullptr, out);
  }
  if (answer.from) add_reference(answer, *answer.from, out);
  return out;
}

}  // namespace scalecalc
