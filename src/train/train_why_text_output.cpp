// Words the outcome of a comparison of two layouts.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "plan/dimensions.h"
#include "plan/ranking.h"
#include "train/train_why_output.h"
#include "train/train_words.h"

namespace scalecalc {
namespace {

std::string size_percent(double fraction) { return fraction_text(std::abs(fraction)); }
/// The largest of the figures that grew; nullptr if none did.
const ComparedFigure* main_loss(const std::vector<ComparedFigure>& figures) {
  const auto found = std::find_if(figures.begin(), figures.end(), [](const auto& f) { return f.change() > 0; });
  return found == figures.end() ? nullptr : &*found;
}

/// ", mainly pipeline bubble (+120 ms; all causes together +150 ms a step)", with a second cause that is nearly as
/// large.
std::string main_cause(const PlanComparison& against) {
  constexpr double kNearly = 0.5;
  double total = 0;
  for (const ComparedFigure& f : against.time_s) total += f.change();
  const ComparedFigure* first = main_loss(against.time_s);
  if (first == nullptr || total <= 0) return "";
  const auto named = [](const ComparedFigure& f) {
    return fmt::format("{} (+{})", cause_words(f.name), seconds_text(f.change()));
  };
  std::string out = ", mainly " + named(*first);
  for (const ComparedFigure& f : against.time_s) {
    if (&f == first || f.change() < kNearly * first->change()) continue;
    out += " and " + named(f);
    break;
  }
  return out + fmt::format("; all causes together +{} a step", seconds_text(total));
}

std::string main_part(const PlanComparison& against) {
  const ComparedFigure* loss = main_loss(against.memory_bytes);
  return loss == nullptr ? "" : fmt::format(", mainly {} (+{})", loss->name, bytes_text(loss->change()));
}

double memory_change(const PlanComparison& against) {
  double out = 0;
  for (const ComparedFigure& f : against.memory_bytes) out += f.change();
  return out;
}

std::string speed(const PlanComparison& against) {
  if (against.slower == 0) return "as fast as plan 1";
  return fmt::format("{} {} per token than plan 1", size_percent(against.slower),
                     against.slower < 0 ? "faster" : "slower");
}

/// What the objective counts, and by how much plan 1 has less of it.
std::string outranked(const TrainAnswer& a, const LayoutVerdict& v) {
  const PlanComparison& against = *v.against_best;
  const double chips = static_cast<double>(v.plan->plan.slice.chips);
  const double best_chips = static_cast<double>(a.plans.front().plan.slice.chips);
  switch (a.question.objective) {
    case Objective::kTime: return speed(against) + main_cause(against);
    case Objective::kCost:
      return fmt::format("costs {} more per token than plan 1: {} chips against {}, {}",
                         size_percent(chips / best_chips * (1 + against.slower) - 1),
                         group_thousands(v.plan->plan.slice.chips), group_thousands(a.plans.front().plan.slice.chips),
                         speed(against)) +
             main_cause(against);
    case Objective::kMemory:
      if (memory_change(against) == 0) return "needs the memory of plan 1 and is " + speed(against);
      return fmt::format("needs {} a chip more than plan 1", bytes_text(memory_change(against))) + main_part(against);
    case Objective::kChips:
      if (chips == best_chips) return "takes the chips of plan 1 and is " + speed(against) + main_cause(against);
      return fmt::format("takes {} chips, plan 1 takes {}", group_thousands(v.plan->plan.slice.chips),
                         group_thousands(a.plans.front().plan.slice.chips));
  }
  return "";
}

std::string tied(const LayoutVerdict& v) {
  const PlanComparison& against = *v.against_best;
  return fmt::format("{}, less than any coefficient is known to", speed(against)) + main_cause(against);
}

std::string place(const LayoutVerdict& v) {
  return v.rank ? fmt::format("; it is plan {} above", *v.rank) : "; not among the plans shown";
}

std::string out_of_memory(const TrainAnswer& a, const LayoutVerdict& v) {
  const double total = sum_of(v.plan->figures.memory_bytes);
  const double capacity = a.hw.hbm_capacity.value();
  std::string out = fmt::format("out of memory: it needs at least {} of the {} on each chip, {} too many",
                                bytes_text(total), bytes_text(capacity), bytes_text(total - capacity));
  const ComparedFigure* loss = v.against_best ? main_loss(v.against_best->memory_bytes) : nullptr;
  if (loss != nullptr) {
    out += fmt::format("; against plan 1 mainly {} ({}, there {})", loss->name, bytes_text(loss->other),
                       bytes_text(loss->best));
  }
  return out;
}

std::string better(const TrainAnswer& a, const LayoutVerdict& v) {
  if (a.plans.empty()) return "where the question's own flags leave nothing that fits";
  return speed(*v.against_best) + "; it would rank before plan 1, and --fix or --max leaves it out";
}

}  // namespace

std::string verdict_text(const TrainAnswer& answer, const LayoutVerdict& verdict) {
  const auto fits = [&] { return fmt::format("fits, step {}, ", seconds_text(verdict.plan->plan.step_s)); };
  switch (verdict.outcome) {
    case LayoutOutcome::kIllegal: return "no layout is legal: " + verdict.obstacles.front();
    case LayoutOutcome::kOutOfMemory: return out_of_memory(answer, verdict);
    case LayoutOutcome::kOutranked: return fits() + outranked(answer, verdict) + place(verdict);
    case LayoutOutcome::kTied: return fits() + tied(verdict) + place(verdict);
    case LayoutOutcome::kBest: return "it is plan 1";
    case LayoutOutcome::kBetter: return fits() + better(answer, verdict);
  }
  return "";
}

}  // namespace scalecalc
