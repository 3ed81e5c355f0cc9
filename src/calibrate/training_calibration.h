// Efficiency coefficients of one chip fitted to measured runs, and what the fit is worth on runs it has not seen.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/calibration.h"
#include "calibrate/next_runs.h"
#include "validate/training_validation.h"

namespace scalecalc {

using CalibrateQuestion = CalibrateQuestionOf<Training>;

struct FittedCoefficient {
  std::string path;
  double before = 0, error_before = 0;
  double after = 0, error_after = 0;
  double factor = 1;               ///< after over before
  double lowest = 0, highest = 0;  ///< over the folds
  std::size_t sources = 0;         ///< that tell of it
  bool moved = false;              ///< enough of them do; otherwise it stays at what it leans on
  double informed = 0;             ///< share of the prior's variance that the measurements took
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
  double degrees_of_freedom = 0;                  ///< effective: parameters' worth of what the measurements determine
  ModelErrors model_error{};                      ///< by class of run
  std::map<std::string, ClassCoverage> by_class;  ///< of the runs held out
  Gain gain;                                      ///< over the file's coefficients, by part held out
  std::optional<Gain> family_gain;                ///< over the baseline
  std::vector<NextRun> next;                      ///< to measure, the most telling first
  std::size_t kernels = 0;                        ///< kernels and collectives fitted to beside the runs
  std::size_t small_messages = 0;                 ///< collectives left out, see large_messages
  ConfigNode block;                               ///< the `efficiency:` block

  /// Whether runs that the fit has not seen are predicted better than by the file's coefficients
  /// and by the family's factors alone.
  bool better() const {
    return !folds.empty() && outside.mean_abs < before.mean_abs && outside.mean_abs <= baseline.mean_abs;
  }
  /// Whether a chip's own set is worth shipping to others: whole sources were held out, and what it gains over what
  /// stands without it is more than chance.
  bool worth_shipping() const {
    return held_out == HeldOut::kSource && better() && gain.beyond_chance() &&
           (!family_gain || family_gain->beyond_chance());
  }
};

/// Robust regression (CoefficientFit) on the rows of the chip whose framework belongs to the stack (of the usual stack
/// also those that name none), and on its kernels. What it leans on are the family's factors: the same regression on
/// the family's rows of this stack, other chips' among them, each from its own chip's coefficients. A source of n rows
/// counts as n^(3/4) of them, since its rows err alike; those of one alone as four each. Layouts are those of the
/// file's coefficients. What is held out is held out of both regressions. Errors of the coefficients that moved are the
/// posterior's, scaled so that all of them moved at once, as bands are made, reach as far as the posterior's 90 % does
/// on the median run, and no farther than 90 % of the held-out runs of a class lie; those of the others are the file's.
/// The rest of the band is the model's error: what is missing until it holds 90 % of the held-out runs of a class, of
/// those whose source was held out where they are enough, else half as much again; drawn to the usual one where fewer
/// than three sources tell (as if two more had said 17 %), and the file's where nothing was held out. UserError if
/// nothing can be used; Stopped if asked to end before the fit begins.
Calibration calibrate(const CalibrateQuestion& question, const Catalog& catalog, const Stop& stop = {});

}  // namespace scalecalc
