// Computes the covariance that measurements leave on the parameters of a regression with a prior.
#include "calibrate/posterior.h"

#include <numeric>
#include <utility>

namespace scalecalc {

Posterior::Posterior(std::size_t parameters, std::vector<InformingRow> rows)
    : size_(parameters), rows_(std::move(rows)), factor_(parameters) {
  for (std::size_t i = 0; i < size_; ++i) factor_.at(i, i) = 1;
  for (const InformingRow& row : rows_) {
    for (std::size_t i = 0; i < size_; ++i) {
      for (std::size_t j = 0; j <= i; ++j) factor_.at(i, j) += row.weight * row.slopes[i] * row.slopes[j];
    }
  }
  factor_.factorise();
}

Posterior Posterior::with(const InformingRow& row) const {
  std::vector<InformingRow> rows = rows_;
  rows.push_back(row);
  return {size_, std::move(rows)};
}

std::vector<double> Posterior::whitened(Slopes x) const {
  factor_.forward(x);
  return x;
}

double Posterior::covariance(const Slopes& a, const Slopes& b) const {
  const std::vector<double> x = whitened(a);
  const std::vector<double> y = whitened(b);
  return std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
}

double Posterior::variance(const Slopes& prediction) const { return covariance(prediction, prediction); }

double Posterior::variance(std::size_t parameter) const {
  Slopes one(size_, 0.0);
  one[parameter] = 1;
  return variance(one);
}

double Posterior::degrees_of_freedom() const {
  double out = 0;
  for (std::size_t i = 0; i < size_; ++i) out += 1 - variance(i);
  return out;
}

double Posterior::lessened(const Slopes& prediction, const Slopes& run, double noise) const {
  const double shared = covariance(prediction, run);
  return shared * shared / (noise + variance(run));
}

}  // namespace scalecalc
