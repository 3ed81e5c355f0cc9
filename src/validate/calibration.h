// Efficiency coefficients of one chip fitted to measured runs, and what the fit is worth on runs it has not seen.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "validate/coefficients.h"
#include "validate/validation.h"

namespace scalecalc {

struct CalibrateQuestion {
  std::vector<Measurement> rows;
  std::string hardware;  ///< catalog name or path; rows of other chips are left aside
  std::vector<RowFilter> only;
  std::size_t folds = 5;
  std::string date;  ///< for the provenance; empty: not said
};

struct FittedCoefficient {
  std::string path;
  double before = 0, error_before = 0;
  double after = 0, error_after = 0;
  double lowest = 0, highest = 0;  ///< over the folds
};

struct FoldReport {
  std::vector<std::string> sources;  ///< held out
  std::size_t rows = 0;              ///< of them
  double inside_mean_abs = 0;        ///< on the runs it was fitted to
  double outside_mean_abs = 0, outside_bias = 0;
};

/// Errors over all rows, each row's from one fit.
struct FitErrors {
  double mean_abs = 0, median_abs = 0, p90_abs = 0, bias = 0;
};

struct Calibration {
  std::string hardware;
  std::size_t rows = 0, sources = 0, other_chips = 0;
  std::vector<SkippedRow> skipped;
  std::vector<FittedCoefficient> coefficients;
  std::vector<FoldReport> folds;
  FitErrors before;   ///< with the file's coefficients
  FitErrors inside;   ///< of the fit to all rows
  FitErrors outside;  ///< each row by the fit that held its source out; as inside if there is one source only
  std::optional<double> coverage;  ///< of the held-out rows, within the errors written down
  ConfigNode block;                ///< the `efficiency:` block
};

/// Robust regression: the coefficients within their ranges that make the Huber loss of ln(predicted / measured), plus
/// each coefficient's squared distance from the file's value in units of its error, least. A source counts by the
/// square root of its rows. Layouts are those of the file's coefficients. Errors are scaled alike until the band holds
/// 90 % of the held-out rows. UserError if no row can be used.
Calibration calibrate(const CalibrateQuestion& question, const Catalog& catalog,
                      const std::function<bool()>& stop = {});

}  // namespace scalecalc
