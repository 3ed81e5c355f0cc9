// Runs `scalecalc train`: reads its flags, asks its question and writes the answer.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/units.h"
#include "cli/commands.h"
#include "cli/flag_reader.h"
#include "cli/output_command.h"
#include "cli/outputs.h"
#include "cli/session.h"
#include "launch/launch_files_options.h"
#include "launch/sayable.h"
#include "plan/run_bounds.h"
#include "spec/kept.h"
#include "train/curve_command.h"
#include "train/curve_options.h"
#include "train/measured.h"
#include "train/measured_output.h"
#include "train/train_options.h"
#include "train/train_output.h"
#include "train/train_page_command.h"

namespace scalecalc::cli {
namespace {

/// What was measured of the plan shown in detail.
struct MeasuredQuestion {
  std::optional<MeasuredSpeed> speed;
};

void read_measured(FlagReader& reader, const Flag& flag, const std::string& text, MeasuredQuestion& out) {
  const auto parsed = parse_measured_speed(text);
  if (const UnitError* error = std::get_if<UnitError>(&parsed)) {
    return reader.problem(fmt::format("{}: {}", flag.name, error->message), error->hint);
  }
  out.speed = std::get<MeasuredSpeed>(parsed);
}

constexpr Flag kMeasuredFlag =
    text("--measured", "STEP|TOKENS|MFU",
         "how fast the plan shown in detail ran (41s, 14k tokens/s, 900 tokens/s/chip, 38%, 38%:6n): its MFU and HFU, "
         "whether it is inside the band, which predicted term must have grown",
         "41s")
        .by<read_measured>()
        .in(1U << static_cast<unsigned>(TrainMode::kRanking));

/// Those of a training question, and what only train itself is told.
std::span<const Flag> train_command_flags() {
  static const std::vector<Flag> kAll = [] {
    std::vector<Flag> out(train_flags().begin(), train_flags().end());
    out.push_back(kMeasuredFlag);
    const auto more = export_flags(1U << static_cast<unsigned>(TrainMode::kRanking));
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }();
  return kAll;
}

MeasuredQuestion measured_question(const Arguments& arguments) {
  FlagReader reader(arguments);
  MeasuredQuestion out;
  reader.read(out);
  reader.finish();
  return out;
}

void log_work(Log& log, const TrainAnswer& answer) {
  log.info(fmt::format("model: {} ({})", answer.model.title, answer.model.source));
  log.info(fmt::format("hardware: {}, slice {}", answer.hw.title, answer.slice.name()));
  log.info(fmt::format("search: {} legal layouts, {} costed, {} pruned, {}",
                       group_thousands(static_cast<long long>(answer.search.candidates)),
                       group_thousands(static_cast<long long>(answer.search.evaluated)),
                       group_thousands(static_cast<long long>(answer.search.pruned)),
                       seconds_text(answer.search.elapsed_s)));
}

/// The launch file of the plan shown in detail or, where nobody asked for that plan and the framework cannot say it, of
/// the fastest that it can. UserError of the first if there is none.
LaunchFile sayable(const ExportAsked& asked, const TrainAnswer& found, const RankedPlan& plan, const Catalog& catalog,
                   const Environment& env, Output& output) {
  try {
    return exported(asked, catalog, found, plan, output.question);
  } catch (const UserError& error) {
    if (found.question.plan != 0) throw;
    TrainQuestion further = found.question;
    further.top = std::max<std::size_t>(further.top, 200);
    further.explain = false;
    further.why_not.clear();
    ResolvedQuestion resolved = resolve(further, catalog);
    if (resolved.launcher) {
      resolved.launcher = std::make_shared<const StackRelease>(sayable_release(*asked.framework, *resolved.launcher));
    }
    const TrainAnswer more = answer(further, std::move(resolved), env.interrupted);
    const auto per_token = [](const Plan& p) { return p.step_s / static_cast<double>(p.batch_seqs); };
    std::vector<const RankedPlan*> others;
    if (more.recommended) others.push_back(&more.recommended->plan);
    for (const RankedPlan& each : more.plans) others.push_back(&each);
    for (const RankedPlan* other : others) {
      try {
        LaunchFile out = exported(asked, catalog, more, *other, output.question);
        const double slower = per_token(other->plan) / per_token(plan.plan) - 1;
        output.warnings.push_back(
            fmt::format("the launch file is of another plan, {}: {}",
                        slower < 0.001 ? "as fast" : fmt::format("{:.1f}% slower a token", 100 * slower),
                        error.diagnostics().front().message));
        return out;
      } catch (const UserError&) {
        continue;
      }
    }
    throw;
  }
}

/// Instead of the table, or into its file.
ExitCode write_launch_file(const ExportAsked& asked, const TrainAnswer& found, Output& output, const Catalog& catalog,
                           const Session& session, OutputTargets& outputs, bool explain, Log& log, Environment& env) {
  const RankedPlan* plan =
      output.complete ? detailed_plan(found) : nullptr;  // one that a search ended early may change
  if (plan == nullptr) return write_output(output, session, outputs, explain, log, env);
  const LaunchFile file = sayable(asked, found, *plan, catalog, env, output);
  if (asked.file) {
    asked.file->commit(file.text);
    return write_output(output, session, outputs, explain, log, env);
  }
  if (outputs.standard_output()) {
    say_warnings(log, output);
    write_result(env.out, file.text);
    return status_of(output, session, env);
  }
  const ExitCode status = write_output(output, session, outputs, explain, log, env);
  write_result(env.out, file.text);
  return status;
}

/// The pictures of a page. `resolved` as it was when `found` was.
std::vector<Plot> page_plots(const TrainAnswer& found, const ResolvedQuestion& resolved, const Environment& env) {
  std::vector<Plot> out = train_page_plots(found);
  const auto question = page_curve_question(found);
  if (!question || out.empty() || should_stop(env.interrupted)) return out;
  ResolvedQuestion job = resolved;
  job.slices.clear();
  std::vector<Plot> more{train_tornado_plot(found, resolved),
                         page_curve_plot(found, train_curve(*question, std::move(job), env.interrupted))};
  out.insert(out.end() - 1, std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));  // a map last
  return out;
}

/// What the searches of a study share whose questions differ in the number of chips alone. Of the jobs asked about last
/// and for some questions, as every number of chips adds to it.
class BoundsOfJobs {
 public:
  std::shared_ptr<RunBounds> of(const std::string& job) {
    constexpr std::size_t kMostJobs = 2;
    constexpr std::size_t kMostQuestions = 64;
    const std::lock_guard lock(mutex_);
    std::erase_if(jobs_, [&](const Job& known) { return known.said == job && known.questions == kMostQuestions; });
    const auto known = std::find_if(jobs_.begin(), jobs_.end(), [&](const Job& other) { return other.said == job; });
    if (known != jobs_.end()) {
      std::rotate(known, known + 1, jobs_.end());
    } else {
      if (jobs_.size() == kMostJobs) jobs_.erase(jobs_.begin());
      jobs_.push_back({job, std::make_shared<RunBounds>()});
    }
    ++jobs_.back().questions;
    return jobs_.back().bounds;
  }

