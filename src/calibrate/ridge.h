// Least squares with a prior, for models whose parameters multiply one another.
#pragma once

#include <functional>
#include <vector>

namespace scalecalc {

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

  std::vector<double> step(const std::vector<RidgeRow>& rows, const std::vector<double>& parameters,
                           double damping = 0) const;
  /// Standard deviation of each coefficient's logarithm at a row's labels, given the rows.
  std::vector<double> spread(const std::vector<RidgeRow>& rows, const std::vector<std::size_t>& at) const;
};

}  // namespace scalecalc
