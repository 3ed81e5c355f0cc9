// Which run of one's own job to measure next, so that predictions of that job become as certain as they can.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "calibrate/coefficient_fit.h"

namespace scalecalc {

/// A run changed in one respect.
struct NearRun {
  std::string change;  ///< "tp 4 in place of 2"
  Measurement row;
};

/// Degrees doubled and halved, data ranks making up for it; microbatch, sequence at the same tokens, batch; half of the
/// chips; recomputation. `layout` is what the run had where the row does not say. Whether they can run is not looked
/// at.
std::vector<NearRun> runs_near(const Measurement& row, const Layout& layout);

struct NextRun {
  std::string near;    ///< the row it is a change of; empty of a collective by itself
  std::string change;  ///< what differs, or what to run
  Layout layout;
  std::int64_t chips = 0;
  double seconds = 0;  ///< that it is predicted to take
  /// Half of the 90 % band that the coefficients leave, over all runs looked at: once those before it are measured, and
  /// expected with this one too.
  double band_before = 0, band_after = 0;
};

/// The run that narrows the band most, then the one that does once that is measured, and so on: of those near the
/// measured ones that can be launched and fit, and all-reduces of one's own chips. Asked to end: none.
std::vector<NextRun> next_runs(const CoefficientFit& fit, const Factors& factors, const Posterior& posterior,
                               const std::vector<const StepObservation*>& measured, const Catalog& catalog,
                               std::size_t most, const Stop& stop);

}  // namespace scalecalc
