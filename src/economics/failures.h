// A run that saves its state every so often and starts again from the last copy when something fails. Failures come at
// a constant rate (exponential times between them), also while the job restarts.
//
// Sources: Young 1974, "A first order approximation to the optimum checkpoint interval", CACM 17(9); Daly 2006, "A
// higher order estimate of the optimum checkpoint interval for restart dumps", FGCS 22(3). The formulas are derived in
// docs/model.md, "The whole run".
#pragma once

#include "base/scalar.h"

namespace scalecalc {

template <class R>
struct CheckpointedRun {
  SecondsOf<R> work{R(0.0)};      ///< the steps alone
  SecondsOf<R> interval{R(1.0)};  ///< work between two checkpoints
  SecondsOf<R> blocked{R(0.0)};   ///< how long the job waits for a checkpoint
  SecondsOf<R> behind{R(0.0)};    ///< and how much later the copy is safe, at most an interval
  SecondsOf<R> restart{R(0.0)};   ///< from a failure until the job works again
  SecondsOf<R> mtbf{R(1.0)};      ///< of the whole job
};

/// What is added to the work, in the mean.
template <class R>
struct FailureLosses {
  SecondsOf<R> checkpoints{R(0.0)};
  SecondsOf<R> rework{R(0.0)};    ///< done and lost: since the last safe copy
  SecondsOf<R> restarts{R(0.0)};  ///< also those that fail themselves
  SecondsOf<R> total() const { return checkpoints + rework + restarts; }
};

/// [RENEWAL] Expected wall time M e^((R+w)/M) (e^((t+b)/M) - 1) T / t of T seconds of work, in parts; M mtbf, R
/// restart, w behind, t interval, b blocked. Daly 2006 for w = 0; exact for any t, b, R, M and w up to t + b.
template <class R>
FailureLosses<R> failure_losses(const CheckpointedRun<R>& run);

/// Work between checkpoints that minimises [RENEWAL]: M (1 + W0(-e^(-1-b/M))), with W0 Lambert's function. Seconds.
double optimal_interval(double mtbf, double blocked);
/// sqrt(2 b M), Young 1974.
double young_interval(double mtbf, double blocked);
/// sqrt(2 b M) (1 + sqrt(b / 2M) / 3 + (b / 2M) / 9) - b below b = 2M, M beyond: Daly 2006.
double daly_interval(double mtbf, double blocked);

}  // namespace scalecalc
