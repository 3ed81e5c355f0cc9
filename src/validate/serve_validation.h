// Predicted against measured serving figures, row by row and in sum, beside a naive baseline.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "validate/serve_row.h"
#include "validate/validation.h"

namespace scalecalc {

struct ServeValidateQuestion {
  std::vector<ServeMeasurement> rows;
  bool ideal = false;
  std::string stack;             ///< of every row; empty: each row's own
  std::vector<std::string> set;  ///< "hw.hbm.bandwidth=5TB/s", on every chip
  std::vector<RowFilter> only;
};

/// A row that was predicted. Figures are seconds or tokens/s, as the row's; errors compare times.
struct PredictedServing {
  ServeMeasurement row;
  double predicted = 0, low = 0, high = 0;  ///< slowest and fastest corner of the coefficients
  double floor = 0;                         ///< weights and contexts at the data sheet's bandwidth
  double batch = 0;
  double error = 0;
  double naive_error = 0;             ///< of the floor over its usual share on the chip, row's source aside
  std::optional<double> first_token;  ///< s
  std::optional<double> first_token_error;
  ServeLayout layout;
  bool stack_measured = false;
  bool in_band = false;
};

struct SkippedServing {
  ServeMeasurement row;
  std::string reason, detail;
};

/// Errors over some rows. What no row gives is absent.
struct ServeErrors {
  std::size_t rows = 0, predicted = 0;
  std::map<std::string, std::size_t> skipped;  ///< by reason
  std::optional<double> mean_abs, median_abs, p90_abs, max_abs, bias, coverage;
  std::optional<double> naive_mean_abs, naive_median_abs;
  std::size_t first_tokens = 0;
  std::optional<double> first_token_median_abs, first_token_bias;
  std::size_t by_default = 0;   ///< predicted by the family's coefficients
  std::size_t below_floor = 0;  ///< measured faster than weights and contexts can be read
};

struct ServeGroup {
  std::string by, name;
  ServeErrors errors;
};

struct ServeValidation {
  std::vector<PredictedServing> rows;
  std::vector<SkippedServing> skipped;
  ServeErrors summary;
  std::vector<ServeGroup> groups;
};

/// What rows are grouped by: chip, stack, phase, batch, model, group (of sources).
const std::vector<std::string>& serve_axes();
std::string serve_group_name(const ServeMeasurement& row, const std::string& by);
bool passes(const ServeMeasurement& row, const std::vector<RowFilter>& filters);

/// Every row is predicted or skipped with a reason. UserError for a filter nothing passes. `stop` as in validate().
ServeValidation validate_serving(const ServeValidateQuestion& question, const Catalog& catalog,
                                 const std::function<bool()>& stop = {});

/// Time each row's floor would be off by, as a share of its measured time, were the floor reached at the median share
/// of the other sources' rows of its chip (of all chips' where the chip has no other source).
void add_naive_errors(std::vector<PredictedServing>& rows);

/// Sums the rows up; groups by every axis in the order of their names.
void summarize(ServeValidation& validation);

}  // namespace scalecalc
