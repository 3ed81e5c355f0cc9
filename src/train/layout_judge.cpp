// Decides what excludes or outranks one layout that the user names, for --why-not and --from.
#include "train/layout_judge.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "plan/dimensions.h"
#include "plan/ranking.h"
#include "train/compare_layouts.h"
#include "train/figures.h"
#include "train/legal_values.h"
#include "train/obstacles.h"
#include "train/would_fit.h"

namespace scalecalc {
namespace {

class LayoutJudge {
 public:
  LayoutJudge(const RankingContext& context, const LayoutFilter& pins, OtherPins others)
      : context_(context), request_(context.request), base_(context.request), alone_(others == OtherPins::kNone) {
    out_.pins = pins;
    if (alone_) base_.fix = base_.max = {};
    base_.top = 1;
    request_ = base_;
    for (const LayoutDimension& d : pin_dimensions()) {
      if (const auto pinned = d.pin(pins)) d.set_pin(request_.fix, pinned);
    }
    // Who pins the data ranks asks about the whole machine, as in the question itself, unless all degrees together make
    // a smaller one that is ranked.
    if (request_.fix.dp || request_.fix.fsdp) {
      const std::int64_t whole = base_.slices.front().chips;
      const std::int64_t chips = std::min(whole, pinned_chips(request_.fix).value_or(whole));
      const bool built =
          std::any_of(request_.slices.begin(), request_.slices.end(), [&](const Slice& s) { return s.chips == chips; });
      std::erase_if(request_.slices, [&](const Slice& s) { return s.chips != (built ? chips : whole); });
    }
  }

  LayoutVerdict run() {
    Planner planner(request_, context_.stop);
    PlanResult found = planner.best({.objective = request_.objective, .top = 1});
    if (!found.plans.empty()) {
      fits(std::move(found.plans.front()));
    } else if (found.nearest_miss) {
      out_.outcome = LayoutOutcome::kOutOfMemory;
      take(std::move(*found.nearest_miss));
      out_.remedies = looser_pins_that_fit(request_, context_.stop);
      for (const FlagChange& way : what_would_fit(context_.question, request_, context_.stop)) {
        out_.remedies.push_back(fmt::format("with {} it fits", way.text()));
      }
    } else {
      out_.outcome = LayoutOutcome::kIllegal;
      illegal(found.stats);
    }
    return std::move(out_);
  }

 private:
  void take(Plan plan) {
    PlanFigures numbers = figures(context_.resolved, request_, plan);
    out_.plan = RankedPlan{std::move(plan), std::move(numbers)};
    if (!context_.plans.empty()) out_.against_best = compare_plans(context_.plans.front(), *out_.plan);
  }

  Rank rank_of(const Plan& p) const { return Ranker(request_.objective)(p, tokens_of(p)); }
  double tokens_of(const Plan& p) const { return p.batch_seqs * static_cast<double>(request_.workload.seq); }

  void fits(Plan found) {
    take(std::move(found));
    const Plan& plan = out_.plan->plan;
    for (std::size_t i = 0; i < context_.plans.size() && !out_.rank; ++i) {
      const Plan& shown = context_.plans[i].plan;
      if (shown.layout == plan.layout && shown.slice.name() == plan.slice.name()) out_.rank = i + 1;
    }
    if (context_.plans.empty() || rank_of(plan) < rank_of(context_.plans.front().plan)) {
      out_.outcome = LayoutOutcome::kBetter;
    } else if (out_.rank == 1) {
      out_.outcome = LayoutOutcome::kBest;
    } else {
      out_.outcome = is_near(request_.objective, context_.plans.front().plan, plan) ? LayoutOutcome::kTied
                                                                                    : LayoutOutcome::kOutranked;
    }
  }

  void illegal(const SearchStats& stats) {
    out_.obstacles = obstacles(request_);
    if (out_.obstacles.empty()) counted(stats);
    for (const LayoutDimension& d : pin_dimensions()) {
      const auto pinned = d.pin(out_.pins);
      if (!pinned) continue;
      std::set<std::int64_t> legal = legal_values(request_, d);
      if (legal.empty() && !legal_alone(d, *pinned, legal)) continue;
      if (legal.contains(*pinned)) continue;  // another pin is in the way: how many layers remat treats
      if (!legal.empty()) out_.remedies.push_back(nearest_legal(d, *pinned, legal));
    }
  }

  /// Where two pins are illegal, letting one go finds nothing: this one then, beside the question's pins only. False
  /// if it is not this pin that is in the way.
  bool legal_alone(const LayoutDimension& d, std::int64_t pinned, std::set<std::int64_t>& legal) const {
    legal = legal_values(base_, d);
    return !legal.contains(pinned);
  }

  /// No single pin explains it: the rules that cut this part of the space.
  void counted(const SearchStats& stats) {
    for (std::size_t i = 0; i < kRejectCount; ++i) {
      const auto reason = static_cast<Reject>(i);
      if (stats.rejected[i] == 0 || reason == Reject::kPinned || reason == Reject::kMemory) continue;
      if (reason == Reject::kStack) {
        for (std::string& fact : stack_obstacles(stats)) out_.obstacles.push_back(std::move(fact));
      } else {
        out_.obstacles.emplace_back(describe(reason));
      }
    }
    if (out_.obstacles.empty()) out_.obstacles.emplace_back("the pins exclude each other");
  }

  static std::string nearest_legal(const LayoutDimension& d, std::int64_t pinned, const std::set<std::int64_t>& legal) {
    std::vector<std::string> around;
    if (d.kind == DimensionKind::kWord) {
      for (const std::int64_t value : legal) around.push_back(value_text(d, value));
      return fmt::format("{}: legal here are {}", d.name, join_and(around));
    }
    const auto above = legal.upper_bound(pinned);
    if (above != legal.begin()) around.push_back(group_thousands(*std::prev(above)));
    if (above != legal.end()) around.push_back(group_thousands(*above));
    return fmt::format("{}: the nearest legal {} {}", d.name, around.size() == 1 ? "is" : "are", join_and(around));
  }

  const RankingContext& context_;
  PlanRequest request_;  ///< with the pins
  PlanRequest base_;     ///< without
  bool alone_;
  LayoutVerdict out_;
};

}  // namespace

LayoutVerdict judge(const RankingContext& context, const LayoutFilter& pins, OtherPins others) {
  return LayoutJudge(context, pins, others).run();
}

}  // namespace scalecalc
