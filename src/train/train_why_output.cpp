// Shows the verdict of --why-not and --from: for people the sentence first, then the layouts, the step and the memory
// side by side.
#include "train/train_why_output.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "base/units.h"
#include "plan/dimensions.h"
#include "train/train_plan_output.h"
#include "train/train_words.h"

namespace scalecalc {
namespace {

/// How two plans are shown: the reader of --why-not starts from plan 1, the reader of --from at the reference.
struct Sides {
  std::string name;   ///< of the other plan, in titles
  std::string title;  ///< of its column
  bool other_first = false;

  /// A row: its name, then both sides in the order they are shown.
  Record row(const char* what, std::string_view line, Format format, Cell best, Cell other) const {
    Figure left = figure("plan_1", "plan 1", format, std::move(best));
    Figure right = figure("other", title, format, std::move(other));
    left.rigid = right.rigid = true;
    if (other_first) std::swap(left, right);
    return {{text_figure("line", what, line), std::move(left), std::move(right)}};
  }
};

/// Figures that differ, side by side with their change from the first to the second column, and their sum.
Block figures_block(const Sides& sides, std::string title, const std::vector<ComparedFigure>& figures,
                    const ComparedFigure& sum, const char* what, Format format) {
  Block out = lines_block(title, {});
  const auto add = [&](const ComparedFigure& f, Role role) {
    const double change = sides.other_first ? -f.change() : f.change();
    Record row = sides.row(what, cause_words(f.name), format, f.best, f.other);
    row.figures.push_back(
        figure("change", "change", format, (change < 0 ? "-" : "+") + text_of(std::abs(change), format)));
    row.role = role;
    out.records.push_back(std::move(row));
  };
  constexpr double kSeen = 1e-4;  // of the sum: what the printed digits show
  for (const ComparedFigure& f : figures) {
    if (std::abs(f.change()) >= kSeen * sum.best) add(f, Role::kPlain);
  }
  // A brief answer has those that change most, which stand first, and the sum.
  constexpr std::size_t kBriefRows = 5;
  out.brief_rows = kBriefRows;
  for (std::size_t i = kBriefRows - 1; i < out.records.size(); ++i) out.records[i].brief = false;
  add(sum, Role::kHeading);
  return out;
}

Block step_comparison(const TrainAnswer& a, const LayoutVerdict& v, const Sides& sides) {
  const PlanComparison& against = *v.against_best;
  const Plan& best = a.plans.front().plan;
  Block out =
      figures_block(sides, fmt::format("Step: {} against plan 1, causes that differ", sides.name), against.time_s,
                    {"step", best.step_s, v.plan->plan.step_s * against.scale}, "cause", Format::kSeconds);
  if (against.scale != 1) {
    say(out.lines, Role::kDim, "times of {} are scaled to the {} tokens a step of plan 1; it runs {}", sides.title,
        compact_count(step_tokens(a, best)), compact_count(step_tokens(a, v.plan->plan)));
  }
  out.brief_lines = out.lines;
  return out;
}

Block memory_comparison(const TrainAnswer& a, const LayoutVerdict& v, const Sides& sides) {
  return figures_block(sides, fmt::format("Memory of a chip: {} against plan 1, parts that differ", sides.name),
                       v.against_best->memory_bytes,
                       {"total", sum_of(a.plans.front().figures.memory_bytes), sum_of(v.plan->figures.memory_bytes)},
                       "part", Format::kBytes);
}

/// What a file recorded, for one line of the table of layouts.
std::string recorded_dimension(const ReferenceVerdict& from, const std::string& name) {
  if (name == "machine") return group_thousands(from.recorded->chips) + " chips";
  const LayoutDimension* d = find_dimension(name);
  const auto pinned = d == nullptr ? std::nullopt : d->pin(from.pins);
  return pinned ? value_text(*d, *pinned) : "";
}

/// Both layouts, and of a file what it recorded.
Block layout_comparison(const TrainAnswer& a, const LayoutVerdict& v, const Sides& sides,
                        const ReferenceVerdict* from) {
  const bool recorded = from != nullptr && from->recorded;
  Block out = lines_block(fmt::format("Layout: {} against plan 1, dimensions that differ", sides.name), {});
  if (from == nullptr) out.shown = Shown::kFull;  // the verdict names the layout
  const auto add = [&](const std::string& name, std::string best, std::string other, std::string before) {
    Record row = sides.row("dimension", name, Format::kText, std::move(best), std::move(other));
    if (recorded) {
      Figure f = with_importance(text_figure("recorded", "recorded", before), 1);
      f.rigid = true;
      row.figures.insert(row.figures.begin() + 1, std::move(f));
    }
    out.records.push_back(std::move(row));
  };
  for (const ComparedDimension& d : v.against_best->dimensions) {
    add(d.name, d.best, d.other, recorded ? recorded_dimension(*from, d.name) : "");
  }
  const RankedPlan& best = a.plans.front();
  const RankedPlan& other = *v.plan;
  const RecordedPlan before = recorded ? *from->recorded : RecordedPlan{};
  const auto sized = [&](const char* name, Format format, double left, double right, double recorded_value) {
    add(name, text_of(left, format), text_of(right, format), text_of(recorded_value, format));
  };
  if (best.plan.batch_seqs != other.plan.batch_seqs || recorded) {
    sized("tokens a step", Format::kCount, step_tokens(a, best.plan), step_tokens(a, other.plan), before.batch_tokens);
  }
  if (v.outcome == LayoutOutcome::kOutOfMemory) return out;
  sized("step", Format::kSeconds, best.plan.step_s, other.plan.step_s, before.step_s);
  sized("MFU", Format::kFraction, best.figures.mfu, other.figures.mfu, before.mfu);
  sized("memory a chip", Format::kBytes, sum_of(best.figures.memory_bytes), sum_of(other.figures.memory_bytes),
        before.memory_bytes);
  add("bound by", best.figures.bound_by, other.figures.bound_by, before.bound_by);
  return out;
}

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
std::vector<Line> verdict_lines(const TrainAnswer& a, const LayoutVerdict& v) {
  std::vector<Line> out{{verdict_text(a, v), role_of(v.outcome)}};
  for (std::size_t i = 1; i < v.obstacles.size(); ++i) out.push_back({"also: " + v.obstacles[i], Role::kBad});
  if (v.plan && v.outcome != LayoutOutcome::kBest) {
    const Layout& layout = v.plan->plan.layout;
    const char* which = v.outcome == LayoutOutcome::kOutOfMemory ? "least memory" : "the best of them";
    say(out, "{}: {}", which, layout_words(layout));
    out.push_back(next_line({.flags = {fix_flag(layout)}}));
  }
  for (const std::string& remedy : v.remedies) out.push_back({remedy, Role::kGood});
  return out;
}

void add_comparison(const TrainAnswer& a, const LayoutVerdict& v, const Sides& sides, const ReferenceVerdict* from,
                    std::vector<Block>& out) {
  if (!v.against_best || v.outcome == LayoutOutcome::kBest) return;
  out.push_back(layout_comparison(a, v, sides, from));
  if (v.outcome != LayoutOutcome::kOutOfMemory) out.push_back(step_comparison(a, v, sides));
  if (!v.against_best->memory_bytes.empty()) out.push_back(memory_comparison(a, v, sides));
}

std::vector<Line> reference_lines(const ReferenceVerdict& from) {
  std::vector<Line> out;
  if (from.recorded) {
    const RecordedPlan& r = *from.recorded;
    say(out, "recorded for {} on {} x {}, sequences of {}: step {}, MFU {}, {} a chip", r.model,
        group_thousands(r.chips), r.hardware, group_thousands(r.seq), text_of(r.step_s, Format::kSeconds),
        text_of(r.mfu, Format::kFraction), text_of(r.memory_bytes, Format::kBytes));
  }
  out.push_back({from.adapted.empty()
                     ? "taken as it stands"
                     : "changed to run this question's batch on its chips: " + join(from.adapted, ", ")});
  if (!from.chosen.empty()) {
    out.push_back({"left open by the reference, so the best was taken: " + join(from.chosen, ", ")});
  }
  return out;
}

Figure compared_figure(std::string_view key, const std::vector<ComparedFigure>& figures, const char* what,
                       const std::string& unit, Format format) {
  std::vector<Record> out;
  for (const ComparedFigure& f : figures) {
    out.push_back({{text_figure(what, "", f.name), number_figure("plan_1_" + unit, "", format, f.best),
                    number_figure("other_" + unit, "", format, f.other),
                    number_figure("change_" + unit, "", format, f.change())}});
  }
  return records_figure(key, "", "", std::move(out));
}

Record comparison_record(const PlanComparison& c) {
  std::vector<Record> dimensions;
  for (const ComparedDimension& d : c.dimensions) {
    dimensions.push_back({{datum("dimension", d.name), datum("plan_1", d.best), datum("other", d.other)}});
  }
  return {{datum("slower_per_token", c.slower), datum("time_scale", c.scale),
           records_figure("dimensions", "", "", std::move(dimensions)),
           compared_figure("time_s", c.time_s, "cause", "s", Format::kSeconds),
           compared_figure("memory_bytes", c.memory_bytes, "part", "bytes", Format::kBytes)}};
}

Record verdict_record(const TrainAnswer& answer, const LayoutVerdict& v) {
  const bool fits = v.plan && v.outcome != LayoutOutcome::kOutOfMemory;
  const auto when = [](bool holds, auto record) { return holds ? std::optional<Record>(record()) : std::nullopt; };
  return {{object_figure("pins", filter_record(v.pins)), word_of("outcome", kLayoutOutcomeNames, v.outcome),
           datum("verdict", verdict_text(answer, v)), texts_figure("obstacles", v.obstacles),
           texts_figure("remedies", v.remedies),
           figure("rank", "", Format::kInteger, v.rank ? cell_of(*v.rank) : Cell{}),
           object_figure("plan", when(fits, [&] { return fitting_record(answer, *v.plan); })),
           object_figure("least_memory", when(v.plan && !fits, [&] { return miss_record(answer, *v.plan); })),
           object_figure("against_plan_1",
                         when(v.against_best.has_value(), [&] { return comparison_record(*v.against_best); }))}};
}

Record recorded_record(const RecordedPlan& r) {
  return {{datum("model", r.model), datum("hardware", r.hardware), count_figure("chips", r.chips),
           count_figure("seq", r.seq), count_figure("batch_tokens", r.batch_tokens), datum("step_time_s", r.step_s),
           datum("mfu", r.mfu), count_figure("memory_bytes", r.memory_bytes), datum("bound_by", r.bound_by)}};
}

}  // namespace

std::vector<Block> why_blocks(const TrainAnswer& answer) {
  std::vector<Block> out;
  for (const LayoutVerdict& v : answer.why_not) {
    const std::string name = pins_text(v.pins);
    out.push_back(lines_block("Why not " + name, verdict_lines(answer, v)));
    add_comparison(answer, v, {name, "this layout", false}, nullptr, out);
  }
  if (!answer.from) return out;
  const ReferenceVerdict& from = *answer.from;
  std::vector<Line> lines = reference_lines(from);
  for (Line& line : verdict_lines(answer, from.verdict)) lines.push_back(std::move(line));
  out.push_back(lines_block("From " + from.name, std::move(lines)));
  add_comparison(answer, from.verdict, {"the reference", "the reference", true}, &from, out);
  return out;
}

Figure why_not_figure(const TrainAnswer& answer) {
  std::vector<Record> out;
  for (const LayoutVerdict& v : answer.why_not) out.push_back(verdict_record(answer, v));
  return records_figure("why_not", "", "", std::move(out));
}

Record from_record(const TrainAnswer& answer) {
  const ReferenceVerdict& from = *answer.from;
  Record out{{datum("name", from.name), object_figure("reference", filter_record(from.pins)),
              object_figure("recorded", from.recorded, recorded_record), texts_figure("adapted", from.adapted),
              texts_figure("chosen", from.chosen)}};
  for (Figure& f : verdict_record(answer, from.verdict).figures) out.figures.push_back(std::move(f));
  return out;
}

}  // namespace scalecalc
