#include "cli/run_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

namespace scalecalc::cli {
namespace {

constexpr CountRange kSpareRange{0, 1'000'000};

constexpr std::array kFlags{
    Flag{"--mtbf", 0, FlagKind::kValue, "TIME",
         "mean time between failures of a chip, its part of the host included: failures, checkpoints and restarts are "
         "counted",
         "50000h"},
    Flag{"--mtbf-node", 0, FlagKind::kValue, "TIME", "the same of a host with its chips", "6000h"},
    Flag{"--checkpoint", 0, FlagKind::kValue, "blocking|async",
         "whether the job waits until a checkpoint is in storage (default), or only until it has left the chips",
         "async"},
    Flag{"--checkpoint-interval", 0, FlagKind::kValue, "TIME",
         "work between checkpoints (default: what makes the run shortest)", "30min"},
    Flag{"--storage-bandwidth", 0, FlagKind::kValue, "RATE",
         "of the whole job to where checkpoints are kept (default: the hardware file's hosts together)", "2TB/s"},
    Flag{"--restart-time", 0, FlagKind::kValue, "TIME",
         "from a failure until the checkpoint is loaded: detect, replace, start (default 10min)", "10min"},
    Flag{"--spares", 0, FlagKind::kValue, "N", "hosts that wait to replace failed ones, and are paid for", "16"},
    Flag{"--repair-time", 0, FlagKind::kValue, "TIME", "until a failed host is back (default: there is always another)",
         "24h"},
    Flag{"--elastic", 0, FlagKind::kSwitch, "",
         "with no spare left, go on with fewer data ranks instead of waiting for a repair", ""},
    Flag{"--straggler", 0, FlagKind::kValue, "SHARE", "a step takes this much longer than on chips as rated", "5%"},
    Flag{"--chip-spread", 0, FlagKind::kValue, "SHARE",
         "standard deviation of the speed of chips: computing waits for the slowest of them", "1%"},
    Flag{"--token-bytes", 0, FlagKind::kValue, "N", "bytes read from storage for a token (default 4)", "4"},
};

constexpr std::array kPowerFlags{
    Flag{"--power", 0, FlagKind::kValue, "rated|servers|activity",
         "energy of chips at their rated power (default), of their hosts too, or by what the chips do", "activity"},
    Flag{"--pue", 0, FlagKind::kValue, "FACTOR", "power of the facility over that of its machines (default 1)", "1.1"},
    Flag{"--carbon", 0, FlagKind::kValue, "G/KWH", "carbon intensity of the electricity, for CO2 of the run",
         "400g/kWh"},
};

/// Flags that say more about failures, and those about repairs.
constexpr std::array<std::string_view, 7> kOfFailures{
    "--checkpoint", "--checkpoint-interval", "--storage-bandwidth", "--restart-time", "--spares", "--repair-time",
    "--elastic"};
constexpr std::array<std::string_view, 2> kOfRepairs{"--spares", "--elastic"};

void refuse_lonely(FlagReader& reader, const Arguments& arguments) {
  const bool failures = arguments.has("--mtbf") || arguments.has("--mtbf-node");
  for (const std::string_view flag : kOfFailures) {
    if (failures || !arguments.has(flag)) continue;
    reader.problem(fmt::format("{} has no meaning without failures", flag),
                   "say how often a chip fails: --mtbf 50000h");
  }
  for (const std::string_view flag : kOfRepairs) {
    if (!failures || !arguments.has(flag) || arguments.has("--repair-time")) continue;
    reader.problem(fmt::format("{} needs --repair-time: how long is a failed host away?", flag),
                   "for example --repair-time 24h");
  }
}

void refuse_both(FlagReader& reader, const Arguments& arguments, std::string_view a, std::string_view b,
                 std::string_view what) {
  if (arguments.has(a) && arguments.has(b)) {
    reader.problem(fmt::format("{} and {} both say {}", a, b, what), "give one of them");
  }
}

void read_shares(FlagReader& reader, RunQuestion& out) {
  out.straggler = reader.fraction("--straggler");
  out.chip_spread = reader.fraction("--chip-spread");
  constexpr double kWidest = 0.1;  // the slowest of millions would stand still
  if (out.chip_spread && *out.chip_spread > kWidest) {
    reader.problem("--chip-spread above 10% leaves the slowest of many chips standing still",
                   "one standard deviation, such as 1%; or --straggler for the whole step");
  }
}

}  // namespace

std::span<const Flag> power_flags() { return kPowerFlags; }

std::span<const Flag> run_flags() {
  static const std::vector<Flag> kAll = [] {
    std::vector<Flag> out(kFlags.begin(), kFlags.end());
    out.insert(out.end(), kPowerFlags.begin(), kPowerFlags.end());
    return out;
  }();
  return kAll;
}

bool is_run_flag(std::string_view name) {
  const std::span<const Flag> all = run_flags();
  return std::any_of(all.begin(), all.end(), [&](const Flag& flag) { return flag.name == name; });
}

PowerTerms read_power_terms(FlagReader& reader) {
  PowerTerms out;
  if (const auto word = reader.word("--power", kPowerBasisNames)) out.basis = static_cast<PowerBasis>(*word);
  out.pue = reader.positive("--pue", UnitKind::kNumber);
  if (out.pue && *out.pue < 1) {
    reader.problem("--pue below 1: a facility draws at least what its machines do", "a factor such as 1.1");
  }
  out.carbon_g_per_kwh = reader.positive("--carbon", UnitKind::kGramsPerKwh);
  return out;
}

RunQuestion read_run_question(FlagReader& reader, const Arguments& arguments) {
  RunQuestion out;
  out.mtbf_chip_s = reader.positive("--mtbf", UnitKind::kSeconds);
  out.mtbf_node_s = reader.positive("--mtbf-node", UnitKind::kSeconds);
  if (const auto word = reader.word("--checkpoint", kCheckpointModeNames)) {
    out.checkpoint = static_cast<CheckpointMode>(*word);
  }
  out.checkpoint_interval_s = reader.positive("--checkpoint-interval", UnitKind::kSeconds);
  out.storage_bandwidth = reader.positive("--storage-bandwidth", UnitKind::kBytesPerSecond);
  out.restart_s = reader.positive("--restart-time", UnitKind::kSeconds);
  out.spares = reader.count("--spares", kSpareRange).value_or(0);
  out.repair_s = reader.positive("--repair-time", UnitKind::kSeconds);
  out.elastic = arguments.has("--elastic");
  read_shares(reader, out);
  out.token_bytes = reader.positive("--token-bytes", UnitKind::kNumber).value_or(out.token_bytes);
  out.power = read_power_terms(reader);
  refuse_both(reader, arguments, "--mtbf", "--mtbf-node", "how often something fails");
  refuse_both(reader, arguments, "--straggler", "--chip-spread", "how much slow chips cost");
  refuse_lonely(reader, arguments);
  return out;
}

}  // namespace scalecalc::cli
