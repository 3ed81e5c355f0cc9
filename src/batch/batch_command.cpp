// Defines `scalecalc batch`: its flags, its actions and which flag belongs to which action.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "batch/batch_actions_command.h"
#include "batch/job_script.h"
#include "cli/commands.h"
#include "cli/flag_reader.h"

namespace scalecalc::cli {
namespace {

using Action = ExitCode (*)(const Arguments&, Environment&);

enum BatchMode : unsigned { kPlan, kRun, kStatus, kMerge, kScript, kDiff, kStudy };
constexpr std::array kBatchModes{Mode{"batch plan"},
                                 Mode{"batch run"},
                                 Mode{"batch status"},
                                 Mode{"batch merge"},
                                 Mode{.name = "batch script", .has_outputs = false},
                                 Mode{"batch diff"},
                                 Mode{"batch STUDY.yaml"}};
constexpr std::array<Action, 7> kActions{batch_plan,   batch_run,  batch_status, batch_merge,
                                         batch_script, batch_diff, batch_study};

constexpr Modes of(std::initializer_list<BatchMode> modes) {
  Modes out = 0;
  for (const BatchMode mode : modes) out |= 1U << mode;
  return out;
}

constexpr CountRange kShardRange{1, 100'000};
constexpr CountRange kJobsRange{1, 1024};

constexpr std::array kBatchFlags{
    count("--shards", kShardRange, "N",
          "parts that are computed on their own, on any machine (default: 4 for each of 8 workers)", "64")
        .in(of({kPlan})),
    text("--shard", "I/N", "this part alone, counted from 0", "3/64").in(of({kRun})).saying("which shard"),
    toggle("--shard-env",
           "the part that SCALECALC_SHARD, SLURM_ARRAY_TASK_ID, JOB_COMPLETION_INDEX, AWS_BATCH_JOB_ARRAY_INDEX "
           "or SGE_TASK_ID (less one) names, the first that is set")
        .in(of({kRun}))
        .saying("which shard"),
    count("--jobs", kJobsRange, "T", "threads (default: all cores); results do not depend on it", "8")
        .in(of({kPlan, kRun, kScript, kStudy}))
        .lettered('j'),
    toggle("--strict", "stop at the first question without an answer").in(of({kRun, kStudy})),
    toggle("--yes", "ask a study of more than ten million points all the same").in(of({kPlan, kStudy})),
    toggle("--restart", "forget what an interrupted run of another study left beside the output").in(of({kStudy})),
    toggle("--missing", "the shards still to run, as job schedulers write arrays").in(of({kStatus})),
    toggle("--clean", "remove what workers that were killed left behind").in(of({kMerge})),
    text("--fail-if", "CONDITION", "exit 1 if it holds for some row; SQL over the columns of the results",
         "'mfu < 0.35'")
        .repeatable()
        .of_output()
        .in(of({kMerge, kStudy})),
    text("--expect", "FILE", "exit 1 unless every row is what a file says: mfu: {least: 0.4}, status: ok",
         "expected.yaml")
        .repeatable()
        .of_output()
        .in(of({kMerge, kStudy})),
    word("--engine", kJobEngines, "whose job file").like("slurm").in(of({kScript})),
    share("--tolerance", "numbers may differ by this much (default 0)", "2%").in(of({kDiff})),
    toggle("--worse", "only what became worse: slower, larger, dearer, fewer tokens, no answer").in(of({kDiff})),
    text("--columns", "NAME[,NAME...]", "compare, or show in a table, these columns alone", "mfu,step_time_s")
        .in(of({kDiff, kMerge, kStudy})),
    text(
        "--output", "FORMAT[=FILE]",
        "jsonl (default of rows), csv, sqlite, json (one document), table, markdown or html, each =FILE, or a file "
        "that ends in .jsonl, .csv, .db, .json, .md or .html; of status and diff what every command writes; repeatable",
        "csv=results.csv")
        .repeatable()
        .lettered('o')
        .of_output()
        .in(of({kStatus, kMerge, kDiff, kStudy})),
    text("--output", "DIR", "where the plan and its results go", "out").repeatable().lettered('o').in(of({kPlan})),
};

std::optional<std::size_t> batch_mode(const Arguments& arguments) {
  const std::vector<std::string>& words = arguments.positionals();
  if (words.empty()) return std::nullopt;
  for (std::size_t m = 0; m < kStudy; ++m) {
    if (kBatchModes.at(m).name == "batch " + words.front()) return m;
  }
  return kStudy;
}

ExitCode run_batch(const Arguments& arguments, Environment& env) {
  const auto mode = batch_mode(arguments);
  if (!mode) {
    throw UserError("which study?",
                    "scalecalc batch STUDY.yaml -o results.jsonl, or batch plan, run, status, merge, "
                    "script or diff");
  }
  FlagReader(arguments).finish();  // flags of another action
  return kActions.at(*mode)(arguments, env);
}

constexpr std::array kBatchCommon{
    FlagGroup{"the study", "--shards --shard --jobs --strict --restart --fail-if --expect"}};

}  // namespace

const Command& batch_command() {
  static const Command kBatch{
      .name = "batch",
      .summary = "Many questions at once: a grid of any command, resumable, on one machine or many.",
      .usage = "STUDY.yaml -o RESULTS [flags], or batch plan|run|status|merge|script|diff ...",
      .examples =
          "  scalecalc batch study.yaml -o results.jsonl\n"
          "  scalecalc batch plan study.yaml -o out --shards 64\n"
          "  scalecalc batch run out --shard 3/64\n"
          "  scalecalc batch status out --missing\n"
          "  scalecalc batch merge out -o results.csv -o sqlite=results.db\n"
          "  scalecalc batch script out --engine slurm\n"
          "  scalecalc batch diff old.jsonl new.jsonl --tolerance 2%\n",
      .notes =
          "exit status: 0 done (questions without an answer are rows too), 1 --fail-if holds or diff found\n"
          "             differences, 2 the study or the command line is wrong, 3 with --strict: nothing fits,\n"
          "             70 a bug of ours, 71 short of memory or threads, 74 the output could not be written,\n"
          "             75 a limit or 130, 143 a signal ended it: the same command goes on\n",
      .flags = kBatchFlags,
      .run = run_batch,
      .modes = kBatchModes,
      .mode_of = batch_mode,
      .own_exits = true,
      .common = kBatchCommon};
  return kBatch;
}

}  // namespace scalecalc::cli