 private:
  struct Job {
    std::string said;
    std::shared_ptr<RunBounds> bounds;
    std::size_t questions = 0;
  };
  std::mutex mutex_;
  std::vector<Job> jobs_;  ///< the last asked about last
};

std::shared_ptr<RunBounds> shared_bounds(const Arguments& arguments, const Catalog& catalog) {
  const auto jobs = scalecalc::kept<std::shared_ptr<BoundsOfJobs>>(catalog, "bounds of jobs",
                                                                   [] { return std::make_shared<BoundsOfJobs>(); });
  return (*jobs)->of(arguments.said_but("--chips"));
}

/// A study's row: nothing but plans is read.
bool asks_for_rows(const OutputTargets& outputs) {
  return outputs.standard_output() == OutputFormat::kRow || outputs.standard_output() == OutputFormat::kRows;
}

ExitCode run_train(const Arguments& typed, Environment& env) {
  if (const auto question = curve_question(typed)) return run_train_curve(*question, typed, env);
  const Session session = read_session(typed, env);
  const Catalog catalog(session.config_directories, session.remembered);
  const auto exporting = export_asked(typed, LaunchJob::kTraining, catalog);
  Arguments arguments = typed;
  const std::optional<LaunchInput> launched = take_launch_file(arguments, catalog);
  if (exporting) plan_for_framework(*exporting, arguments);
  TrainQuestion question = train_question(arguments);
  const MeasuredQuestion measured = measured_question(arguments);
  OutputTargets outputs(arguments);
  refuse_parts_of_files(session, outputs);
  ResolvedQuestion resolved = resolve(question, catalog);
  if (env.remembered) {
    resolved.bounds = shared_bounds(arguments, catalog);
    question.ranks = outputs.standard_output() != OutputFormat::kRow;
    question.asides = !asks_for_rows(outputs) || !session.checks.empty() || session.verbosity == Verbosity::kVerbose;
  }
  refuse_meaningless(arguments, resolved);
  const bool page = outputs.has(OutputFormat::kHtml);
  const std::optional<ResolvedQuestion> kept = page ? std::optional(resolved) : std::nullopt;
  TrainAnswer found = answer(question, std::move(resolved), env.interrupted);
  if (launched) {
    launched->note(found.assumptions);
    if (found.from) found.from->name = launched->name();
  }
  const bool complete = !(env.interrupted && env.interrupted());

  Log log(env.err, session.verbosity, wants_colour(env, session.color, env.err_is_tty));
  env.begin_answer();
  log_work(log, found);
  Output output = train_output(found, complete, session.verbosity == Verbosity::kVerbose);
  if (const RankedPlan* plan = detailed_plan(found); measured.speed && plan != nullptr) {
    const MeasuredVerdict verdict = judge_measured(found, *plan, *measured.speed);
    refuse_above_peak(verdict, "--measured " + measured.speed->text,
                      "is it of one chip or of all (tokens/s/chip), and of this batch?");
    add_measured(*measured.speed, *plan, verdict, output);
  }
  if (session.perf) output.elapsed_s = found.search.elapsed_s;
  if (page) output.page_plots = page_plots(found, *kept, env);
  output = with_train_query(std::move(output), arguments, found);
  note_replaced(output, catalog, session);
  if (exporting) {
    return write_launch_file(*exporting, found, output, catalog, session, outputs, question.explain, log, env);
  }
  return write_output(output, session, outputs, question.explain, log, env);
}

constexpr std::array kTrainCommon{
    FlagGroup{"the job", "--hw --chips --seq --batch-tokens --tokens --precision --lora --price --mtbf"},
    FlagGroup{"the layout", "--stack --fix --remat --why-not --objective --top --set"}};

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
      .flags = train_command_flags(),
      .run = run_train,
      .modes = train_modes(),
      .mode_of = train_mode,
      .names = CatalogKind::kModel,
      .nothing_fits = "nothing fits",
      .interruptible = true,
      .figures = "chips efficiency step_time_s mfu memory_bytes run_time_s run_cost_usd bound_by",
      .common = kTrainCommon};
  return kTrain;
}

}  // namespace scalecalc::cli
