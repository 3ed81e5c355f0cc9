// Runs `scalecalc calibrate`: fits the coefficients of a chip to files of measured runs and writes the block.
#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "calibrate/calibrate_output.h"
#include "cli/commands.h"
#include "cli/output_command.h"
#include "cli/outputs.h"
#include "cli/session.h"
#include "config/yaml_writer.h"
#include "validate/measurement_options.h"

namespace scalecalc::cli {
namespace {

constexpr CountRange kFoldRange{2, 100};
constexpr CountRange kNextRange{0, 100};

constexpr std::array kCalibrateModes{
    Mode{"calibrate"},
    Mode{.name = "calibrate --dump-yaml", .why = "the block is printed and nothing else", .has_outputs = false}};

std::optional<std::size_t> calibrate_mode(const Arguments& arguments) { return arguments.has("--dump-yaml") ? 1 : 0; }

constexpr std::array kCalibrateFlags{
    text<&CalibrateQuestion::hardware>("--hw", "HW", "the chip to fit: a catalog name or a YAML file", "h100-sxm")
        .saying("what to fit")
        .key("hardware"),
    text<&CalibrateQuestion::family>("--family", "NAME",
                                     "instead of a chip: factors for all chips of an efficiency family", "nvidia")
        .saying("what to fit"),
    text<&CalibrateQuestion::stack>(
        "--stack", "NAME", "the software stack to fit: rows of its frameworks count (default: the chip's usual one)",
        "nemo"),
    kOnlyFlag,
    half_flag("rows to fit to (default: of the sets that ship the fit half, of other files all)"),
    count("--folds", kFoldRange, "N", "folds of whole sources for the error on unseen runs (default 5; serving: all)",
          "5"),
    count("--next-runs", kNextRange, "N",
          "name the N runs near yours that would narrow the band most (default 3 of up to 20 runs, else 0)", "5"),
    text<&CalibrateQuestion::date>("--date", "DATE", "date to write into the provenance", "2026-11"),
    toggle("--dump-yaml", "print the efficiency block of a hardware file and nothing else").of_output(),
};

Calibration fit(const Arguments& arguments, MeasuredRows read, const Catalog& catalog,
                const std::function<bool()>& stop) {
  FlagReader reader(arguments);
  CalibrateQuestion q;
  reader.read(q);
  if (q.hardware.empty() && q.family.empty()) {
    reader.problem("--hw is missing: which chip?", "a catalog name such as h100-sxm, a YAML file, or --family nvidia");
  }
  reader.word("--half");
  if (const auto folds = reader.count("--folds")) q.folds = static_cast<std::size_t>(*folds);
  if (const auto next = reader.count("--next-runs")) q.next_runs = static_cast<std::size_t>(*next);
  if (!read.kernels.empty() && !q.family.empty()) {
    reader.problem("--family fits runs, and there are kernels or collectives of one chip", "name it: --hw h100-sxm");
  }
  q.only = row_filters(reader, arguments);
  reader.finish();
  q.files = read.files_and_half;
  q.rows = std::move(read.rows);
  q.kernels = std::move(read.kernels);
  return calibrate(q, catalog, stop);
}

ServeCalibration fit_serving(const Arguments& arguments, MeasuredRows read, const Catalog& catalog,
                             const std::function<bool()>& stop) {
  FlagReader reader(arguments);
  ServeCalibrateQuestion q;
  if (arguments.has("--family")) {
    reader.problem("--family fits training runs, and these are of serving", "name a chip: --hw h100-sxm");
  }
  if (arguments.has("--next-runs")) {
    reader.problem("--next-runs names training runs, and these are of serving", "leave it out");
  }
  if (!read.kernels.empty()) {
    reader.problem("kernels and collectives are fitted beside training runs, and there are serving figures",
                   "fit one after the other");
  }
  reader.word("--half");
  if (const auto folds = reader.count("--folds")) q.folds = static_cast<std::size_t>(*folds);
  q.date = arguments.value("--date").value_or("");
  q.hardware = arguments.value("--hw").value_or("");
  q.stack = arguments.value("--stack").value_or("");
  q.only = serve_row_filters(reader, arguments);
  reader.finish();
  q.files = read.files_and_half;
  q.rows = std::move(read.serving);
  return calibrate_serving(q, catalog, stop);
}

MeasuredRows rows_to_fit(const Arguments& arguments, const Catalog& catalog) {
  MeasuredRows read = read_measurement_files(arguments.positionals(), asked_half(arguments), catalog);
  if (read.rl.empty()) return read;
  throw UserError(fmt::format("{} holds RL steps, and coefficients are fitted to training runs or serving figures",
                              read.files.front()),
                  "scalecalc validate compares them");
}

/// The block that was fitted, for the file it goes into.
ConfigNode block_of(const Arguments& arguments, const Catalog& catalog, const std::function<bool()>& stop) {
  MeasuredRows read = rows_to_fit(arguments, catalog);
  if (read.serving.empty()) return fit(arguments, std::move(read), catalog, stop).block;
  const ServeCalibration found = fit_serving(arguments, std::move(read), catalog, stop);
  if (found.sets.size() > 1) {
    throw UserError(fmt::format("{} sets were fitted, and a file takes one at a time", found.sets.size()),
                    "name the chip and the engine: --hw h100-sxm --stack vllm");
  }
  return found.sets.front().block;
}

Output calibration_output(const Arguments& arguments, const Catalog& catalog, const std::function<bool()>& stop) {
  MeasuredRows read = rows_to_fit(arguments, catalog);
  const std::vector<std::string> files = read.files;
  return with_query(read.serving.empty()
                        ? calibrate_output(fit(arguments, std::move(read), catalog, stop), files)
                        : calibrate_output(fit_serving(arguments, std::move(read), catalog, stop), files),
                    arguments);
}

ExitCode run_calibrate(const Arguments& arguments, Environment& env) {
  if (arguments.has("--dump-yaml")) {
    const Session session = read_session(arguments, env);
    const Catalog catalog(session.config_directories, session.remembered);
    const ConfigNode block = block_of(arguments, catalog, env.interrupted);
    // Its errors come from the folds that are missing, and a file cannot say that it is partial.
    if (should_stop(env.interrupted)) throw Stopped();
    env.begin_answer();
    say_replaced(catalog, session, env);
    write_result(env.out, write_yaml(block));
  } else {
    const ExitCode code = answer_with_output(arguments, env, [&](const Catalog& catalog) {
      return calibration_output(arguments, catalog, env.interrupted);
    });
    if (code != ExitCode::kAnswered) return code;
  }
  return env.interrupted && env.interrupted() ? ExitCode::kInterrupted : ExitCode::kAnswered;
}

constexpr std::array kCalibrateCommon{
    FlagGroup{"the fit", "--hw --family --stack --only --half --folds --next-runs --dump-yaml"}};

}  // namespace

const Command& calibrate_command() {
  static const Command kCalibrate{
      .name = "calibrate",
      .summary = "Efficiency coefficients of a chip fitted to measured runs, with held-out error.",
      .usage = "[FILE...] --hw HW [flags]",
      .examples =
          "  scalecalc calibrate runs.yaml --hw h100-sxm\n"
          "  scalecalc calibrate runs.yaml all_reduce_perf.txt --hw h100-sxm --stack nemo\n"
          "  scalecalc calibrate runs.yaml --hw h100-sxm --stack nemo --date 2026-11 --dump-yaml\n"
          "  scalecalc calibrate configs/measurements/serve.yaml --stack vllm\n",
      .flags = kCalibrateFlags,
      .run = run_calibrate,
      .modes = kCalibrateModes,
      .mode_of = calibrate_mode,
      .interruptible = true,
      .draws = "errors before and after the fit, and what the fit changes",
      .figures = "name before after error_after",
      .common = kCalibrateCommon};
  return kCalibrate;
}

}  // namespace scalecalc::cli
