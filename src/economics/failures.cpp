// Computes what failures and checkpoints cost a run, and the best interval between checkpoints.
#include "economics/failures.h"

#include <cmath>

namespace scalecalc {

template <class R>
FailureLosses<R> failure_losses(const CheckpointedRun<R>& run) {
  static constexpr std::string_view kDaly = "Daly 2006; docs/model.md [RENEWAL]";
  const R count = named(run.work / run.interval, "checkpoints written", "work / interval");
  const SecondsOf<R> segment = named(run.interval + run.blocked, "interval and checkpoint", "t + b");
  // Working time until a copy is safe, with all that is lost meanwhile: every failure goes back to the last safe copy,
  // and the first copy after it takes `behind` longer.
  R attempts = expm1(R(segment / run.mtbf));
  if (value_of(run.behind) > 0) attempts = attempts * (expm1(R(run.behind / run.mtbf)) + R(1.0));
  const SecondsOf<R> worked = named(run.mtbf * attempts, "expected working time a checkpoint", kDaly);
  FailureLosses<R> out;
  out.checkpoints = named(run.blocked * count, "time in checkpoints", "checkpoints written x time the job waits");
  out.rework = named(max(SecondsOf<R>(R(0.0)), (worked - segment) * count), "work done again", kDaly);
  out.restarts = named(worked * count * expm1(R(run.restart / run.mtbf)), "time in restarts",
                       "working time x (e^(restart / MTBF) - 1): restarts fail too");
  return out;
}

template FailureLosses<double> failure_losses(const CheckpointedRun<double>&);
template FailureLosses<Dual> failure_losses(const CheckpointedRun<Dual>&);
template FailureLosses<Traced> failure_losses(const CheckpointedRun<Traced>&);

double optimal_interval(double mtbf, double blocked) {
  // With x = t / M and d = b / M the derivative is zero where (1 - x) e^(x + d) = 1, which falls from e^d at 0 to 0 at
  // 1; in logarithms log(1 - x) + x + d = 0.
  const double d = blocked / mtbf;
  double low = 0;
  double high = 1;
  constexpr int kHalvings = 200;
  for (int i = 0; i < kHalvings && low < high; ++i) {
    const double middle = low + (high - low) / 2;
    if (middle == low || middle == high) break;
    (std::log1p(-middle) + middle + d > 0 ? low : high) = middle;
  }
  return mtbf * low;
}

double young_interval(double mtbf, double blocked) { return std::sqrt(2 * blocked * mtbf); }

double daly_interval(double mtbf, double blocked) {
  if (blocked >= 2 * mtbf) return mtbf;
  const double ratio = blocked / (2 * mtbf);
  return std::sqrt(2 * blocked * mtbf) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - blocked;
}

}  // namespace scalecalc
