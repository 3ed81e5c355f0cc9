// Serving coefficients of every measured chip and engine, fitted together, and what the fit is worth on sources it has
// not seen.
#pragma once

#include <string>
#include <vector>

#include "calibrate/calibration.h"
#include "validate/serving_validation.h"

namespace scalecalc {

// Least squares with a prior, for models whose parameters multiply one another.

/// A row of the design: output i moves by `slopes[k]` with the logarithm of coefficient k, which is the sum of the
/// parameters k * labels + label over the row's labels.
struct RidgeRow {
  std::vector<std::size_t> labels;
  std::vector<double> slopes;
  double residual = 0;
  double weight = 1;
};

/// The Gauss-Newton step of  sum weight residual^2 / 2 + sum (parameter / stray)^2 / 2.  Positive definite by the
/// prior.
struct RidgeSystem {
  std::size_t labels = 0;
  std::vector<double> stray;  ///< of every parameter

  /// Stopped if asked to end before.
  std::vector<double> step(const std::vector<RidgeRow>& rows, const std::vector<double>& parameters, double damping = 0,
                           const Stop& stop = {}) const;
  /// Standard deviation of each coefficient's logarithm at each of some rows' labels, given the rows.
  /// Stopped likewise.
  std::vector<std::vector<double>> spreads(const std::vector<RidgeRow>& rows,
                                           const std::vector<std::vector<std::size_t>>& at,
                                           const Stop& stop = {}) const;
};

using ServeCalibrateQuestion = CalibrateQuestionOf<Serving>;

/// The coefficients of one engine on one chip.
struct ServeSet : FitErrors {
  std::string hardware, stack;
  std::size_t rows = 0, sources = 0;
  std::vector<WrittenCoefficient> coefficients;
  ConfigNode block;  ///< an `efficiency:` block of a hardware file
};

/// Before: by the families' coefficients. Its baseline: the naive one.
struct ServeCalibration : FitReportOf<Serving> {
  std::vector<ServeSet> sets;  ///< of rows whose engine is known
  bool errors_fitted = true;   ///< false: interrupted, the coefficients' errors are the families'
  std::size_t folds = 0;       ///< held out; fewer than asked for if interrupted
};

/// Each coefficient of a row is its family's value times a factor of all rows, of the engine, of the family, of the
/// chip and of the engine on the chip. Ridge regression: the factors that make the Huber loss of ln(predicted /
/// measured), plus each factor's squared logarithm in units of how far such factors are expected to stray, least;
/// Gauss-Newton steps. What few rows say little about stays near the values of its engine, chip and family. Sources are
/// held out whole; those of a chip that has no other are held out model by model. Errors are scaled alike until the
/// band holds 90 % of the held-out rows. UserError if no row can be used, or none of
/// an engine that is known, on the chip and of the stack to tell of.
ServeCalibration calibrate_serving(const ServeCalibrateQuestion& question, const Catalog& catalog,
                                   const Stop& stop = {});

}  // namespace scalecalc
