// `scalecalc validate FILE...`: measured runs against what the engine says of their layouts.
#include <fmt/format.h>

#include <array>

#include "cli/commands.h"
#include "cli/log.h"
#include "cli/measurement_files.h"
#include "cli/output_command.h"
#include "cli/session.h"
#include "report/validate_output.h"

namespace scalecalc::cli {
namespace {

constexpr CountRange kRowRange{1, 1'000'000};

/// What both kinds of runs are asked with.
struct ValidateAsked {
  std::optional<double> max_error;
  ValidateView view;
  bool ideal = false;
  std::string stack;
  std::vector<std::string> set;
};

constexpr std::array kValidateFlags{
    share<&ValidateAsked::max_error>(
        "--max-error", "exit 1 if the mean absolute error is larger, or nothing could be predicted", "10%"),
    toggle("--memory",
           "compare the memory of the fullest chip instead of the step time (default where no row has a time)")
        .key("quantity"),
    kOnlyFlag,
    count<&ValidateAsked::view, &ValidateView::worst>(
        "--worst", kRowRange, "N", "list only the N rows with the largest errors; all rows count", "20"),
    efficiency_flag("calibrated (default): the hardware files' coefficients; ideal: the bound no run may beat")
        .when<0, &ValidateAsked::ideal>(),
    text<&ValidateAsked::stack>(
        "--stack", "NAME",
        "coefficients of this software stack for every row (default: the stack of the row's framework)", "nemo"),
    kSetFlag.explained("replace one field of every chip (hw.)").to<&ValidateAsked::set>(),
};

/// What --max-error says of the mean error; nothing if that is small enough.
std::optional<std::string> objection(const std::optional<double>& mean, const std::optional<double>& most) {
  if (!most || (mean && *mean <= *most)) return std::nullopt;
  if (!mean) return "--max-error: no row could be predicted";
  return fmt::format("the mean error of {:.2f} % is above --max-error {:g} %", 100 * *mean, 100 * *most);
}

template <class Question>
Question question_of(const ValidateAsked& asked) {
  return {.ideal = asked.ideal, .stack = asked.stack, .set = asked.set};
}

ExitCode run_validate(const Arguments& arguments, Environment& env) {
  std::optional<std::string> verdict;
  const ExitCode code = answer_with_output(arguments, env, [&](const Catalog& catalog) {
    MeasuredRows read = read_measurement_files(arguments.positionals(), catalog);
    FlagReader reader(arguments);
    ValidateAsked asked;
    reader.read(asked);
    refuse_stack_of_ideal(reader, asked.ideal, asked.stack);
    Output output;
    if (!read.serving.empty()) {
      if (arguments.has("--memory")) reader.problem("--memory compares training runs", "leave it out for serving");
      auto question = question_of<ServeValidateQuestion>(asked);
      question.only = serve_row_filters(reader, arguments);
      reader.finish();
      question.rows = std::move(read.serving);
      asked.view.files = arguments.positionals();
      const ServeValidation found = validate_serving(question, catalog, env.interrupted);
      verdict = objection(found.summary.mean_abs, asked.max_error);
      output = validate_output(found, question, asked.view);
    } else {
      auto question = question_of<ValidateQuestion>(asked);
      question.only = row_filters(reader, arguments);
      reader.finish();
      question.rows = std::move(read.rows);
      asked.view.files = std::move(read.files);
      question.compared = arguments.has("--memory") ? Compared::kMemory : compared_by_default(question.rows);
      const Validation found = validate(question, catalog, env.interrupted);
      verdict = objection(found.summary.mean_abs, asked.max_error);
      output = validate_output(found, question, asked.view);
    }
    note_sets(arguments, output.assumptions);
    return with_query(std::move(output), arguments, {answered(asked)});
  });
  if (code == ExitCode::kAnswered && env.interrupted && env.interrupted()) return ExitCode::kInterrupted;
  if (!verdict) return code;
  const Session session = read_session(arguments, env);
  Log(env.err, session.verbosity, wants_colour(env, session.color, env.err_is_tty)).warning(*verdict);
  return ExitCode::kCheckFailed;
}

constexpr std::array kValidateCommon{FlagGroup{"the rows", "--only --worst --memory --max-error"},
                                     FlagGroup{"the coefficients", "--efficiency --stack --set"}};

}  // namespace

const Command& validate_command() {
  static const Command kValidate{
      .name = "validate",
      .summary = "Predicted against measured: published or own runs, with error statistics.",
      .usage = "[FILE.yaml...] [flags]",
      .examples =
          "  scalecalc validate runs.yaml --max-error 15%\n"
          "  scalecalc validate runs.yaml --only chip=h100-sxm,h200 --worst 20\n",
      .notes =
          "A file may be the name of a set that ships with the program: train, memory, serve. Without a\n"
          "file, the runs of train and memory are read.\n"
          "docs/accuracy.md explains what a row of a file may say.\n",
      .flags = kValidateFlags,
      .run = run_validate,
      .check_fails = "the error is above --max-error",
      .interruptible = true,
      .draws = "predictions over measurements, and how many rows err by how much",
      .figures = "id measured predicted error",
      .common = kValidateCommon};
  return kValidate;
}

}  // namespace scalecalc::cli
