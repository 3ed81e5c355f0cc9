// Plans again with ten percent more or less of one rate, to show what a new layout would gain.
#include "sensitivity/reoptimise.h"

#include <algorithm>
#include <cmath>

#include "base/progress.h"
#include "plan/ranking.h"
#include "sensitivity/elasticity.h"
#include "train/compare_layouts.h"

namespace scalecalc {
namespace {

/// What is ranked by, per token.
double goal_of(const PlanRequest& request, const Plan& plan, double step_s) {
  const double tokens = plan.batch_seqs * static_cast<double>(request.workload.seq);
  return Ranker(request.objective).goal(static_cast<double>(plan.slice.chips), step_s, tokens);
}

class Reoptimiser {
 public:
  Reoptimiser(const ResolvedQuestion& resolved, const PlanRequest& request, const Planner& planner, const Plan& plan,
              const std::function<bool()>& stop)
      : resolved_(resolved), request_(request), planner_(planner), plan_(plan), stop_(stop) {}

  Reoptimised run(bool free) {
    Reoptimised out{.base = plan_};
    free_ = free && !stopped();
    std::vector<HardwareRate> rates = hardware_rates(resolved_);
    Progress moved("rates moved", rates.size());
    for (HardwareRate& rate : rates) {
      out.rates.push_back(change(out.base, std::move(rate)));
      moved.add();
    }
    out.complete = !stopped();
    std::stable_sort(out.rates.begin(), out.rates.end(),
                     [](const RateChange& a, const RateChange& b) { return best_gain(a) > best_gain(b); });
    return out;
  }

 private:
  static double best_gain(const RateChange& change) { return change.free ? change.free->gain : change.gain; }
  bool stopped() const { return stop_ && stop_(); }

  RateChange change(const Plan& base, HardwareRate rate) const {
    RateChange out{.rate = std::move(rate)};
    const double more = out.rate.factor(1 + kRateMove);
    const double less = out.rate.factor(1 - kRateMove);
    out.more_s = out.less_s = base.step_s;
    if (out.rate.read_as.empty()) {
      HardwareSpec smaller = resolved_.hw;
      out.rate.scale(smaller, less);
      out.less_fits = fits(smaller, base.memory);
    } else {
      out.more_s = step_at(request_, base, out.rate.read_as, more).step_s;
      out.less_s = step_at(request_, base, out.rate.read_as, less).step_s;
      out.gain = base.step_s / out.more_s - 1;
      out.loss = 1 - base.step_s / out.less_s;
    }
    if (free_ && !stopped()) out.free = searched(base, out.rate, more);
    return out;
  }

  /// What is better than `below` where the rate is better. Bounds hold but for what fits in a larger memory.
  std::optional<Plan> strictly_best(const PlanRequest& moved, const HardwareRate& rate, double below) const {
    const Goal goal{.objective = moved.objective, .top = 1, .below = below};
    PlanResult result =
        rate.read_as.empty() ? Planner(moved, stop_).best(goal) : planner_.best_on(*moved.hw, 1 + kRateMove, goal);
    if (result.plans.empty()) return std::nullopt;
    return std::move(result.plans.front());
  }

  /// The best plan as it is bounds the search: only what beats it at the moved rate is looked for.
  std::optional<FreePlan> searched(const Plan& base, const HardwareRate& rate, double factor) const {
    HardwareSpec hw = resolved_.hw;
    rate.scale(hw, factor);
    PlanRequest moved = request_;
    moved.hw = &hw;
    const double kept = goal_of(moved, base, read_plan(Reader<double>{}, moved, base).time.total().value());
    const std::optional<Plan> found = strictly_best(moved, rate, kept);
    if (stopped()) return std::nullopt;
    FreePlan out;
    out.before_s = goal_of(request_, base, base.step_s);
    out.after_s = found ? goal_of(moved, *found, found->step_s) : kept;
    out.gain = out.before_s / out.after_s - 1;
    out.elasticity = -std::log1p(out.gain) / std::log1p(kRateMove);
    if (found) out.changes = compare_plans({.plan = base}, {.plan = *found}).dimensions;
    return out;
  }

  const ResolvedQuestion& resolved_;
  const PlanRequest& request_;
  const Planner& planner_;
  const Plan& plan_;
  const std::function<bool()>& stop_;
  bool free_ = false;
};

}  // namespace

Reoptimised reoptimise(const ResolvedQuestion& resolved, const PlanRequest& request, const Planner& planner,
                       const Plan& plan, bool free, const std::function<bool()>& stop) {
  return Reoptimiser(resolved, request, planner, plan, stop).run(free);
}

}  // namespace scalecalc
