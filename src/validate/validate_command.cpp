// Runs `scalecalc validate FILE...`: predicts measured runs and shows the errors.
#include <fmt/format.h>

#include <array>

#include "cli/commands.h"
#include "cli/log.h"
#include "cli/output_command.h"
#include "cli/session.h"
#include "validate/measurement_options.h"
#include "validate/validate_output.h"

namespace scalecalc::cli {
namespace {

constexpr CountRange kRowRange{1, 1'000'000};

/// What both kinds of runs are asked with.
struct ValidateAsked {
  std::optional<double> max_error;
  ValidateView view;
  bool ideal = false;
  RowHalf half = RowHalf::kAll;
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
    half_flag<&ValidateAsked::half>(
        "only rows whose source is in this half of all sources (default: all): coefficients "
        "are chosen on the fit half and judged on the other"),
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

/// Rows of a kind that has no memory to compare.
template <class Kind>
struct OtherRows {
  std::vector<typename Kind::Measured> rows;
  std::vector<RowFilter> only;
  const char* what;
  ValidationOf<Kind> (*validate)(const ValidateQuestionOf<Kind>&, const Catalog&, const std::function<bool()>&);
};

template <class Kind>
Output validate_other(OtherRows<Kind> asked_of, ValidateAsked& asked, FlagReader& reader, const Arguments& arguments,
                      const Catalog& catalog, const Environment& env, std::optional<std::string>& verdict) {
  if (arguments.has("--memory")) {
    reader.problem("--memory compares training runs", fmt::format("leave it out for {}", asked_of.what));
  }
  reader.finish();
  auto question = question_of<ValidateQuestionOf<Kind>>(asked);
  question.compared = Kind::kUsual;
  question.only = std::move(asked_of.only);
  question.rows = std::move(asked_of.rows);
  asked.view.files = arguments.positionals();
  const ValidationOf<Kind> found = asked_of.validate(question, catalog, env.interrupted);
  verdict = objection(found.summary.mean_abs, asked.max_error);
  return validate_output(found, question, asked.view);
}

ExitCode run_validate(const Arguments& arguments, Environment& env) {
  std::optional<std::string> verdict;
  const ExitCode code = answer_with_output(arguments, env, [&](const Catalog& catalog) {
    MeasuredRows read =
        read_measurement_files(arguments.positionals(), asked_half(arguments).value_or(RowHalf::kAll), catalog);
    if (!read.kernels.empty()) {
      throw UserError(fmt::format("{} holds kernels or collectives by themselves, which are not steps",
                                  read.kernels.front().where.file.str()),
                      "scalecalc calibrate fits coefficients to them, beside your steps");
    }
    FlagReader reader(arguments);
    ValidateAsked asked;
    reader.read(asked);
    refuse_stack_of_ideal(reader, asked.ideal, asked.stack);
    Output output;
    if (!read.serving.empty()) {
      output = validate_other<Serving>(
          {std::move(read.serving), serve_row_filters(reader, arguments), "serving", validate_serving}, asked, reader,
          arguments, catalog, env, verdict);
    } else if (!read.rl.empty()) {
      output = validate_other<RlSteps>({std::move(read.rl), rl_row_filters(reader, arguments), "RL steps", validate_rl},
                                       asked, reader, arguments, catalog, env, verdict);
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
    if (asked.half != RowHalf::kAll) {
      output.title += fmt::format(" of the {} half", kRowHalfNames.at(static_cast<std::size_t>(asked.half)));
    }
    note_sets(arguments, output.assumptions);
    return with_query(std::move(output), arguments, {answered(asked)});
  });
  if (code == ExitCode::kAnswered && env.interrupted && env.interrupted()) return ExitCode::kInterrupted;
  if (!verdict) return code;
  const Session session = read_session(arguments, env);
  Log(env.err, session.verbosity, wants_colour(env, session.color, env.err_is_tty)).failure(*verdict);
  return ExitCode::kCheckFailed;
}

constexpr std::array kValidateCommon{FlagGroup{"the rows", "--only --half --worst --memory --max-error"},
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
          "A file may be the name of a set that ships with the program: train, train-2, small-steps, memory,\n"
          "serve, and memory-2 and rl, to which nothing is fitted. Without a file, all of training but memory-2\n"
          "are read.\n"
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
