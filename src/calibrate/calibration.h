// Efficiency coefficients of one chip fitted to measured runs, and what the fit is worth on runs it has not seen.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/coefficients.h"
#include "validate/validation.h"

namespace scalecalc {

struct CalibrateQuestion {
  std::vector<Measurement> rows;
  std::string hardware;  ///< catalog name or path; rows of other chips of its family shape the values it leans on
  std::string family;    ///< instead of a chip: factors for all chips of the family
  std::string stack;     ///< by its name or a framework's; empty: the chip's usual one. Rows of others are left aside
  std::vector<RowFilter> only;
  std::size_t folds = 5;
  std::string date;   ///< for the provenance; empty: not said
  std::string files;  ///< for the provenance: where the rows were read
};

struct FittedCoefficient {
  std::string path;
  double before = 0, error_before = 0;
  double after = 0, error_after = 0;
  double factor = 1;               ///< after over before
  double lowest = 0, highest = 0;  ///< over the folds
};

/// What the folds are made of: whole sources; whole models where there is one source only.
enum class HeldOut : std::uint8_t { kNothing, kSource, kModel };
inline constexpr std::array<std::string_view, 3> kHeldOutNames{"nothing", "source", "model"};

struct FoldReport {
  std::vector<std::string> held_out;  ///< sources, or models
  std::size_t rows = 0;               ///< of them
  double inside_mean_abs = 0;         ///< on the runs it was fitted to
  double outside_mean_abs = 0, outside_bias = 0;
};

/// One row's errors: by the file's coefficients, by the fit to all rows, by the fit that had not seen it.
struct FittedRow {
  Measurement row;
  double measured = 0;  ///< seconds
  double before = 0, inside = 0;
  std::optional<double> outside;
  std::optional<double> by_family;  ///< by what that fit leaned on
  bool in_band = false;             ///< of the fit that had not seen it, with the errors written down
};

/// Errors over all rows, each row's from one fit.
struct FitErrors {
  double mean_abs = 0, median_abs = 0, p90_abs = 0, bias = 0;
};
FitErrors errors_of(const std::vector<double>& errors);

/// Share of rows that a coefficient's stated error shall enclose, and the largest such error.
inline constexpr double kWantedCoverage = 0.9;
inline constexpr double kLargestError = 0.95;

struct Calibration {
  std::string hardware;  ///< empty for a family
  std::string family, stack;
  std::size_t sources = 0, other_chips = 0, other_stacks = 0;
  std::size_t relatives = 0;  ///< runs of the family's other chips under the same stack
  std::vector<FittedRow> rows;
  HeldOut held_out = HeldOut::kNothing;
  std::vector<SkippedRow> skipped;
  std::vector<FittedCoefficient> coefficients;
  std::vector<FoldReport> folds;
  FitErrors before;                ///< with the file's coefficients
  FitErrors inside;                ///< of the fit to all rows
  FitErrors outside;               ///< each row by the fit that had not seen it; as inside if nothing was held out
  FitErrors by_family;             ///< the same by what the fit leaned on: the family's factors without the row's part
  std::optional<double> coverage;  ///< of the held-out rows, within the errors written down
  ConfigNode block;                ///< the `efficiency:` block

  /// Whether runs that the fit has not seen are predicted better than by the file's coefficients
  /// and by the family's factors alone.
  bool better() const {
    return held_out != HeldOut::kNothing && outside.mean_abs < before.mean_abs &&
           outside.mean_abs <= by_family.mean_abs;
  }
};

/// Robust regression (CoefficientFit) on the rows of the chip whose framework belongs to the stack (of the usual stack
/// also those that name none). What it leans on are the family's factors: the same regression on the family's rows of
/// this stack, other chips' among them, each from its own chip's coefficients. A source of n rows counts as n^(3/4) of
/// them, since its rows err alike. Layouts are those of the file's coefficients. What is held out is held out of both
/// regressions. Errors are scaled alike until the band holds 90 % of the held-out rows, and half as much again where
/// they are of the same source as the rest. UserError if no row can be used.
Calibration calibrate(const CalibrateQuestion& question, const Catalog& catalog,
                      const std::function<bool()>& stop = {});

}  // namespace scalecalc
