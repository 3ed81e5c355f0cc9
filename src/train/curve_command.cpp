// Asks `scalecalc train` over several numbers of chips and writes the answer.
#include "train/curve_command.h"

#include <fmt/format.h>

#include "cli/output_command.h"
#include "cli/outputs.h"
#include "cli/session.h"
#include "train/train_curve_output.h"
#include "train/train_options.h"

namespace scalecalc::cli {
namespace {

/// 16,384 is two counts, and also how this program prints one.
void note_grouping(const Arguments& arguments, TrainCurve& curve) {
  std::string chips = arguments.value("--chips").value_or("");
  if (curve.points.size() < 2 || chips.find_first_not_of("0123456789,") != std::string::npos) return;
  const std::string asked = chips;
  std::erase(chips, ',');
  const bool grouped = asked.size() > 4 && asked.rfind(',') == asked.size() - 4;
  if (!grouped || chips.size() > 7) return;
  curve.job.assumptions.push_back(Assumption{
      fmt::format("--chips {} is {} counts; one count of that size is written {}", asked, curve.points.size(), chips),
      "--chips", "command line"}
                                      .is(asked));
}

}  // namespace

ExitCode run_train_curve(const CurveQuestion& question, const Arguments& arguments, Environment& env) {
  const Session session = read_session(arguments, env);
  OutputTargets outputs(arguments);
  refuse_parts_of_files(session, outputs);
  const Catalog catalog(session.config_directories, session.remembered);
  ResolvedQuestion job = resolve_job(question.train, catalog);
  refuse_meaningless(arguments, job);
  const Stopwatch watch;
  TrainCurve curve = train_curve(question, std::move(job), env.interrupted);
  note_grouping(arguments, curve);
  const bool complete = !should_stop(env.interrupted);
  if (!complete && !any_plan(curve)) throw Stopped();
  Log log(env.err, session.verbosity, wants_colour(env, session.color, env.err_is_tty));
  env.begin_answer();
  log.info(fmt::format("model: {} ({})", curve.job.model.title, curve.job.model.source));
  log.info(fmt::format("hardware: {}", curve.job.hw.title));
  Output output = with_train_query(train_curve_output(curve, complete), arguments, curve.job);
  note_replaced(output, catalog, session);
  if (session.perf) output.elapsed_s = watch.seconds();
  return write_output(output, session, outputs, false, log, env);
}

}  // namespace scalecalc::cli
