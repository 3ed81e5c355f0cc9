// Factorises small symmetric positive definite matrices and solves with them, for the fits of coefficients.
#include "calibrate/cholesky.h"

#include <cmath>

namespace scalecalc {

void Cholesky::factorise(const Stop& stop) {
  for (std::size_t j = 0; j < n_; ++j) {
    if (should_stop(stop)) throw Stopped();
    double* row = &a_[j * n_];
    for (std::size_t k = 0; k < j; ++k) {
      const double* other = &a_[k * n_];
      double sum = row[k];
      for (std::size_t m = 0; m < k; ++m) sum -= row[m] * other[m];
      row[k] = sum / other[k];
    }
    double sum = row[j];
    for (std::size_t m = 0; m < j; ++m) sum -= row[m] * row[m];
    row[j] = std::sqrt(sum);
  }
}

void Cholesky::forward(std::vector<double>& b) const {
  for (std::size_t i = 0; i < n_; ++i) {
    for (std::size_t m = 0; m < i; ++m) b[i] -= a_[i * n_ + m] * b[m];
    b[i] /= a_[i * n_ + i];
  }
}

void Cholesky::backward(std::vector<double>& b) const {
  for (std::size_t i = n_; i-- > 0;) {
    b[i] /= a_[i * n_ + i];
    for (std::size_t m = 0; m < i; ++m) b[m] -= a_[i * n_ + m] * b[i];
  }
}

}  // namespace scalecalc
