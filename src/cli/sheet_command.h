// What the small commands share: their flags for hardware, overrides and working, and the way from a Sheet to the
// outputs asked for. docs/howto/add-command.md shows a whole command.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "cli/environment.h"
#include "cli/flag_reader.h"
#include "cli/log.h"
#include "cli/options.h"
#include "cli/outputs.h"
#include "config/catalog.h"
#include "report/render.h"
#include "report/sheet.h"
#include "spec/hardware_spec.h"
#include "spec/load.h"

namespace scalecalc::cli {

inline constexpr Flag kHwFlag{"--hw", 0, FlagKind::kValue, "HW", "hardware: a catalog name or a YAML file", "tpu-v5p"};
inline constexpr Flag kSetFlag{
    "--set",
    0,
    FlagKind::kRepeatable,
    "KEY=VALUE",
    "replace one field of the hardware (hw.) or the model (model.), such as hw.hbm.bandwidth=5TB/s",
    "hw.hbm.bandwidth=5TB/s"};
inline constexpr Flag kAssumeFlag{
    "--assume",
    0,
    FlagKind::kValue,
    "FAMILY",
    "read a Hugging Face config.json as a model of this family (default: the one it names)",
    "llama"};
/// How a collective's time is counted.
inline constexpr Flag kConventionFlag{
    "--convention",
    0,
    FlagKind::kValue,
    "book|first-order|exact",
    "book (default): rings drop (N-1)/N, switches keep it and have no latency; first-order: dropped everywhere; exact: "
    "kept everywhere, with latencies, as train computes",
    "exact"};
inline constexpr Flag kInNetworkFlag{"--in-network",
                                     0,
                                     FlagKind::kValue,
                                     "auto|on|off",
                                     "switches reduce (SHARP); auto (default): where the hardware file says so",
                                     "on"};
inline constexpr Flag kExplainFlag{
    "--explain", 0, FlagKind::kSwitch, "", "the formula behind each figure, with its numbers", ""};

/// Opens the outputs, calls `answer`, writes what it returns in every format asked for, says warnings on standard
/// error when nobody reads a table.
ExitCode answer_with_sheet(const Arguments& arguments, Environment& env,
                           const std::function<Sheet(const Catalog&)>& answer);

std::string render_sheet(const Sheet& sheet, OutputFormat format, const TextOptions& text, bool explain);

/// What a table would have said, for those who read something else.
void say_warnings(Log& log, const Sheet& sheet);

/// The hardware of --hw with --set hw.KEY=VALUE applied. UserError if --hw is missing, or, unless allowed, if the file
/// leaves figures unpublished.
HardwareSpec hardware_asked_for(const Arguments& arguments, const Catalog& catalog,
                                Unpublished unpublished = Unpublished::kRefused);

/// The values of a flag that draws a curve (base/sweep.h), all above zero; nothing if it was not given.
std::optional<std::vector<double>> sweep_flag(FlagReader& reader, const Arguments& arguments, std::string_view flag,
                                              UnitKind kind);

/// One assumption for each --set, so that no answer hides what was changed.
void note_sets(const Arguments& arguments, std::vector<Assumption>& assumptions);

}  // namespace scalecalc::cli
