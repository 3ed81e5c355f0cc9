// `scalecalc train`: flags to a question, the answer to the outputs asked for.
#include <fmt/format.h>

#include "base/units.h"
#include "cli/commands.h"
#include "cli/curve_command.h"
#include "cli/curve_options.h"
#include "cli/outputs.h"
#include "cli/session.h"
#include "cli/train_options.h"
#include "report/render.h"
#include "report/train_json.h"
#include "report/train_report.h"

namespace scalecalc::cli {
namespace {

std::string rendered_train(const TrainAnswer& answer, OutputFormat format, const TextOptions& text, bool complete,
                           bool all_reasons) {
  switch (format) {
    case OutputFormat::kTable: return render_table(train_report(answer, complete, all_reasons), text);
    case OutputFormat::kJson: return train_json(answer, tool_version(), complete);
    case OutputFormat::kJsonl: return train_jsonl(answer, tool_version());
    case OutputFormat::kCsv: return render_csv(train_report(answer, complete));
    case OutputFormat::kMarkdown: return render_markdown(train_report(answer, complete, all_reasons));
    case OutputFormat::kHtml: return render_html(train_report(answer, complete, all_reasons));
  }
  return "";
}

/// What a table would have said, for those who read something else.
void say_train_warnings(Log& log, const TrainAnswer& answer, bool complete) {
  for (const Assumption& assumption : answer.assumptions) {
    if (assumption.warning) log.warning(assumption.text);
  }
  if (!complete) log.warning("interrupted: the search is incomplete, better layouts may be missing");
  if (!answer.plans.empty() || !complete) return;
  for (const Line& line : train_report(answer).summary) log.warning(line.text);
}

void log_work(Log& log, const TrainAnswer& answer) {
  log.info(fmt::format("model: {} ({})", answer.model.title, answer.model.source));
  log.info(fmt::format("hardware: {}, slice {}", answer.hw.title, answer.slice.name()));
  log.info(fmt::format("search: {} legal layouts, {} costed, {} pruned, {}",
                       group_thousands(static_cast<long long>(answer.search.candidates)),
                       group_thousands(static_cast<long long>(answer.search.evaluated)),
                       group_thousands(static_cast<long long>(answer.search.pruned)),
                       format_quantity(answer.search.elapsed_s, UnitKind::kSeconds)));
}

ExitCode run_train(const Arguments& arguments, Environment& env) {
  if (const auto question = curve_question(arguments)) return run_train_curve(*question, arguments, env);
  const Session session = read_session(arguments, env);
  const TrainQuestion question = train_question(arguments);
  Outputs outputs(arguments.values("--output"), arguments.has("--json"));
  const Catalog catalog(session.config_directories, session.remembered);
  const TrainAnswer found = answer(question, catalog, env.interrupted);
  const bool complete = !(env.interrupted && env.interrupted());

  Log log(env.err, session.verbosity, wants_colour(env, session.color, env.err_is_tty));
  log_work(log, found);
  if (!for_people(outputs.standard_output())) say_train_warnings(log, found, complete);
  const TextOptions text = text_options(env, session.color);
  outputs.write(env, [&](OutputFormat format, bool to_file) {
    return rendered_train(found, format, to_file ? TextOptions{} : text, complete,
                          session.verbosity == Verbosity::kVerbose);
  });
  if (!complete) return ExitCode::kInterrupted;
  return found.plans.empty() ? ExitCode::kNothingFits : ExitCode::kAnswered;
}

}  // namespace

const Command& train_command() {
  static const Command kTrain{
      .name = "train",
      .summary = "Ranked training layouts: step time, MFU, memory, days and dollars of the run.",
      .usage = "MODEL --hw HW --chips N [flags]",
      .examples =
          "  scalecalc train llama3-70b --hw tpu-v5p --chips 8960\n"
          "  scalecalc train mixtral-8x7b --hw h100-sxm --chips 256 --tokens 2T --json\n"
          "  scalecalc train llama3.1-405b --hw h100-sxm --chips 512..65536*2 --pareto\n",
      .notes = "Quantities take a suffix: 4M, 15T, 128k (powers of ten), 4Mi (powers of two), 3.35TB/s, 80GiB, 17ms.\n",
      .flags = train_flags(),
      .run = run_train,
      .modes = train_modes(),
      .mode_of = train_mode,
      .nothing_fits = "nothing fits",
      .interruptible = true};
  return kTrain;
}

}  // namespace scalecalc::cli
