// `scalecalc calibrate FILE... --hw HW`: efficiency coefficients of a chip from measured runs.
#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/measurement_files.h"
#include "cli/outputs.h"
#include "cli/session.h"
#include "cli/sheet_command.h"
#include "config/yaml_writer.h"
#include "report/calibrate_sheet.h"

namespace scalecalc::cli {
namespace {

constexpr CountRange kFoldRange{2, 100};

constexpr std::array kFlags{
    Flag{"--hw", 0, FlagKind::kValue, "HW", "the chip to fit: a catalog name or a YAML file", "h100-sxm"},
    Flag{"--family", 0, FlagKind::kValue, "NAME", "instead of a chip: factors for all chips of an efficiency family",
         "nvidia"},
    Flag{"--stack", 0, FlagKind::kValue, "NAME",
         "the software stack to fit: rows of its frameworks count (default: the chip's usual one)", "nemo"},
    kOnlyFlag,
    Flag{"--folds", 0, FlagKind::kValue, "N",
         "folds of whole sources for the error on unseen runs (default 5; serving: all)", "5"},
    Flag{"--date", 0, FlagKind::kValue, "DATE", "date to write into the provenance", "2026-11"},
    Flag{"--dump-yaml", 0, FlagKind::kSwitch, "", "print the efficiency block of a hardware file and nothing else", ""},
};

constexpr std::string_view kExamples =
    "  scalecalc calibrate runs.yaml --hw h100-sxm\n"
    "  scalecalc calibrate runs.yaml --hw h100-sxm --stack nemo --date 2026-11 --dump-yaml\n"
    "  scalecalc calibrate configs/measurements/serve.yaml --stack vllm\n";

Calibration fit(const Arguments& arguments, MeasuredRows read, const Catalog& catalog,
                const std::function<bool()>& stop) {
  FlagReader reader(arguments);
  CalibrateQuestion q;
  const auto hardware = arguments.value("--hw");
  q.family = arguments.value("--family").value_or("");
  if (hardware && !q.family.empty()) reader.problem("--hw and --family both say what to fit", "keep one of them");
  if (!hardware && q.family.empty()) {
    reader.problem("--hw is missing: which chip?", "a catalog name such as h100-sxm, a YAML file, or --family nvidia");
  }
  q.hardware = hardware.value_or("");
  q.folds = static_cast<std::size_t>(reader.count("--folds", kFoldRange).value_or(5));
  q.date = arguments.value("--date").value_or("");
  q.stack = arguments.value("--stack").value_or("");
  q.only = row_filters(reader, arguments);
  reader.finish();
  q.files = join(read.files, ", ");
  q.rows = std::move(read.rows);
  return calibrate(q, catalog, stop);
}

ServeCalibration fit_serving(const Arguments& arguments, MeasuredRows read, const Catalog& catalog,
                             const std::function<bool()>& stop) {
  FlagReader reader(arguments);
  ServeCalibrateQuestion q;
  if (const auto folds = reader.count("--folds", kFoldRange)) q.folds = static_cast<std::size_t>(*folds);
  q.date = arguments.value("--date").value_or("");
  q.hardware = arguments.value("--hw").value_or("");
  q.stack = arguments.value("--stack").value_or("");
  q.only = serve_row_filters(reader, arguments);
  reader.finish();
  q.files = join(read.files, ", ");
  q.rows = std::move(read.serving);
  return calibrate_serving(q, catalog, stop);
}

/// The block that was fitted, for the file it goes into.
ConfigNode block_of(const Arguments& arguments, const Catalog& catalog, const std::function<bool()>& stop) {
  MeasuredRows read = read_measurement_files(arguments.positionals(), catalog);
  if (read.serving.empty()) return fit(arguments, std::move(read), catalog, stop).block;
  const ServeCalibration found = fit_serving(arguments, std::move(read), catalog, stop);
  if (found.sets.size() > 1) {
    throw UserError(fmt::format("{} sets were fitted, and a file takes one at a time", found.sets.size()),
                    "name the chip and the engine: --hw h100-sxm --stack vllm");
  }
  return found.sets.front().block;
}

Sheet sheet_of(const Arguments& arguments, const Catalog& catalog, const std::function<bool()>& stop) {
  MeasuredRows read = read_measurement_files(arguments.positionals(), catalog);
  const std::vector<std::string> files = read.files;
  if (read.serving.empty()) return calibrate_sheet(fit(arguments, std::move(read), catalog, stop), files);
  return calibrate_sheet(fit_serving(arguments, std::move(read), catalog, stop), files);
}

ExitCode run_calibrate(const Arguments& arguments, Environment& env) {
  if (arguments.has("--dump-yaml")) {
    const Session session = read_session(arguments, env);
    write_result(env.out, write_yaml(block_of(arguments, Catalog(session.config_directories, session.remembered),
                                              env.interrupted)));
  } else {
    answer_with_sheet(arguments, env,
                      [&](const Catalog& catalog) { return sheet_of(arguments, catalog, env.interrupted); });
  }
  return env.interrupted && env.interrupted() ? ExitCode::kInterrupted : ExitCode::kAnswered;
}

}  // namespace

const Command& calibrate_command() {
  static const Command kCalibrate{"calibrate",
                                  "Efficiency coefficients of a chip fitted to measured runs, with held-out error.",
                                  "[FILE.yaml...] --hw HW [flags]",
                                  kExamples,
                                  "",
                                  kFlags,
                                  run_calibrate};
  return kCalibrate;
}

}  // namespace scalecalc::cli
