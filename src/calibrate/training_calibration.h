// Efficiency coefficients of one chip fitted to measured runs, and what the fit is worth on runs it has not seen.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/calibration.h"
#include "validate/training_validation.h"

namespace scalecalc {

// Robust regression of efficiency coefficients on measured steps. Coefficients move by factors, so that runs of several
// chips, each with coefficients of its own, can be fitted together.

/// A run with its layout, ready to be costed again and again. Made once, never moved: the plan points into `question`.
struct FitRow {
  Measurement row;
  RowQuestion question;
  Efficiency base;  ///< the coefficients its chip starts from
  Plan plan;
  double measured = 0;  ///< seconds
  double stretch = 1;   ///< the batch of the row over the plan's
  double weight = 1;

  double step(const Efficiency& efficiency) const;
};
using FitRows = std::vector<const FitRow*>;

/// The row's layout under its coefficients. NotPredicted as `evaluate`.
std::unique_ptr<FitRow> fit_row(const Measurement& row, const Catalog& catalog);

/// Factors are in the order of `slots`.
class CoefficientFit {
 public:
  /// The coefficients that any of `rows` depends on, by more than a part in a thousand within their error. `reference`
  /// gives the errors that distances are counted in. UserError if there are fewer than two.
  CoefficientFit(const FitRows& rows, const Efficiency& reference);

  const std::vector<const CoefficientSlot*>& slots() const { return slots_; }
  Factors none() const { return Factors(slots_.size(), 0.0); }
  /// `base` with every coefficient multiplied, kept within its range.
  Efficiency at(const Efficiency& base, const Factors& factors) const;
  /// Predicted over measured, minus 1.
  double error(const FitRow& row, const Factors& factors) const;

  /// The factors that make the weighted Huber loss of ln(predicted / measured), plus half of each coefficient's squared
  /// distance from `centre` in units of its error, least.
  Factors fit(const FitRows& rows, const Factors& centre) const;

 private:
  std::vector<const CoefficientSlot*> slots_;
  Efficiency reference_;
};

using CalibrateQuestion = CalibrateQuestionOf<Training>;

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

/// Its baseline: what the fit leaned on, the family's factors without the row's part.
struct Calibration : FitReportOf<Training> {
  std::string hardware;  ///< empty for a family
  std::string family, stack;
  std::size_t sources = 0, other_chips = 0, other_stacks = 0;
  std::size_t relatives = 0;  ///< runs of the family's other chips under the same stack
  HeldOut held_out = HeldOut::kNothing;
  std::vector<FittedCoefficient> coefficients;
  std::vector<FoldReport> folds;
  ConfigNode block;  ///< the `efficiency:` block

  /// Whether runs that the fit has not seen are predicted better than by the file's coefficients
  /// and by the family's factors alone.
  bool better() const {
    return held_out != HeldOut::kNothing && outside.mean_abs < before.mean_abs && outside.mean_abs <= baseline.mean_abs;
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
