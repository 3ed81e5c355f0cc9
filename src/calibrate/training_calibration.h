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
    return !folds.empty() && outside.mean_abs < before.mean_abs && outside.mean_abs <= baseline.mean_abs;
  }
};

/// Robust regression (CoefficientFit) on the rows of the chip whose framework belongs to the stack (of the usual stack
/// also those that name none). What it leans on are the family's factors: the same regression on the family's rows of
/// this stack, other chips' among them, each from its own chip's coefficients. A source of n rows counts as n^(3/4) of
/// them, since its rows err alike. Layouts are those of the file's coefficients. What is held out is held out of both
/// regressions. Errors are scaled alike until the band holds 90 % of the held-out rows, and half as much again where
/// they are of the same source as the rest. UserError if no row can be used;
/// Stopped if asked to end before the fit begins.
Calibration calibrate(const CalibrateQuestion& question, const Catalog& catalog, const Stop& stop = {});

}  // namespace scalecalc
