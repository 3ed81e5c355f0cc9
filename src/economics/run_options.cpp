// Defines the flags about a whole run and reads them, for all commands that train.
#include "economics/run_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

namespace scalecalc::cli {
namespace {

constexpr CountRange kSpareRange{0, 1'000'000};

constexpr Flag of_failures(const Flag& flag) {
  return flag.needing("--mtbf --mtbf-node", "{} has no meaning without failures",
                      "say how often a chip fails: --mtbf 50000h");
}

constexpr std::array kRunFlags{
    quantity<&RunQuestion::mtbf_chip_s>(
        "--mtbf", UnitKind::kSeconds, "TIME",
        "mean time between failures of a chip, its part of the host included: failures, checkpoints and restarts are "
        "counted",
        "50000h")
        .saying("how often something fails"),
    quantity<&RunQuestion::mtbf_node_s>("--mtbf-node", UnitKind::kSeconds, "TIME", "the same of a host with its chips",
                                        "6000h")
        .saying("how often something fails"),
    of_failures(word<&RunQuestion::checkpoint>(
        "--checkpoint", kCheckpointModeNames,
        "whether the job waits until a checkpoint is in storage (default), or only until it has left the chips")),
    of_failures(quantity<&RunQuestion::checkpoint_interval_s>(
        "--checkpoint-interval", UnitKind::kSeconds, "TIME",
        "work between checkpoints (default: what makes the run shortest)", "30min")),
    quantity<&RunQuestion::storage_bandwidth>(
        "--storage-bandwidth", UnitKind::kBytesPerSecond, "RATE",
        "of the whole job to its data and checkpoints (default: the hardware file's hosts together)", "2TB/s")
        .key("storage_bytes_per_s"),
    of_failures(quantity<&RunQuestion::restart_s>(
        "--restart-time", UnitKind::kSeconds, "TIME",
        "from a failure until the checkpoint is loaded: detect, replace, start (default 10min)", "10min")),
    of_failures(count<&RunQuestion::spares>("--spares", kSpareRange, "N",
                                            "hosts that wait to replace failed ones, and are paid for", "16")),
    of_failures(quantity<&RunQuestion::repair_s>("--repair-time", UnitKind::kSeconds, "TIME",
                                                 "until a failed host is back (default: there is always another)",
                                                 "24h")),
    of_failures(toggle<&RunQuestion::elastic>(
        "--elastic", "with no spare left, go on with fewer data ranks instead of waiting for a repair")),
    share<&RunQuestion::straggler>("--straggler", "a step takes this much longer than on chips as rated", "5%")
        .saying("how much slow chips cost"),
    share<&RunQuestion::chip_spread>(
        "--chip-spread", "standard deviation of the speed of chips: computing waits for the slowest of them", "1%")
        .saying("how much slow chips cost"),
    quantity<&RunQuestion::token_bytes>("--token-bytes", UnitKind::kNumber, "N",
                                        "bytes read from storage for a token (default 4)", "4")
        .needing("--storage-bandwidth --mtbf --mtbf-node --straggler --chip-spread",
                 "{} has no meaning where a step waits for nothing but itself",
                 "say how fast storage is: --storage-bandwidth 2TB/s"),
};

constexpr std::array kPowerFlags{
    word<&PowerTerms::basis>(
        "--power", kPowerBasisNames,
        "energy of chips at their rated power (default), of their hosts too, or by what the chips do"),
    quantity<&PowerTerms::pue>("--pue", UnitKind::kNumber, "FACTOR",
                               "power of the facility over that of its machines (default 1)", "1.1"),
    quantity<&PowerTerms::carbon_g_per_kwh>("--carbon", UnitKind::kGramsPerKwh, "G/KWH",
                                            "carbon intensity of the electricity, for CO2 of the run", "400g/kWh"),
};

}  // namespace

std::span<const Flag> power_flags() { return kPowerFlags; }

std::span<const Flag> run_flags() {
  static const std::vector<Flag> kAll = [] {
    std::vector<Flag> out(kRunFlags.begin(), kRunFlags.end());
    out.insert(out.end(), kPowerFlags.begin(), kPowerFlags.end());
    return out;
  }();
  return kAll;
}

bool is_run_flag(std::string_view name) { return find_flag(run_flags(), name) != nullptr; }

PowerTerms read_power_terms(FlagReader& reader) {
  PowerTerms out;
  reader.read(out);
  if (out.pue && *out.pue < 1) {
    reader.problem("--pue below 1: a facility draws at least what its machines do", "a factor such as 1.1");
  }
  return out;
}

RunQuestion read_run_question(FlagReader& reader, const Arguments& arguments) {
  RunQuestion out;
  reader.read(out);
  out.power = read_power_terms(reader);
  constexpr double kWidest = 0.1;  // the slowest of millions would stand still
  if (out.chip_spread && *out.chip_spread > kWidest) {
    reader.problem("--chip-spread above 10% leaves the slowest of many chips standing still",
                   "one standard deviation, such as 1%; or --straggler for the whole step");
  }
  for (const std::string_view flag : {"--spares", "--elastic"}) {
    if (!out.counts_failures() || !arguments.has(flag) || arguments.has("--repair-time")) continue;
    reader.problem(fmt::format("{} needs --repair-time: how long is a failed host away?", flag),
                   "for example --repair-time 24h");
  }
  return out;
}

}  // namespace scalecalc::cli
