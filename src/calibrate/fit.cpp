#include "calibrate/fit.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "calibrate/minimize.h"

namespace scalecalc {
namespace {

/// Errors beyond this (of the logarithm) count linearly.
constexpr double kStepHuber = 0.1;
/// A coefficient moves at most so many of its errors.
constexpr double kFarthest = 4;

}  // namespace

double FitRow::step(const Efficiency& efficiency) const {
  PlanRequest request = request_of(question);
  request.efficiency = efficiency;
  return read_plan(Reader<double>{}, request, plan).time.total().value() * stretch;
}

std::unique_ptr<FitRow> fit_row(const Measurement& row, const Catalog& catalog) {
  auto out = std::make_unique<FitRow>();
  out->row = row;
  out->question = row_question(row, catalog, {}, false);
  out->base = stack_of(row, out->question.resolved.hw).efficiency;
  out->measured = measured_step(row, out->question.resolved);
  out->plan = evaluate(out->question).plan;
  out->stretch = row.batch_seqs / out->plan.batch_seqs;
  return out;
}

CoefficientFit::CoefficientFit(const FitRows& rows, const Efficiency& reference) : reference_(reference) {
  constexpr double kMatters = 1e-3;
  for (const CoefficientSlot& slot : fitted_slots()) {
    const double error = slot.error(reference);
    if (slot.value(reference) <= 0 || error <= 0) continue;
    const bool matters = std::any_of(rows.begin(), rows.end(), [&](const FitRow* row) {
      Efficiency moved = row->base;
      slot.set(moved, slot.value(moved) / (1 + error));
      return std::abs(row->step(moved) / row->step(row->base) - 1) > kMatters;
    });
    if (matters) slots_.push_back(&slot);
  }
  if (slots_.size() < 2) {
    throw UserError("these runs depend on fewer than two coefficients", "give runs of several kinds");
  }
}

Efficiency CoefficientFit::at(const Efficiency& base, const Factors& factors) const {
  Efficiency out = base;
  for (std::size_t i = 0; i < slots_.size(); ++i) slots_[i]->set(out, slots_[i]->value(base) * std::exp(factors[i]));
  return out;
}

double CoefficientFit::error(const FitRow& row, const Factors& factors) const {
  return row.step(at(row.base, factors)) / row.measured - 1;
}

Factors CoefficientFit::fit(const FitRows& rows, const Factors& centre) const {
  std::vector<double> unit;
  Bounds bounds;
  for (const CoefficientSlot* slot : slots_) {
    unit.push_back(std::log1p(slot->error(reference_)));
    const double value = slot->value(reference_);
    bounds.low.push_back(std::clamp(std::log(slot->least / value) / unit.back(), -kFarthest, 0.0));
    bounds.high.push_back(std::clamp(std::log(slot->most / value) / unit.back(), 0.0, kFarthest));
    if (bounds.high.back() - bounds.low.back() < 1e-3) bounds.low.back() = bounds.high.back() - 1e-3;  // for the solver
  }
  const auto factors = [&](const std::vector<double>& u) {
    Factors out;
    for (std::size_t i = 0; i < u.size(); ++i) out.push_back(u[i] * unit[i]);
    return out;
  };
  const auto loss = [&](const std::vector<double>& u) {
    const Factors moved = factors(u);
    double sum = 0;
    for (const FitRow* row : rows) sum += row->weight * huber(std::log1p(error(*row, moved)), kStepHuber);
    for (std::size_t i = 0; i < u.size(); ++i) sum += std::pow(u[i] - centre[i] / unit[i], 2) / 2;
    return sum;
  };
  std::vector<double> start;
  for (std::size_t i = 0; i < unit.size(); ++i) start.push_back(centre[i] / unit[i]);
  return factors(minimize(loss, start, bounds));
}

}  // namespace scalecalc
