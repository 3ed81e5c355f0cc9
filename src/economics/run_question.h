// What the asker says about the whole run beside its steps: what fails, how it is saved, what is paid for power. What
// is absent is either not counted or takes a default that the answer names (train/run_terms.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace scalecalc {

enum class CheckpointMode : std::uint8_t {
  kBlocking,  ///< the job waits until the copy is in storage
  kAsync,     ///< it waits until the copy has left the chips; the host writes it to storage meanwhile
};
inline constexpr std::array<std::string_view, 2> kCheckpointModeNames{"blocking", "async"};

enum class PowerBasis : std::uint8_t {
  kRated,     ///< every chip at its rated power all the time, nothing else
  kServers,   ///< and the rest of its host at the host's rated power
  kActivity,  ///< chips by what the step does, hosts as measured where a measurement is known
};
inline constexpr std::array<std::string_view, 3> kPowerBasisNames{"rated", "servers", "activity"};

struct PowerTerms {
  PowerBasis basis = PowerBasis::kRated;
  std::optional<double> pue;  ///< power of the facility over that of its machines
  std::optional<double> carbon_g_per_kwh;
};

struct RunQuestion {
  std::optional<double> mtbf_chip_s;  ///< mean time between failures of one chip, whatever of its host fails included
  std::optional<double> mtbf_node_s;  ///< or of one host
  CheckpointMode checkpoint = CheckpointMode::kBlocking;
  std::optional<double> checkpoint_interval_s;  ///< absent: the one that makes the run shortest
  std::optional<double> storage_bandwidth;      ///< bytes/s of the whole job
  std::optional<double> restart_s;              ///< from a failure to the start of loading the checkpoint
  std::int64_t spares = 0;                      ///< hosts that wait to replace others
  std::optional<double> repair_s;               ///< of a host; absent: there is always another
  bool elastic = false;                         ///< with no spare left: fewer data ranks; otherwise wait for a repair
  std::optional<double> straggler;              ///< a step takes this share longer
  std::optional<double> chip_spread;            ///< standard deviation of the speed of chips, over its mean
  double token_bytes = 4;                       ///< read from storage for each token
  PowerTerms power;

  bool counts_failures() const { return mtbf_chip_s || mtbf_node_s; }
  bool counts_stragglers() const { return straggler || chip_spread; }
  /// What a step waits for beside its own work is asked about.
  bool counts_losses() const { return counts_failures() || counts_stragglers() || storage_bandwidth; }
};

}  // namespace scalecalc
