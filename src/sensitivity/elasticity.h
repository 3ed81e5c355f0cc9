// How a plan's step answers to its inputs: exact elasticities from the dual-number reading, and the step at other
// values of one input. The plan stays as it is; sensitivity/reoptimise lets it move.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sensitivity/inputs.h"

namespace scalecalc {

/// The step with a common factor k on some inputs.
struct StepAt {
  double step_s = 0;
  double slope_s = 0;     ///< dT/dk
  double elasticity = 0;  ///< [ELASTICITY] d ln T / d ln k
  bool fits = true;       ///< in memory
};
StepAt step_at(const PlanRequest& request, const Plan& plan, const std::vector<std::string>& read_as,
               double factor = 1);

/// The step with one input at another value.
struct SwungStep {
  double value = 0;
  double step_s = 0;
  double change = 0;  ///< of the step's time, as a share
  bool fits = true;
};

struct InputElasticity {
  SensitiveInput input;
  double step_s = 0;        ///< the plan's step
  double slope = 0;         ///< dT/dx
  double step_time = 0;     ///< d ln T / d ln x
  double tokens_per_s = 0;  ///< of tokens a second; of dollars a token it is the negative
  SwungStep low, high;      ///< at the swing below and above its value, where the input's range ends earlier there
  double widest() const;    ///< the larger of the two changes
};

/// The widest swing first. `swing` is a share of the value, below 1.
std::vector<InputElasticity> elasticities(const PlanRequest& request, const Plan& plan, double swing,
                                          bool coefficients);

/// [SUM-RULE] A step is a sum of work / rate and of times, so all rates times k and all times over k make it 1/k of
/// itself: the elasticities of rates less those of times sum to -1 (Euler's theorem on homogeneous functions).
struct SumRule {
  double rates = 0, times = 0;
  double sum() const { return rates - times; }
};
SumRule sum_rule(const std::vector<InputElasticity>& all);

}  // namespace scalecalc
