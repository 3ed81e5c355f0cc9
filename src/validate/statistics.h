// Statistics of predictions: errors, and how well an order is predicted.
#pragma once

#include <optional>
#include <vector>

namespace scalecalc {

/// The value below which a share `q` of the values lies, linear between neighbours. `values` must not be empty.
double quantile(std::vector<double> values, double q);
double mean_of(const std::vector<double>& values);

/// Rank correlations of two lists of one length. Nothing if a list has fewer than two different values.
std::optional<double> spearman(const std::vector<double>& a, const std::vector<double>& b);
/// Kendall's tau-b: pairs in the same order minus pairs in the other, ties taken out.
std::optional<double> kendall(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace scalecalc
