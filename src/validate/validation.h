// Predicted against measured, row by row and in sum: one run for rows of every kind. A kind (Training, Serving,
// RlSteps) says
//   Measured            what a row holds: id, group, chip, stack and more
//   Costed, Counts      what its predictions and sums hold beside those of every kind
//   kUsual              what is compared unless the question says otherwise
//   axes()              what its rows are grouped by; group_name(row, axis) is the group of one
//   stack_named()       a stack of --stack by its name; name_stacks(rows, catalog) sets each row's own
//   predict()           one row, or NotPredicted; Stopped if asked to end before
//   weigh_together()    what a prediction is worth beside the other rows', and which it stands beside; may do nothing
//   count()             its own sums
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "base/stop.h"
#include "config/catalog.h"
#include "validate/row_question.h"
#include "validate/statistics.h"

namespace scalecalc {

enum class Compared : std::uint8_t { kStepTime, kMemory, kServing, kRlStep };
inline constexpr std::array<std::string_view, 4> kComparedNames{"step_time_s", "memory_bytes", "serving", "rl_step_s"};

/// Rows whose `by` (as a group's, or "id") is one of `names`.
struct RowFilter {
  std::string by;
  std::vector<std::string> names;
};

template <class Kind>
struct ValidateQuestionOf {
  std::vector<typename Kind::Measured> rows;
  Compared compared = Kind::kUsual;
  bool ideal = false;
  std::string stack;             ///< of every row; empty: each row's own
  std::vector<std::string> set;  ///< "hw.hbm.bandwidth=5TB/s", on every chip
  std::vector<RowFilter> only;
};

/// A row that was predicted. Figures are in the row's unit: seconds, bytes or tokens/s; the error compares times, or
/// bytes.
template <class Kind>
struct PredictedOf : Kind::Costed {
  typename Kind::Measured row;
  double measured = 0, predicted = 0, low = 0, high = 0;  ///< slowest and fastest corner of the coefficients
  double error = 0;                                       ///< predicted over measured, minus 1
  bool by_default = false;  ///< by usual coefficients: the chip has none of the row's stack

  bool in_band() const { return low <= measured && measured <= high; }
};

template <class Kind>
struct SkippedOf {
  typename Kind::Measured row;
  std::string reason, detail;
};

/// Errors over some rows. What no row gives is absent.
template <class Kind>
struct ErrorsOf : Kind::Counts {
  std::size_t rows = 0, predicted = 0;
  std::map<std::string, std::size_t> skipped;  ///< by reason
  std::optional<double> mean_abs, median_abs, p90_abs, max_abs, bias;
  std::optional<double> coverage;  ///< share measured within low..high
  std::size_t by_default = 0;      ///< predicted by usual coefficients
};

template <class Kind>
struct GroupOf {
  std::string by, name;
  ErrorsOf<Kind> errors;
};

template <class Kind>
struct ValidationOf {
  Compared compared = Kind::kUsual;
  std::vector<PredictedOf<Kind>> rows;
  std::vector<SkippedOf<Kind>> skipped;
  ErrorsOf<Kind> summary;
  std::vector<GroupOf<Kind>> groups;  ///< by every axis, in the order of their names
};

/// Chips by their names in the catalog, whatever alias a file says; what it does not know stays as it is.
class CatalogChips {
 public:
  explicit CatalogChips(const Catalog& catalog) : catalog_(catalog) {}
  void rename(std::string& chip) {
    const auto [at, added] = names_.try_emplace(chip);
    if (added) at->second = catalog_.name_of(CatalogKind::kHardware, chip).value_or(chip);
    chip = at->second;
  }

