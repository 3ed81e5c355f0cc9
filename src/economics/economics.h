// The whole run of a plan: how long its steps take together, what failures, checkpoints, restarts and slow chips add,
// what is paid and drawn meanwhile. One text, read as numbers and, for --explain, as formulas.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/explained.h"
#include "economics/failures.h"
#include "economics/power.h"
#include "economics/run_question.h"

namespace scalecalc {

struct RunInput {
  RunQuestion question;
  double tokens = 0, step_tokens = 0, step_s = 0;
  double compute_s = 0;  ///< of the step: what a slow chip makes longer
  double mfu = 0;
  double chips = 1, chips_per_host = 1;
  double replicas = 1;              ///< data ranks
  double parameters = 0;            ///< of the model, MTP modules included
  double parameter_bytes = 0;       ///< saved of each
  std::optional<double> host_link;  ///< bytes/s of one chip to its host
  std::string host_link_source;
  std::optional<double> storage;  ///< bytes/s of all hosts together
  std::string storage_source;
  double restart_s = 0;  ///< before the checkpoint is loaded
  std::string restart_source;
  std::optional<double> usd_per_chip_hour;
  std::string price_source;
  std::optional<PowerInput> power;
};

/// Time and what it costs, in any reading.
template <class R>
struct RunReading {
  SecondsOf<R> ideal{R(0.0)}, straggling{R(0.0)}, starving{R(0.0)}, waiting{R(0.0)}, total{R(0.0)};
  SecondsOf<R> steps_s() const { return ideal + straggling + starving; }
  FailureLosses<R> losses;
  SecondsOf<R> mtbf{R(0.0)}, restart{R(0.0)};
  BytesOf<R> checkpoint_bytes{R(0.0)};
  SecondsOf<R> to_host{R(0.0)}, to_storage{R(0.0)};  ///< of one checkpoint
  CheckpointedRun<R> saved;
  R steps{0.0}, chip_hours{0.0}, interruptions{0.0};
  std::optional<R> cost_usd;
  std::optional<ChipDraw<R>> draw;
  std::optional<JoulesOf<R>> energy;
};

/// UserError if failures come faster than the job gets from one checkpoint to the next, so that it never ends.
template <class R>
RunReading<R> read_run(const Reader<R>& reader, const RunInput& in);

struct SpareFigures {
  std::int64_t hosts = 0;
  double chips = 0;
  double repair_s = 0;
  double chance_none_left = 0;  ///< that a failure finds no spare
  bool elastic = false;
  std::optional<double> other_time_s;  ///< the run under the other policy
};

struct RunEconomics {
  double ideal_time_s = 0;
  std::vector<std::pair<std::string, double>> time_s;  ///< cause and seconds; sums to the run's time
  double goodput = 1;                                  ///< ideal time over the run's time
  double effective_mfu = 0;
  double straggler_share = 0;  ///< how much longer a step takes
  // Absent parts: failures are not counted.
  double mtbf_s = 0, interruptions = 0, restart_s = 0;
  double checkpoint_bytes = 0, checkpoint_blocked_s = 0, checkpoint_behind_s = 0, load_s = 0;
  double interval_s = 0, optimal_interval_s = 0, young_interval_s = 0, daly_interval_s = 0;
  double checkpoints = 0;
  double storage_bytes_per_s = 0;      ///< that a checkpoint an interval needs in the mean
  double data_bytes_per_s = 0;         ///< read for the tokens of a step that waits for none
  std::optional<double> storage_rate;  ///< what storage gives
  std::optional<SpareFigures> spares;
};

struct RunPower {
  PowerBasis basis = PowerBasis::kRated;
  double chip_w = 0, idle_chip_w = 0, host_w = 0;  ///< a chip at work and at rest, and its part of the host
  double pue = 1;
  double facility_w = 0;  ///< while the job works, spares included
  double energy_per_token_j = 0;
  std::optional<double> carbon_g_per_kwh, carbon_kg;
};

struct RunFigures {
  double tokens = 0, steps = 0, time_s = 0, chip_hours = 0;
  std::optional<double> cost_usd;
  std::optional<double> energy_j;
  std::optional<RunEconomics> economics;  ///< failures, slow chips or storage are counted, or it waits for data
  std::optional<RunPower> power;          ///< the chip's is known
};

RunFigures run_figures(const RunInput& in);
/// The formulas behind time, cost and energy.
std::vector<ExplainSection> explain_run(const RunInput& in);

}  // namespace scalecalc
