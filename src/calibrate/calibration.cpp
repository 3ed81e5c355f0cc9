#include "calibrate/calibration.h"

#include <fmt/format.h>

#include <algorithm>

namespace scalecalc {

Folds deal(const std::map<std::string, std::size_t>& sizes, std::size_t most) {
  std::vector<std::pair<std::string, std::size_t>> order(sizes.begin(), sizes.end());
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  Folds out{.of_part = {}, .count = std::min(most, order.size())};
  std::vector<std::size_t> filled(out.count);
  for (const auto& [part, size] : order) {
    const auto emptiest = std::min_element(filled.begin(), filled.end());
    out.of_part[part] = static_cast<std::size_t>(emptiest - filled.begin());
    *emptiest += size;
  }
  return out;
}

std::string fitted_to(const std::string& date, const std::string& files, std::size_t runs, std::size_t sources) {
  return fmt::format("fitted{}{}: {} runs of {} source{}", date.empty() ? "" : " " + date,
                     files.empty() ? "" : " to " + files, runs, sources, sources == 1 ? "" : "s");
}

void CrossFit::cross_fit(std::vector<std::size_t> fold_of, std::size_t folds, const std::function<bool()>& stop) {
  fold_of_ = std::move(fold_of);
  fitted_ = fit(std::nullopt);
  for (std::size_t fold = 0; fold < folds && !(stop && stop()); ++fold) blind_.push_back(fit(fold));
}

bool CrossFit::in_band(std::size_t row, double scale) const {
  const Efficiency wide = widened(row, at(row, held_out(row) ? blind_[fold_of_[row]] : fitted_), scale);
  return error(row, fastest(wide)) <= 0 && error(row, slowest(wide)) >= 0;
}

double CrossFit::coverage_of(double scale) const {
  std::size_t inside = 0;
  for (std::size_t row = 0; row < fold_of_.size(); ++row) inside += in_band(row, scale) ? 1U : 0U;
  return static_cast<double>(inside) / static_cast<double>(fold_of_.size());
}

double CrossFit::scale_of_errors(int halvings, double more) const {
  if (blind_.empty()) return 1;
  double low = 0.02;
  double high = 8;
  for (int i = 0; i < halvings; ++i) {
    const double middle = std::sqrt(low * high);
    (coverage_of(middle) >= kWantedCoverage ? high : low) = middle;
  }
  return more * high;
}

}  // namespace scalecalc
