#include "validate/serving_validation.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "spec/load_stack.h"

namespace scalecalc {
namespace {

std::vector<double> sizes_of(std::vector<double> errors) {
  for (double& error : errors) error = std::abs(error);
  return errors;
}

}  // namespace

const std::vector<std::string>& Serving::axes() {
  static const std::vector<std::string> kAxes{"chip", "stack", "phase", "batch", "model", "group"};
  return kAxes;
}

std::string group_name(const ServeMeasurement& row, const std::string& by) {
  if (by == "id") return row.id;
  if (by == "chip") return row.chip;
  if (by == "stack") return row.stack.empty() ? "not known" : row.stack;
  if (by == "phase") return std::string(kServePhaseNames[static_cast<std::size_t>(row.phase)]);
  if (by == "batch") return row.batch_class();
  if (by == "model") return row.model;
  if (by == "group") return row.group;
  internal_error("unknown axis");
}

std::string Serving::stack_named(const Catalog& catalog, const std::string& name) {
  return serving_stack(catalog, name).name;
}

PredictedServing Serving::predict(const ServeMeasurement& row, const ServeValidateQuestion& q, const Catalog& catalog) {
  const ServedRow served = served_row(row, catalog, q.set, q.ideal);
  const Efficiency& efficiency = served.system.efficiency;
  const ServedFigures figures = served_figures(served, efficiency);
  PredictedServing out;
  out.row = row;
  out.measured = row.measured;
  out.predicted = figures.figure;
  out.floor = figures.floor;
  out.batch = figures.batch;
  out.error = served_error(row, out.predicted);
  out.low = served_figures(served, fastest(efficiency)).figure;
  out.high = served_figures(served, slowest(efficiency)).figure;
  if (out.low > out.high) std::swap(out.low, out.high);
  out.first_token = figures.first_token;
  if (figures.first_token) out.first_token_error = *figures.first_token / *row.first_token - 1;
  out.layout = served.layout;
  out.by_default = !served.stack_measured;
  return out;
}

void Serving::weigh_together(std::vector<PredictedServing>& rows) {
  const auto share = [](const PredictedServing& row) { return 1 + served_error(row.row, row.floor); };
  for (PredictedServing& row : rows) {
    std::vector<double> of_chip, of_all;
    for (const PredictedServing& other : rows) {
      if (other.row.group == row.row.group) continue;
      of_all.push_back(share(other));
      if (other.row.chip == row.row.chip) of_chip.push_back(share(other));
    }
    const std::optional<double> usual = median_if_any(of_chip.empty() ? of_all : of_chip);
    if (usual) row.naive_error = share(row) / *usual - 1;
  }
}

void Serving::count(const std::vector<const PredictedServing*>& rows, Compared, ServeErrors& out) {
  std::vector<double> naive, first;
  for (const PredictedServing* row : rows) {
    naive.push_back(row->naive_error);
    if (row->first_token_error) first.push_back(*row->first_token_error);
    if (served_error(row->row, row->floor) > 0) ++out.below_floor;
  }
  out.naive_mean_abs = mean_if_any(sizes_of(naive));
  out.naive_median_abs = median_if_any(sizes_of(naive));
  out.first_tokens = first.size();
  out.first_token_median_abs = median_if_any(sizes_of(first));
  out.first_token_bias = mean_if_any(first);
}

ServeValidation validate_serving(const ServeValidateQuestion& question, const Catalog& catalog,
                                 const std::function<bool()>& stop) {
  return validate_rows<Serving>(question, catalog, stop);
}

}  // namespace scalecalc
