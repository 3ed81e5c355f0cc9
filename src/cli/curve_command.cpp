#include "cli/curve_command.h"

#include <fmt/format.h>

#include "cli/outputs.h"
#include "cli/session.h"
#include "report/render.h"
#include "report/train_curve.h"

namespace scalecalc::cli {
namespace {

std::string rendered_curve(const TrainCurve& curve, OutputFormat format, const TextOptions& text, bool complete) {
  switch (format) {
    case OutputFormat::kTable: return render_table(train_curve_report(curve, complete), text);
    case OutputFormat::kJson: return train_curve_json(curve, tool_version(), complete);
    case OutputFormat::kJsonl: return train_curve_jsonl(curve, tool_version());
    case OutputFormat::kCsv: return render_csv(train_curve_report(curve, complete));
    case OutputFormat::kMarkdown: return render_markdown(train_curve_report(curve, complete));
    case OutputFormat::kHtml: return render_html(train_curve_report(curve, complete));
  }
  return "";
}

/// 16,384 is two counts, and also how this program prints one.
void note_grouping(const Arguments& arguments, TrainCurve& curve) {
  std::string chips = arguments.value("--chips").value_or("");
  if (curve.points.size() < 2 || chips.find_first_not_of("0123456789,") != std::string::npos) return;
  const std::string asked = chips;
  std::erase(chips, ',');
  const bool grouped = asked.size() > 4 && asked.rfind(',') == asked.size() - 4;
  if (!grouped || chips.size() > 7) return;
  curve.job.assumptions.push_back(
      {fmt::format("--chips {} is {} counts; one count of that size is written {}", asked, curve.points.size(), chips),
       "--chips", "command line"});
}

/// What a table would have said, for those who read something else.
void say_curve_warnings(Log& log, const TrainCurve& curve, bool complete) {
  for (const Assumption& assumption : curve.job.assumptions) {
    if (assumption.warning) log.warning(assumption.text);
  }
  if (!complete) log.warning("interrupted: the curve is incomplete, better layouts may be missing");
  if (!any_plan(curve) && complete) log.warning("there is no plan at any count asked for");
}

}  // namespace

ExitCode run_train_curve(const CurveQuestion& question, const Arguments& arguments, Environment& env) {
  const Session session = read_session(arguments, env);
  Outputs outputs(arguments.values("--output"), arguments.has("--json"));
  const Catalog catalog(session.config_directories, session.remembered);
  TrainCurve curve = train_curve(question, catalog, env.interrupted);
  note_grouping(arguments, curve);
  const bool complete = !(env.interrupted && env.interrupted());
  Log log(env.err, session.verbosity, wants_colour(env, session.color, env.err_is_tty));
  log.info(fmt::format("model: {} ({})", curve.job.model.title, curve.job.model.source));
  log.info(fmt::format("hardware: {}", curve.job.hw.title));
  if (!for_people(outputs.standard_output())) say_curve_warnings(log, curve, complete);
  const TextOptions text = text_options(env, session.color);
  outputs.write(env, [&](OutputFormat format, bool to_file) {
    return rendered_curve(curve, format, to_file ? TextOptions{} : text, complete);
  });
  if (!complete) return ExitCode::kInterrupted;
  return any_plan(curve) ? ExitCode::kAnswered : ExitCode::kNothingFits;
}

}  // namespace scalecalc::cli
