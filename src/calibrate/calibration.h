// What fits of every kind share: which rows are held out together, what a fit is worth on rows it has not seen, and how
// wide the errors of its coefficients must be. How coefficients are found differs by nature. A chip's training steps
// hang on a dozen of them, within bounds and with kinks where an overlap hides a transfer, so that a solver without
// derivatives finds them (BOBYQA, minimize.h). Serving figures of all chips and engines are fitted at once over
// hundreds of factors, each near none unless rows say otherwise: only slopes reach that many (ridge_fit).
#pragma once

#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/stop.h"
#include "config/node.h"
#include "spec/hardware_spec.h"
#include "validate/kernel_measurement.h"
#include "validate/validation.h"

namespace scalecalc {

// Efficiency coefficients by name, for fitting and for writing them down.

/// A coefficient that measured steps can tell something about, and the range it must stay in.
struct CoefficientSlot {
  std::string path;  ///< as in the file: "matmul.bf16", "link.scale_up"
  double least = 0, most = 1;
  std::vector<Coefficient Efficiency::*> fields;  ///< more than one move together
  std::size_t format = kDTypeCount;               ///< of a matmul coefficient
  std::size_t as_well = kDTypeCount;              ///< another format that moves with it

  double value(const Efficiency& efficiency) const;
  double error(const Efficiency& efficiency) const;
  /// Sets the value, and the error if it is not below zero; fields that move together keep their ratio.
  void set(Efficiency& efficiency, double value, double error = -1) const;
};

/// Matmul fractions of every format, attention, HBM, links, overlaps, expert matmuls and balance, overheads.
const std::vector<CoefficientSlot>& fitted_slots();

/// A serving coefficient, under `serving:` in the file.
struct ServeSlot {
  const char* path;
  Coefficient ServingEfficiency::*field;
  double least = 0, most = 1;
  double stray = 0.1;  ///< standard deviation of the logarithm of an engine's or chip's factor, expected
};

/// Those that measured serving rows tell apart; the rest keep the kernels' values of the family.
const std::vector<ServeSlot>& serve_slots();

struct WrittenCoefficient {
  std::string path;
  double value = 0, error = 0;
  bool factor = false;  ///< on the chip's, whatever the rest of the block is
};

/// By class of run; see Efficiency::model_error.
using ModelErrors = decltype(Efficiency::model_error);

/// An `efficiency:` block for a hardware file with the coefficients of one stack, all from one source; or, as
/// `factors`, the `stacks:` of a family's file. Model errors of 0 are not written.
ConfigNode stack_block(const std::vector<WrittenCoefficient>& coefficients, const std::string& stack,
                       const std::string& source, bool factors, const ModelErrors& model_errors = {});

/// Share of rows that a coefficient's stated error shall enclose, and the largest such error.
inline constexpr double kWantedCoverage = 0.9;
inline constexpr double kLargestError = 0.95;

template <class Kind>
struct CalibrateQuestionOf {
  std::vector<typename Kind::Measured> rows;
  /// Catalog name or path of the chip to fit; rows of other chips of its family shape the values it leans on. Serving
  /// fits all chips: those to tell of, all if empty.
  std::string hardware;
  std::string family;  ///< of training, instead of a chip: factors for all chips of the family
  /// By its name or a framework's; rows of others are left aside. Empty: the chip's usual one. Serving as `hardware`.
  std::string stack;
  std::vector<RowFilter> only;
  std::optional<std::size_t> folds;        ///< absent: five, or for serving one for each source
  std::string date;                        ///< for the provenance; empty: not said
  std::string files;                       ///< for the provenance: where the rows were read
  std::vector<KernelMeasurement> kernels;  ///< of training, of the chip: beside the rows, never held out
  std::optional<std::size_t> next_runs;    ///< of training: how many to name; absent: three where the runs are few
};

/// One row's errors, by the coefficients that FitErrors says. Those it was not held out of have no `outside`.
template <class Kind>
struct FittedOf {
  typename Kind::Measured row;
  double measured = 0;  ///< seconds, or the row's figure
  std::optional<double> before, inside, outside, baseline;
  bool in_band = false;   ///< of the fit that had not seen it, with the errors written down
  bool by_model = false;  ///< held out with the runs of its model, not of its source
};

struct FitErrors {
  Errors before;    ///< with the file's coefficients
  Errors inside;    ///< of the fit to all rows
  Errors outside;   ///< each row by the fit that had not seen it; as inside if nothing was held out
  Errors baseline;  ///< of what the fit must beat, as far as known without the row's part
};

template <class Kind>
FitErrors fit_errors(const std::vector<FittedOf<Kind>>& rows) {
  const auto over = [&](auto which, const Errors& otherwise) {
    std::vector<double> errors;
    for (const FittedOf<Kind>& row : rows) {
      if (row.*which) errors.push_back(*(row.*which));
    }
    return errors.empty() ? otherwise : errors_of(errors);
  };
  using Fitted = FittedOf<Kind>;
  const Errors inside = over(&Fitted::inside, {});
  return {over(&Fitted::before, {}), inside, over(&Fitted::outside, inside), over(&Fitted::baseline, inside)};
}

/// By how much less runs of a part held out err than by what a fit must beat: the mean over parts of the mean over
/// their rows, and its standard error (none of a single part).
struct Gain {
  double mean = 0;
  std::optional<double> standard_error;
  bool beyond_chance() const { return standard_error && mean > *standard_error; }
};
/// Differences of errors by part.
Gain gain_of(const std::map<std::string, std::vector<double>>& parts);

template <class Kind>
struct FitReportOf : FitErrors {
  bool converged = true;  ///< false: interrupted before the fit to all rows was at its best
  std::vector<FittedOf<Kind>> rows;
  std::vector<SkippedOf<Kind>> skipped;
  std::optional<double> coverage;  ///< of the held-out rows, within the errors written down
};

/// Loss of a residual that counts linearly beyond `limit`, so that one odd row cannot turn a fit.
inline double huber(double residual, double limit) {
  const double size = std::abs(residual) / limit;
  return size <= 1 ? size * size / 2 : size - 0.5;
}

struct Folds {
  std::map<std::string, std::size_t> of_part;
  std::size_t count = 0;
};
/// Whole parts (of so many rows) to at most so many folds: the largest first, each to the emptiest.
Folds deal(const std::map<std::string, std::size_t>& sizes, std::size_t most);

/// "fitted 2026-11 to train.yaml: 12 runs of 3 sources".
std::string fitted_to(const std::string& date, const std::string& files, std::size_t runs, std::size_t sources);

/// ln of what coefficients are multiplied by.
using Factors = std::vector<double>;

/// A fit and its cross-validation over rows by their number. What a fit is, the kinds say.
class CrossFit {
 protected:
  explicit CrossFit(Stop stop) : stop_(std::move(stop)) {}
  ~CrossFit() = default;

