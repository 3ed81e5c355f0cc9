// What measurements leave unknown of the parameters of a regression with a prior.
#pragma once

#include <cstddef>
#include <vector>

#include "calibrate/cholesky.h"

namespace scalecalc {

/// Half of a normal distribution's 90 % over its standard deviation.
inline constexpr double kNinety = 1.645;

/// How the logarithm of a prediction moves with each parameter, in units of the parameter's prior error.
using Slopes = std::vector<double>;

struct InformingRow {
  Slopes slopes;
  double weight = 1;  ///< one over the variance of its measurement
};

/// The normal distribution that parameters have near the best fit: the inverse of the loss's Hessian, I + sum of weight
/// slopes slopes^T, which is sigma^2 (J^T J + Lambda)^-1 of a ridge regression. Parameters are in units of their prior
/// errors, so that what no row informs keeps a variance of 1.
class Posterior {
 public:
  Posterior(std::size_t parameters, std::vector<InformingRow> rows);

  /// What is left unknown once this is measured as well.
  Posterior with(const InformingRow& row) const;

  double variance(std::size_t parameter) const;
  /// Of the logarithm of a prediction.
  double variance(const Slopes& prediction) const;
  double covariance(const Slopes& a, const Slopes& b) const;
  /// Parameters' worth of what the rows determine: each counts 1 less its variance.
  double degrees_of_freedom() const;
  /// By how much measuring `run`, with an error of that variance, lessens the variance of `prediction`.
  double lessened(const Slopes& prediction, const Slopes& run, double noise) const;

 private:
  /// L^-1 x: products of these are covariances.
  std::vector<double> whitened(Slopes x) const;

  std::size_t size_;
  std::vector<InformingRow> rows_;
  Cholesky factor_;
};

}  // namespace scalecalc
