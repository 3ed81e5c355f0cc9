// A symmetric positive definite matrix and systems of equations with it.
#pragma once

#include <cstddef>
#include <vector>

#include "base/stop.h"

namespace scalecalc {

/// Its lower triangle, factorised in place.
class Cholesky {
 public:
  explicit Cholesky(std::size_t n) : n_(n), a_(n * n, 0.0) {}
  double& at(std::size_t i, std::size_t j) { return a_[i * n_ + j]; }

  /// Once, when all is set. Stopped if asked to end before.
  void factorise(const Stop& stop = {});
  /// L x = b
  void forward(std::vector<double>& b) const;
  /// L^T x = b
  void backward(std::vector<double>& b) const;

 private:
  std::size_t n_;
  std::vector<double> a_;
};

}  // namespace scalecalc
