// Fits a chip's coefficients to observations by robust regression, and says which of them the data inform.
#include "calibrate/coefficient_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "calibrate/minimize.h"

namespace scalecalc {
namespace {

/// A coefficient moves at most so many of its errors.
constexpr double kFarthest = 4;
/// What the weight of a source has to add to a prior's 1 to tell of a coefficient.
constexpr double kTells = 0.1;
constexpr std::size_t kFewestSources = 2;
/// And for one of several sources to do so alone.
constexpr double kTellsAlone = 1.0 / 3;
/// Of a slope: wide enough that a kink does not hide what lies behind it.
constexpr double kSlopeStep = 0.5;
constexpr std::array<double, 2> kBothWays{-1, 1};

}  // namespace

CoefficientFit::CoefficientFit(const Observations& rows, const Efficiency& reference) : reference_(reference) {
  constexpr double kMatters = 1e-3;
  for (const CoefficientSlot& slot : fitted_slots()) {
    const double error = slot.error(reference);
    if (slot.value(reference) <= 0 || error <= 0) continue;
    // Both ways: what runs beside something longer (the host's launches, hidden transfers) may matter in one alone.
    const bool matters = std::any_of(rows.begin(), rows.end(), [&](const Observation* row) {
      const double seconds = row->seconds(row->base);
      return std::any_of(kBothWays.begin(), kBothWays.end(), [&](double way) {
        Efficiency moved = row->base;
        slot.set(moved, slot.value(moved) * std::pow(1 + error, way));
        return std::abs(row->seconds(moved) / seconds - 1) > kMatters;
      });
    });
    if (matters) slots_.push_back(&slot);
  }
  if (slots_.empty()) {
    throw UserError("these runs depend on no coefficient that is fitted", "give steps, or larger messages");
  }
  for (const CoefficientSlot* slot : slots_) unit_.push_back(std::log1p(slot->error(reference_)));
  for (const Observation* row : rows) at_base_[row] = slopes(*row, none());
}

Efficiency CoefficientFit::at(const Efficiency& base, const Factors& factors) const {
  Efficiency out = base;
  for (std::size_t i = 0; i < slots_.size(); ++i) slots_[i]->set(out, slots_[i]->value(base) * std::exp(factors[i]));
  return out;
}

double CoefficientFit::residual(const Observation& row, const Factors& factors) const {
  return std::log(row.seconds(at(row.base, factors)) / row.measured);
}

Informed CoefficientFit::informed(const Observations& rows) const {
  std::set<std::string> sources, kernels;
  std::map<std::string, std::vector<double>> told;
  for (const Observation* row : rows) {
    (row->alone ? kernels : sources).insert(row->group);
    std::vector<double>& of = told.try_emplace(row->group, slots_.size(), 0.0).first->second;
    const Slopes& slopes = at_base_.at(row);
    for (std::size_t i = 0; i < of.size(); ++i) of[i] += row->weight * std::pow(slopes[i] / kStepHuber, 2);
  }
  const std::size_t needed = std::min(kFewestSources, sources.size());
  Informed out;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    std::size_t of_steps = 0, of_kernels = 0;
    double most = 0;
    for (const auto& [group, of] : told) {
      if (of[i] >= kTells) ++(kernels.contains(group) ? of_kernels : of_steps);
      most = std::max(most, of[i]);
    }
    out.sources.push_back(of_steps + of_kernels);
    out.free.push_back(of_kernels > 0 || most >= kTellsAlone || (of_steps > 0 && of_steps >= needed));
  }
  return out;
}

Factors CoefficientFit::fit(const Observations& rows, const Factors& centre, const Stop& stop) const {
  const Informed known = informed(rows);
  std::vector<std::size_t> free;
  Bounds bounds;
  std::vector<double> start;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (!known.free[i]) continue;
    free.push_back(i);
    const double value = slots_[i]->value(reference_);
    bounds.low.push_back(std::clamp(std::log(slots_[i]->least / value) / unit_[i], -kFarthest, 0.0));
    bounds.high.push_back(std::clamp(std::log(slots_[i]->most / value) / unit_[i], 0.0, kFarthest));
    if (bounds.high.back() - bounds.low.back() < 1e-3) bounds.low.back() = bounds.high.back() - 1e-3;  // for the solver
    start.push_back(centre[i] / unit_[i]);
  }
  if (free.empty()) return centre;
  if (free.size() == 1) {  // the solver needs two
    bounds.low.push_back(-1);
    bounds.high.push_back(1);
    start.push_back(0);
  }
  const auto factors = [&](const std::vector<double>& u) {
    Factors out = centre;
    for (std::size_t k = 0; k < free.size(); ++k) out[free[k]] = u[k] * unit_[free[k]];
    return out;
  };
  const std::vector<double> lean = start;
  const auto loss = [&](const std::vector<double>& u) {
    const Factors moved = factors(u);
    double sum = 0;
    for (const Observation* row : rows) sum += row->weight * huber(residual(*row, moved), kStepHuber);
    for (std::size_t k = 0; k < u.size(); ++k) sum += std::pow(u[k] - lean[k], 2) / 2;
    return sum;
  };
  return factors(minimize(loss, start, bounds, stop));
}

Slopes CoefficientFit::slopes(const Observation& row, const Factors& factors) const {
  const Efficiency middle = at(row.base, factors);
  Slopes out;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const auto at_distance = [&](double units) {
      Efficiency moved = middle;
      slots_[i]->set(moved, slots_[i]->value(middle) * std::exp(units * unit_[i]));
      return std::log(row.seconds(moved));
    };
    out.push_back((at_distance(kSlopeStep) - at_distance(-kSlopeStep)) / (2 * kSlopeStep));
  }
  return out;
}

Posterior CoefficientFit::posterior(const Observations& rows, const Factors& factors) const {
  const Informed known = informed(rows);
  std::vector<InformingRow> informing;
  for (const Observation* row : rows) {
    Slopes slopes = this->slopes(*row, factors);
    for (std::size_t i = 0; i < slopes.size(); ++i) {
      if (!known.free[i]) slopes[i] = 0;
    }
    const double beyond = std::abs(residual(*row, factors)) / kStepHuber;
    informing.push_back({std::move(slopes), row->weight / (kStepHuber * kStepHuber) / std::max(1.0, beyond)});
  }
  return {slots_.size(), std::move(informing)};
}

}  // namespace scalecalc
