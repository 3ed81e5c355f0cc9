// Robust regression of efficiency coefficients on what was measured, and what it leaves unknown.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "calibrate/calibration.h"
#include "calibrate/observation.h"
#include "calibrate/posterior.h"

namespace scalecalc {

/// Errors beyond this (of the logarithm) count linearly; it is also what one measurement is expected to be off by.
inline constexpr double kStepHuber = 0.1;

/// Which coefficients rows tell something about, and from how many sources.
struct Informed {
  std::vector<std::size_t> sources;  ///< of each coefficient
  std::vector<bool> free;            ///< enough of them
};

/// Coefficients move by factors, so that runs of several chips, each with coefficients of its own, can be fitted
/// together. Factors are in the order of `slots`. Rows outlive it.
class CoefficientFit {
 public:
  /// The coefficients that any of `rows` depends on, by more than a part in a thousand within their error. `reference`
  /// gives the errors that distances are counted in. UserError if there are none.
  CoefficientFit(const Observations& rows, const Efficiency& reference);

  const std::vector<const CoefficientSlot*>& slots() const { return slots_; }
  Factors none() const { return Factors(slots_.size(), 0.0); }
  /// `base` with every coefficient multiplied, kept within its range.
  Efficiency at(const Efficiency& base, const Factors& factors) const;
  /// ln(predicted / measured).
  double residual(const Observation& row, const Factors& factors) const;

  /// A source tells of a coefficient if it alone would take a tenth of the prior's variance. Two sources of steps must,
  /// or the one there is, or one that would take a quarter, or kernels timed by themselves: a coefficient that less
  /// tells of stays where it is.
  Informed informed(const Observations& rows) const;

  /// The factors of free coefficients that make the weighted Huber loss of ln(predicted / measured), plus half of each
  /// coefficient's squared distance from `centre` in units of its error, least. The others are `centre`'s.
  Factors fit(const Observations& rows, const Factors& centre, const Stop& stop) const;

  /// How the logarithm of what is predicted moves with each coefficient, in units of the coefficients' errors.
  Slopes slopes(const Observation& row, const Factors& factors) const;
  /// Of the free coefficients; the others keep their prior. Rows beyond the Huber limit weigh less.
  Posterior posterior(const Observations& rows, const Factors& factors) const;

 private:
  std::vector<const CoefficientSlot*> slots_;
  std::vector<double> unit_;  ///< a prior error of each factor
  Efficiency reference_;
  std::map<const Observation*, Slopes> at_base_;
};

}  // namespace scalecalc
