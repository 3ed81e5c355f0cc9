// Predicted against measured, row by row and in sum.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "train/question.h"
#include "validate/measurement.h"

namespace scalecalc {

enum class Compared { kStepTime, kMemory };

/// Rows whose `by` (as a group's, or "id") is one of `names`.
struct RowFilter {
  std::string by;
  std::vector<std::string> names;
};

struct ValidateQuestion {
  std::vector<Measurement> rows;
  Compared compared = Compared::kStepTime;
  bool ideal = false;
  std::string stack;             ///< of every row; empty: each row's own
  std::vector<std::string> set;  ///< "hw.hbm.bandwidth=5TB/s", on every chip
  std::vector<RowFilter> only;
};

/// A row that was predicted: seconds of a step, or bytes on the fullest chip.
struct PredictedRow {
  Measurement row;
  double measured = 0, predicted = 0, low = 0, high = 0;
  Layout layout;
  PlanFigures figures;
  std::string stack;                        ///< whose coefficients
  StackBasis basis = StackBasis::kDefault;  ///< of these
  bool fits = true;                         ///< false: by our count it runs out of memory, and it ran
  std::vector<std::string> chosen;          ///< what the row does not say and the search chose
  std::vector<std::string> assumed;         ///< thrift assumed so that it fits

  double error() const { return predicted / measured - 1; }
};

struct SkippedRow {
  Measurement row;
  std::string reason, detail;
};

/// How well predictions order the layouts of sets; means over them. What no set gives is absent.
struct OrderQuality {
  std::size_t sets = 0;
  std::optional<double> spearman, kendall, median_spearman;
  std::optional<double> regret;  ///< measured time of the layout predicted fastest over the fastest, minus 1
};

/// Errors over some rows. What no row gives is absent.
struct ErrorSummary {
  std::size_t rows = 0, predicted = 0;
  std::map<std::string, std::size_t> skipped;  ///< by reason
  std::optional<double> mean_abs, median_abs, p90_abs, max_abs, bias;
  std::optional<double> source_mean_abs, source_median_abs, source_bias;  ///< mean over source groups of each group's
  std::optional<double> coverage;                                         ///< share measured within low..high
  std::size_t too_slow = 0;       ///< predicted slower than measured: none may be under ideal efficiency
  std::size_t out_of_memory = 0;  ///< ran, and are declared not to fit
  std::size_t made_to_fit = 0;    ///< fit by thrift that their sources do not state
  std::size_t by_default = 0;     ///< predicted by the chip's default set: it has none of the row's stack
  OrderQuality of_job;            ///< sets of three layouts and more of one model, chips and batch
  OrderQuality of_model;          ///< sets of five and more of one model on one kind of chip, by chip-seconds a token
};

struct GroupSummary {
  std::string by, name;
  ErrorSummary errors;
};

struct Validation {
  Compared compared = Compared::kStepTime;
  std::vector<PredictedRow> rows;
  std::vector<SkippedRow> skipped;
  ErrorSummary summary;
  std::vector<GroupSummary> groups;
};

/// What rows are grouped by: subset, chip, family, framework, stack, precision, group (of sources).
const std::vector<std::string>& group_axes();
/// A row's name along one of them, or its id.
std::string group_name(const Measurement& row, const std::string& by);

/// Whether every filter names the row.
bool passes(const Measurement& row, const std::vector<RowFilter>& filters);

/// Memory if no row has anything else to compare.
Compared compared_by_default(const std::vector<Measurement>& rows);

/// Every row is predicted or skipped with a reason. UserError for a filter nothing passes. `stop` is polled between
/// rows; rows that it cuts off are skipped as such.
Validation validate(const ValidateQuestion& question, const Catalog& catalog, const std::function<bool()>& stop = {});

/// Sums the rows up; groups by every axis in the order of their names.
void summarize(Validation& validation);

}  // namespace scalecalc
