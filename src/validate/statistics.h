// Statistics of predictions: errors, and how well an order is predicted.
#pragma once

#include <optional>
#include <vector>

namespace scalecalc {

/// The value below which a share `q` of the values lies, linear between neighbours. `values` must not be empty.
double quantile(std::vector<double> values, double q);
double mean_of(const std::vector<double>& values);
std::optional<double> mean_if_any(const std::vector<double>& values);
std::optional<double> median_if_any(const std::vector<double>& values);

/// Errors over some rows, of their sizes but for the bias. Zeros of none.
struct Errors {
  double mean_abs = 0, median_abs = 0, p90_abs = 0, max_abs = 0, bias = 0;
};
Errors errors_of(const std::vector<double>& errors);

/// Rank correlations of two lists of one length. Nothing if a list has fewer than two different values.
std::optional<double> spearman(const std::vector<double>& a, const std::vector<double>& b);
/// Kendall's tau-b: pairs in the same order minus pairs in the other, ties taken out.
std::optional<double> kendall(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace scalecalc
