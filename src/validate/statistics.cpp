// Computes means, medians, quantiles and rank correlations of prediction errors.
#include "validate/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace scalecalc {
namespace {

/// Positions from 1; equal values share the mean of theirs.
std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) { return values[i] < values[j]; });
  std::vector<double> out(values.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    const double shared = static_cast<double>(begin + 1 + end) / 2;
    for (; begin < end; ++begin) out[order[begin]] = shared;
  }
  return out;
}

int sign(double x) { return (x > 0) - (x < 0); }

}  // namespace

double quantile(std::vector<double> values, double q) {
  check(!values.empty(), "a quantile needs values");
  std::sort(values.begin(), values.end());
  const double at = q * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(std::floor(at));
  const std::size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (at - static_cast<double>(low)) * (values[high] - values[low]);
}

double mean_of(const std::vector<double>& values) {
  check(!values.empty(), "a mean needs values");
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::optional<double> mean_if_any(const std::vector<double>& values) {
  return values.empty() ? std::nullopt : std::optional(mean_of(values));
}

std::optional<double> median_if_any(const std::vector<double>& values) {
  return values.empty() ? std::nullopt : std::optional(quantile(values, 0.5));
}

Errors errors_of(const std::vector<double>& errors) {
  if (errors.empty()) return {};
  std::vector<double> sizes(errors.size());
  std::transform(errors.begin(), errors.end(), sizes.begin(), [](double error) { return std::abs(error); });
  return {mean_of(sizes), quantile(sizes, 0.5), quantile(sizes, 0.9), quantile(sizes, 1), mean_of(errors)};
}

std::optional<double> spearman(const std::vector<double>& a, const std::vector<double>& b) {
  check(a.size() == b.size(), "a correlation is of pairs");
  const std::vector<double> x = ranks(a);
  const std::vector<double> y = ranks(b);
  if (x.empty()) return std::nullopt;
  const double mean_x = mean_of(x);
  const double mean_y = mean_of(y);
  double xy = 0;
  double xx = 0;
  double yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean_x) * (y[i] - mean_y);
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    yy += (y[i] - mean_y) * (y[i] - mean_y);
  }
  if (xx == 0 || yy == 0) return std::nullopt;
  return xy / std::sqrt(xx * yy);
}

std::optional<double> kendall(const std::vector<double>& a, const std::vector<double>& b) {
  check(a.size() == b.size(), "a correlation is of pairs");
  double balance = 0;
  double pairs_a = 0;
  double pairs_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const int order_a = sign(a[i] - a[j]);
      const int order_b = sign(b[i] - b[j]);
      balance += order_a * order_b;
      pairs_a += order_a * order_a;
      pairs_b += order_b * order_b;
    }
  }
  if (pairs_a == 0 || pairs_b == 0) return std::nullopt;
  return balance / std::sqrt(pairs_a * pairs_b);
}

}  // namespace scalecalc
