// Robust regression of efficiency coefficients on measured steps. Coefficients move by factors, so that runs of several
// chips, each with coefficients of its own, can be fitted together.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "calibrate/calibration.h"
#include "validate/evaluate.h"

namespace scalecalc {

/// A run with its layout, ready to be costed again and again. Made once, never moved: the plan points into `question`.
struct FitRow {
  Measurement row;
  RowQuestion question;
  Efficiency base;  ///< the coefficients its chip starts from
  Plan plan;
  double measured = 0;  ///< seconds
  double stretch = 1;   ///< the batch of the row over the plan's
  double weight = 1;

  double step(const Efficiency& efficiency) const;
};
using FitRows = std::vector<const FitRow*>;

/// The row's layout under its coefficients. NotPredicted as `evaluate`.
std::unique_ptr<FitRow> fit_row(const Measurement& row, const Catalog& catalog);

/// Factors are in the order of `slots`.
class CoefficientFit {
 public:
  /// The coefficients that any of `rows` depends on, by more than a part in a thousand within their error. `reference`
  /// gives the errors that distances are counted in. UserError if there are fewer than two.
  CoefficientFit(const FitRows& rows, const Efficiency& reference);

  const std::vector<const CoefficientSlot*>& slots() const { return slots_; }
  Factors none() const { return Factors(slots_.size(), 0.0); }
  /// `base` with every coefficient multiplied, kept within its range.
  Efficiency at(const Efficiency& base, const Factors& factors) const;
  /// Predicted over measured, minus 1.
  double error(const FitRow& row, const Factors& factors) const;

  /// The factors that make the weighted Huber loss of ln(predicted / measured), plus half of each coefficient's squared
  /// distance from `centre` in units of its error, least.
  Factors fit(const FitRows& rows, const Factors& centre) const;

 private:
  std::vector<const CoefficientSlot*> slots_;
  Efficiency reference_;
};

}  // namespace scalecalc
