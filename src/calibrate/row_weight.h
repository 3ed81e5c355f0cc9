// How much a fit believes a row, one rule for runs of training and of serving.
#pragma once

#include <cmath>
#include <cstddef>

namespace scalecalc {

/// A source of n rows counts as n^(1 - this): chosen among 0, 1/4 and 1/2 by the error on runs held out.
inline constexpr double kSourceDiscount = 0.25;
/// A row whose figures may not be what they seem is taken as measured with twice the error of others.
inline constexpr double kDoubtfulWeight = 0.25;

/// Of a row whose source has `rows` in the fit: one over the variance of its measurement, 1 for the only row of a
/// source.
inline double row_weight(std::size_t rows, bool doubtful) {
  return std::pow(static_cast<double>(rows), -kSourceDiscount) * (doubtful ? kDoubtfulWeight : 1);
}

}  // namespace scalecalc
