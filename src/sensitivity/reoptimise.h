// Ten per cent more, or less, of one rate: what the plan at hand gains, and what the best plan gains when the layout
// may change with it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sensitivity/rates.h"
#include "train/question.h"

namespace scalecalc {

/// The share by which a rate is moved: more is 1.1 times as good, less 0.9 times.
inline constexpr double kRateMove = 0.1;

/// The best plan at a moved rate against the best at the rate as it is.
struct FreePlan {
  double before_s = 0;                     ///< time per token (chips x time, if cost is ranked) at the rate as it is
  double after_s = 0;                      ///< and at the moved rate
  double gain = 0;                         ///< tokens a second (a dollar) more
  double elasticity = 0;                   ///< [ARC] -ln(1 + gain) / ln 1.1, of the step's time per token
  std::vector<ComparedDimension> changes;  ///< of the layout; `best` is the plan at the rate as it is
};

struct RateChange {
  HardwareRate rate;
  double more_s = 0;             ///< the step of `base` with 10 % more of it
  double less_s = 0;             ///< and with 10 % less
  double gain = 0;               ///< tokens a second more with 10 % more of it, `base` as it is
  double loss = 0;               ///< tokens a second less with 10 % less of it, `base` as it is
  bool less_fits = true;         ///< `base` fits with 10 % less; only a capacity can say no
  std::optional<FreePlan> free;  ///< absent: not searched for
};

struct Reoptimised {
  Plan base;                      ///< what moves: the plan that was asked about
  std::vector<RateChange> rates;  ///< the largest gain first
  bool complete = true;           ///< not interrupted
};

/// `free`: search again for each rate; otherwise `plan` stays. `planner` found it as the best of `request`. `stop` as
/// for the planner.
Reoptimised reoptimise(const ResolvedQuestion& resolved, const PlanRequest& request, const Planner& planner,
                       const Plan& plan, bool free, const std::function<bool()>& stop);

}  // namespace scalecalc
