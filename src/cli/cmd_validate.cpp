// `scalecalc validate FILE...`: measured runs against what the engine says of their layouts.
#include <fmt/format.h>

#include <array>

#include "cli/commands.h"
#include "cli/log.h"
#include "cli/measurement_files.h"
#include "cli/session.h"
#include "cli/sheet_command.h"
#include "report/validate_sheet.h"

namespace scalecalc::cli {
namespace {

constexpr std::array<std::string_view, 2> kEfficiencies{"ideal", "calibrated"};
constexpr CountRange kRowRange{1, 1'000'000};

constexpr std::array kFlags{
    Flag{"--max-error", 0, FlagKind::kValue, "SHARE",
         "exit 1 if the mean absolute error is larger, or nothing could be predicted", "10%"},
    Flag{"--memory", 0, FlagKind::kSwitch, "",
         "compare the memory of the fullest chip instead of the step time (default where no row has a time)", ""},
    kOnlyFlag,
    Flag{"--worst", 0, FlagKind::kValue, "N", "list only the N rows with the largest errors; all rows count", "20"},
    Flag{"--efficiency", 0, FlagKind::kValue, "ideal|calibrated",
         "calibrated (default): the hardware files' coefficients; ideal: the bound no run may beat", "ideal"},
    Flag{"--stack", 0, FlagKind::kValue, "NAME",
         "coefficients of this software stack for every row (default: the stack of the row's framework)", "nemo"},
    Flag{"--set", 0, FlagKind::kRepeatable, "KEY=VALUE", "replace one field of every chip (hw.)",
         "hw.hbm.bandwidth=5TB/s"},
};

constexpr std::string_view kExamples =
    "  scalecalc validate runs.yaml --max-error 15%\n"
    "  scalecalc validate runs.yaml --only chip=h100-sxm,h200 --worst 20\n";

constexpr std::string_view kNotes =
    "A file may be the name of a set that ships with the program: train, memory, serve. Without a\n"
    "file, the runs of train and memory are read.\n"
    "docs/accuracy.md explains what a row of a file may say.\n"
    "\n"
    "exit status: 0 answered, 1 the error is above --max-error, 2 the question or a file is wrong\n";

struct Request {
  ValidateQuestion question;
  ValidateView view;
  std::optional<double> max_error;
};

Request request_of(const Arguments& arguments) {
  FlagReader reader(arguments);
  Request out;
  out.max_error = reader.fraction("--max-error");
  out.view.worst = static_cast<std::size_t>(reader.count("--worst", kRowRange).value_or(0));
  out.view.files = arguments.positionals();
  out.question.ideal = reader.word("--efficiency", kEfficiencies) == 0U;
  out.question.stack = arguments.value("--stack").value_or("");
  if (out.question.ideal && !out.question.stack.empty()) {
    reader.problem("--stack chooses measured coefficients, and --efficiency ideal has none", "give one of them");
  }
  out.question.set = arguments.values("--set");
  out.question.only = row_filters(reader, arguments);
  reader.finish();
  return out;
}

/// What --max-error says of the mean error; nothing if that is small enough.
std::optional<std::string> objection(const std::optional<double>& mean, const std::optional<double>& most) {
  if (!most || (mean && *mean <= *most)) return std::nullopt;
  if (!mean) return "--max-error: no row could be predicted";
  return fmt::format("the mean error of {:.2f} % is above --max-error {:g} %", 100 * *mean, 100 * *most);
}

struct ServeRequest {
  ServeValidateQuestion question;
  ValidateView view;
  std::optional<double> max_error;
};

ServeRequest serve_request_of(const Arguments& arguments) {
  FlagReader reader(arguments);
  ServeRequest out;
  out.max_error = reader.fraction("--max-error");
  out.view.worst = static_cast<std::size_t>(reader.count("--worst", kRowRange).value_or(0));
  out.view.files = arguments.positionals();
  out.question.ideal = reader.word("--efficiency", kEfficiencies) == 0U;
  out.question.stack = arguments.value("--stack").value_or("");
  if (arguments.has("--memory")) reader.problem("--memory compares training runs", "leave it out for serving");
  out.question.set = arguments.values("--set");
  out.question.only = serve_row_filters(reader, arguments);
  reader.finish();
  return out;
}

ExitCode run_validate(const Arguments& arguments, Environment& env) {
  std::optional<std::string> verdict;
  const ExitCode answered = answer_with_sheet(arguments, env, [&](const Catalog& catalog) {
    MeasuredRows read = read_measurement_files(arguments.positionals(), catalog);
    if (!read.serving.empty()) {
      ServeRequest asked = serve_request_of(arguments);
      asked.question.rows = std::move(read.serving);
      const ServeValidation found = validate_serving(asked.question, catalog, env.interrupted);
      verdict = objection(found.summary.mean_abs, asked.max_error);
      Sheet sheet = validate_sheet(found, asked.question, asked.view);
      note_sets(arguments, sheet.assumptions);
      return sheet;
    }
    Request request = request_of(arguments);
    request.view.files = std::move(read.files);
    request.question.rows = std::move(read.rows);
    request.question.compared =
        arguments.has("--memory") ? Compared::kMemory : compared_by_default(request.question.rows);
    const Validation found = validate(request.question, catalog, env.interrupted);
    verdict = objection(found.summary.mean_abs, request.max_error);
    Sheet sheet = validate_sheet(found, request.question, request.view);
    note_sets(arguments, sheet.assumptions);
    return sheet;
  });
  if (answered == ExitCode::kAnswered && env.interrupted && env.interrupted()) return ExitCode::kInterrupted;
  if (!verdict) return answered;
  const Session session = read_session(arguments, env);
  Log(env.err, session.verbosity, wants_colour(env, session.color, env.err_is_tty)).warning(*verdict);
  return ExitCode::kCheckFailed;
}

}  // namespace

const Command& validate_command() {
  static const Command kValidate{"validate",
                                 "Predicted against measured: published or own runs, with error statistics.",
                                 "[FILE.yaml...] [flags]",
                                 kExamples,
                                 kNotes,
                                 kFlags,
                                 run_validate};
  return kValidate;
}

}  // namespace scalecalc::cli