 private:
  const Catalog& catalog_;
  std::map<std::string, std::string> names_;
};

/// Hands every row that passes all filters to `take`, its stack and its chip named as in the catalog. A row that it
/// refuses is left out with the reason.
template <class Kind, class Take>
void take_rows(std::vector<typename Kind::Measured> rows, std::vector<RowFilter> only, const Catalog& catalog,
               std::vector<SkippedOf<Kind>>& skipped, const Take& take) {
  name_stacks(rows, catalog);
  CatalogChips chips(catalog);
  for (RowFilter& filter : only) {
    if (filter.by == "chip") std::for_each(filter.names.begin(), filter.names.end(), [&](auto& n) { chips.rename(n); });
  }
  for (typename Kind::Measured& row : rows) {
    chips.rename(row.chip);
    const bool passes = std::all_of(only.begin(), only.end(), [&](const RowFilter& filter) {
      return std::find(filter.names.begin(), filter.names.end(), group_name(row, filter.by)) != filter.names.end();
    });
    if (!passes) continue;
    try {
      take(row);
    } catch (const NotPredicted& why) {
      skipped.push_back({row, why.reason(), why.detail()});
    }
  }
}

/// Rows whose errors are summed.
template <class Kind>
struct RowsOf {
  std::vector<const PredictedOf<Kind>*> predicted;
  std::vector<const SkippedOf<Kind>*> skipped;
};

template <class Kind>
ErrorsOf<Kind> errors_over(const RowsOf<Kind>& all_rows, Compared compared) {
  ErrorsOf<Kind> out;
  for (const SkippedOf<Kind>* row : all_rows.skipped) ++out.skipped[row->reason];
  const std::vector<const PredictedOf<Kind>*>& rows = all_rows.predicted;
  out.predicted = rows.size();
  out.rows = rows.size() + all_rows.skipped.size();
  if (rows.empty()) return out;
  std::vector<double> errors;
  std::size_t inside = 0;
  for (const PredictedOf<Kind>* row : rows) {
    errors.push_back(row->error);
    if (row->in_band()) ++inside;
    if (row->by_default) ++out.by_default;
  }
  const Errors all = errors_of(errors);
  out.mean_abs = all.mean_abs;
  out.median_abs = all.median_abs;
  out.p90_abs = all.p90_abs;
  out.max_abs = all.max_abs;
  out.bias = all.bias;
  out.coverage = static_cast<double>(inside) / static_cast<double>(rows.size());
  Kind::count(rows, compared, out);
  return out;
}

/// Every row is predicted or skipped with a reason. UserError for a filter nothing passes. Rows that `stop`
/// cuts off are skipped as such.
template <class Kind>
ValidationOf<Kind> validate_rows(const ValidateQuestionOf<Kind>& question, const Catalog& catalog,
                                 const std::function<bool()>& stop) {
  using KindRow = typename Kind::Measured;
  ValidationOf<Kind> out{.compared = question.compared};
  const std::string stack = question.stack.empty() ? "" : Kind::stack_named(catalog, question.stack);
  Progress rows("rows", question.rows.size());
  take_rows<Kind>(question.rows, question.only, catalog, out.skipped, [&](KindRow& row) {
    if (!stack.empty()) row.stack = stack;
    rows.add();
    try {
      if (should_stop(stop)) throw Stopped();
      out.rows.push_back(Kind::predict(row, question, catalog, stop));
    } catch (const Stopped&) {
      throw NotPredicted("interrupted", "");
    }
  });
  if (out.rows.empty() && out.skipped.empty()) {
    throw UserError("no row is left to compare", question.only.empty() ? "the files hold no rows" : "see --only");
  }
  Kind::weigh_together(out.rows);
  RowsOf<Kind> all;
  for (const PredictedOf<Kind>& row : out.rows) all.predicted.push_back(&row);
  for (const SkippedOf<Kind>& row : out.skipped) all.skipped.push_back(&row);
  out.summary = errors_over(all, out.compared);
  for (const std::string& by : Kind::axes()) {
    std::map<std::string, RowsOf<Kind>> named;
    for (const PredictedOf<Kind>* row : all.predicted) named[group_name(row->row, by)].predicted.push_back(row);
    for (const SkippedOf<Kind>* row : all.skipped) named[group_name(row->row, by)].skipped.push_back(row);
    for (const auto& [name, rows_named] : named) {
      out.groups.push_back({by, name, errors_over(rows_named, out.compared)});
    }
  }
  return out;
}

}  // namespace scalecalc
