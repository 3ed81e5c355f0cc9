// Serving coefficients of every measured chip and engine, fitted together, and what the fit is worth on sources it has
// not seen.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/calibration.h"
#include "validate/serve_validation.h"

namespace scalecalc {

struct ServeCalibrateQuestion {
  std::vector<ServeMeasurement> rows;
  std::vector<RowFilter> only;
  std::optional<std::size_t> folds;  ///< absent: one for each source
  std::string date;                  ///< for the provenance; empty: not said
  std::string files;                 ///< for the provenance: where the rows were read
};

/// One row's errors: by its family's coefficients, by the fit to all rows, by the fit that had not seen it.
struct FittedServing {
  ServeMeasurement row;
  double before = 0, inside = 0, outside = 0, naive = 0;
  bool in_band = false;  ///< of the fit that had not seen it, with the errors written down
};

/// The coefficients of one engine on one chip.
struct ServeSet {
  std::string hardware, stack;
  std::size_t rows = 0, sources = 0;
  FitErrors before, inside, outside;
  std::vector<WrittenCoefficient> coefficients;
  ConfigNode block;  ///< an `efficiency:` block of a hardware file
};

struct ServeCalibration {
  std::vector<FittedServing> rows;
  std::vector<SkippedServing> skipped;
  std::vector<ServeSet> sets;  ///< of rows whose engine is known
  std::size_t folds = 0;
  FitErrors before, inside, outside, naive;
  double coverage = 0;  ///< of the held-out rows, within the errors written down
};

/// Each coefficient of a row is its family's value times a factor of all rows, of the engine, of the family, of the
/// chip and of the engine on the chip. Ridge regression: the factors that make the Huber loss of ln(predicted /
/// measured), plus each factor's squared logarithm in units of how far such factors are expected to stray, least;
/// Gauss-Newton steps. What few rows say little about stays near the values of its engine, chip and family. Sources are
/// held out whole; those of a chip that has no other are held out model by model. Errors are scaled alike until the
/// band holds 90 % of the held-out rows. UserError if no row can be used.
ServeCalibration calibrate_serving(const ServeCalibrateQuestion& question, const Catalog& catalog,
                                   const std::function<bool()>& stop = {});

}  // namespace scalecalc