  /// Fit to the rows that are not in `fold`; to all where there is none. Asked to end: the best until then.
  virtual Factors fit(std::optional<std::size_t> fold) = 0;
  /// The row's starting coefficients times the factors.
  virtual Efficiency at(std::size_t row, const Factors& factors) const = 0;
  /// Whether the row lies in the band of the fit that has not seen it, its errors times `scale`.
  virtual bool in_band(std::size_t row, double scale) const = 0;
  /// Predicted over measured time, minus 1.
  virtual double error(std::size_t row, const Efficiency& efficiency) const = 0;

  double error_by(std::size_t row, const Factors& factors) const { return error(row, at(row, factors)); }

  /// Fits everything, then everything but each of the folds; `fold_of` has one for every row where there are any.
  /// Asked to end: the folds fitted until then, and the best known fit to all.
  void cross_fit(std::vector<std::size_t> fold_of, std::size_t folds);
  /// To be polled by `fit`, and while rows are read: Stopped, as nothing is known.
  const Stop& stop() const { return stop_; }
  const Factors& fitted() const { return fitted_; }
  const std::vector<Factors>& blind() const { return blind_; }  ///< one for each fold; fewer if stopped
  std::size_t fold_of(std::size_t row) const { return fold_of_[row]; }
  bool held_out(std::size_t row) const { return !blind_.empty() && fold_of_[row] < blind_.size(); }

  /// The smallest factor on the errors with which the band holds the wanted share of held-out rows; 1 if nothing was
  /// held out.
  double scale_of_errors(int halvings) const;

  /// Every row's errors and those over all; `out` has the rows with their baselines.
  template <class Kind>
  void report_errors(FitReportOf<Kind>& out, const Factors& none) const {
    out.converged = converged_;
    for (std::size_t i = 0; i < out.rows.size(); ++i) {
      out.rows[i].before = error_by(i, none);
      out.rows[i].inside = error_by(i, fitted_);
      if (held_out(i)) out.rows[i].outside = error_by(i, blind_[fold_of_[i]]);
    }
    static_cast<FitErrors&>(out) = fit_errors(out.rows);
  }

  template <class Kind>
  void report_bands(FitReportOf<Kind>& out, double scale) const {
    if (blind_.empty()) return;
    for (std::size_t i = 0; i < out.rows.size(); ++i) out.rows[i].in_band = in_band(i, scale);
    out.coverage = coverage_of(scale);
  }

 private:
  double coverage_of(double scale) const;

  std::vector<std::size_t> fold_of_;
  Stop stop_;
  bool converged_ = true;
  Factors fitted_;
  std::vector<Factors> blind_;
};

}  // namespace scalecalc
