#include "calibrate/ridge.h"

#include <cmath>

namespace scalecalc {
namespace {

/// Lower triangle of a symmetric positive definite matrix, factorised in place (Cholesky).
class Factor {
 public:
  explicit Factor(std::size_t n) : n_(n), a_(n * n, 0.0) {}
  double& at(std::size_t i, std::size_t j) { return a_[i * n_ + j]; }

  void factorise() {
    for (std::size_t j = 0; j < n_; ++j) {
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

  /// L x = b
  void forward(std::vector<double>& b) const {
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t m = 0; m < i; ++m) b[i] -= a_[i * n_ + m] * b[m];
      b[i] /= a_[i * n_ + i];
    }
  }
  /// L^T x = b
  void backward(std::vector<double>& b) const {
    for (std::size_t i = n_; i-- > 0;) {
      b[i] /= a_[i * n_ + i];
      for (std::size_t m = 0; m < i; ++m) b[m] -= a_[i * n_ + m] * b[i];
    }
  }

 private:
  std::size_t n_;
  std::vector<double> a_;
};

Factor normal_matrix(const RidgeSystem& system, const std::vector<RidgeRow>& rows, double damping) {
  const std::size_t n = system.stray.size();
  Factor out(n);
  for (std::size_t i = 0; i < n; ++i) out.at(i, i) = 1 / (system.stray[i] * system.stray[i]);
  for (const RidgeRow& row : rows) {
    for (std::size_t k = 0; k < row.slopes.size(); ++k) {
      for (std::size_t l = 0; l <= k; ++l) {
        const double product = row.weight * row.slopes[k] * row.slopes[l];
        if (product == 0) continue;
        for (const std::size_t a : row.labels) {
          for (const std::size_t b : row.labels) {
            const std::size_t i = k * system.labels + a;
            const std::size_t j = l * system.labels + b;
            if (j <= i) out.at(i, j) += product;
          }
        }
      }
    }
  }
  for (std::size_t i = 0; i < n; ++i) out.at(i, i) *= 1 + damping;
  out.factorise();
  return out;
}

}  // namespace

std::vector<double> RidgeSystem::step(const std::vector<RidgeRow>& rows, const std::vector<double>& parameters,
                                      double damping) const {
  const Factor factor = normal_matrix(*this, rows, damping);
  std::vector<double> out(stray.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = -parameters[i] / (stray[i] * stray[i]);
  for (const RidgeRow& row : rows) {
    for (std::size_t k = 0; k < row.slopes.size(); ++k) {
      for (const std::size_t label : row.labels) out[k * labels + label] -= row.weight * row.slopes[k] * row.residual;
    }
  }
  factor.forward(out);
  factor.backward(out);
  return out;
}

std::vector<double> RidgeSystem::spread(const std::vector<RidgeRow>& rows, const std::vector<std::size_t>& at) const {
  const Factor factor = normal_matrix(*this, rows, 0);
  std::vector<double> out;
  for (std::size_t k = 0; k < stray.size() / labels; ++k) {
    std::vector<double> x(stray.size(), 0.0);
    for (const std::size_t label : at) x[k * labels + label] = 1;
    factor.forward(x);
    double square = 0;
    for (const double value : x) square += value * value;
    out.push_back(std::sqrt(square));
  }
  return out;
}

}  // namespace scalecalc
