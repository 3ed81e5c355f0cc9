#include "validate/serve_validation.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "spec/load_stack.h"
#include "validate/grouping.h"
#include "validate/statistics.h"

namespace scalecalc {
namespace {

PredictedServing predict(const ServeMeasurement& row, const ServeValidateQuestion& q, const Catalog& catalog) {
  const ServedRow served = served_row(row, catalog, q.set, q.ideal);
  const Efficiency& efficiency = served.system.efficiency;
  const ServedFigures figures = served_figures(served, efficiency);
  PredictedServing out{.row = row, .predicted = figures.figure, .floor = figures.floor, .batch = figures.batch};
  out.error = served_error(row, out.predicted);
  out.low = served_figures(served, fastest(efficiency)).figure;
  out.high = served_figures(served, slowest(efficiency)).figure;
  if (out.low > out.high) std::swap(out.low, out.high);
  out.in_band = out.low <= row.measured && row.measured <= out.high;
  out.first_token = figures.first_token;
  if (figures.first_token) out.first_token_error = *figures.first_token / *row.first_token - 1;
  out.layout = served.layout;
  out.stack_measured = served.stack_measured;
  return out;
}

std::optional<double> median_if_any(const std::vector<double>& values) {
  return values.empty() ? std::nullopt : std::optional(quantile(values, 0.5));
}

std::vector<double> sizes_of(std::vector<double> errors) {
  for (double& error : errors) error = std::abs(error);
  return errors;
}

ServeErrors errors_over(const std::vector<const PredictedServing*>& rows,
                        const std::vector<const SkippedServing*>& skipped) {
  ServeErrors out{.rows = rows.size() + skipped.size(), .predicted = rows.size()};
  for (const SkippedServing* row : skipped) ++out.skipped[row->reason];
  if (rows.empty()) return out;
  std::vector<double> errors, naive, first;
  std::size_t inside = 0;
  for (const PredictedServing* row : rows) {
    errors.push_back(row->error);
    naive.push_back(row->naive_error);
    if (row->first_token_error) first.push_back(*row->first_token_error);
    if (row->in_band) ++inside;
    if (!row->stack_measured) ++out.by_default;
    if (served_error(row->row, row->floor) > 0) ++out.below_floor;
  }
  const std::vector<double> sizes = sizes_of(errors);
  out.mean_abs = mean_of(sizes);
  out.median_abs = quantile(sizes, 0.5);
  out.p90_abs = quantile(sizes, 0.9);
  out.max_abs = *std::max_element(sizes.begin(), sizes.end());
  out.bias = mean_of(errors);
  out.coverage = static_cast<double>(inside) / static_cast<double>(rows.size());
  out.naive_mean_abs = mean_of(sizes_of(naive));
  out.naive_median_abs = median_if_any(sizes_of(naive));
  out.first_tokens = first.size();
  out.first_token_median_abs = median_if_any(sizes_of(first));
  if (!first.empty()) out.first_token_bias = mean_of(first);
  return out;
}

}  // namespace

const std::vector<std::string>& serve_axes() {
  static const std::vector<std::string> kAxes{"chip", "stack", "phase", "batch", "model", "group"};
  return kAxes;
}

std::string serve_group_name(const ServeMeasurement& row, const std::string& by) {
  if (by == "id") return row.id;
  if (by == "chip") return row.chip;
  if (by == "stack") return row.stack.empty() ? "not known" : row.stack;
  if (by == "phase") return std::string(kServePhaseNames[static_cast<std::size_t>(row.phase)]);
  if (by == "batch") return row.batch_class();
  if (by == "model") return row.model;
  if (by == "group") return row.group;
  internal_error("unknown axis");
}

bool passes(const ServeMeasurement& row, const std::vector<RowFilter>& filters) {
  return std::all_of(filters.begin(), filters.end(), [&](const RowFilter& filter) {
    const std::string name = serve_group_name(row, filter.by);
    return std::find(filter.names.begin(), filter.names.end(), name) != filter.names.end();
  });
}

ServeValidation validate_serving(const ServeValidateQuestion& question, const Catalog& catalog,
                                 const std::function<bool()>& stop) {
  ServeValidation out;
  std::vector<ServeMeasurement> rows = question.rows;
  name_engines(rows, catalog);
  const std::string stack = question.stack.empty() ? "" : serving_stack(catalog, question.stack).name;
  for (ServeMeasurement& row : rows) {
    if (!passes(row, question.only)) continue;
    if (!stack.empty()) row.stack = stack;
    try {
      if (stop && stop()) throw NotPredicted("interrupted", "");
      out.rows.push_back(predict(row, question, catalog));
    } catch (const NotPredicted& why) {
      out.skipped.push_back({row, why.reason(), why.detail()});
    }
  }
  if (out.rows.empty() && out.skipped.empty()) {
    throw UserError("no row is left to compare", question.only.empty() ? "the files hold no rows" : "see --only");
  }
  add_naive_errors(out.rows);
  summarize(out);
  return out;
}

void add_naive_errors(std::vector<PredictedServing>& rows) {
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

void summarize(ServeValidation& v) {
  std::vector<const PredictedServing*> rows;
  std::vector<const SkippedServing*> skipped;
  for (const PredictedServing& row : v.rows) rows.push_back(&row);
  for (const SkippedServing& row : v.skipped) skipped.push_back(&row);
  v.summary = errors_over(rows, skipped);
  v.groups.clear();
  for_each_group(v.rows, v.skipped, serve_axes(), serve_group_name,
                 [&](const auto& by, const auto& name, const auto& in_group, const auto& left_out) {
                   v.groups.push_back({by, name, errors_over(in_group, left_out)});
                 });
}

}  // namespace scalecalc
