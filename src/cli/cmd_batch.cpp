// `scalecalc batch`: flags and the action they belong to.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "cli/batch_actions.h"
#include "cli/commands.h"
#include "cli/flag_reader.h"

namespace scalecalc::cli {
namespace {

constexpr std::array kFlags{
    Flag{"--shards", 0, FlagKind::kValue, "N",
         "plan: parts that are computed on their own, on any machine (default: 4 for each of 8 workers)", "64"},
    Flag{"--shard", 0, FlagKind::kValue, "I/N", "run: this part alone, counted from 0", "3/64"},
    Flag{"--shard-env", 0, FlagKind::kSwitch, "",
         "run: the part that SCALECALC_SHARD, SLURM_ARRAY_TASK_ID, JOB_COMPLETION_INDEX, AWS_BATCH_JOB_ARRAY_INDEX or "
         "SGE_TASK_ID (less one) names, the first that is set",
         ""},
    Flag{"--jobs", 'j', FlagKind::kValue, "T", "threads (default: all cores); results do not depend on it", "8"},
    Flag{"--strict", 0, FlagKind::kSwitch, "", "stop at the first question without an answer", ""},
    Flag{"--yes", 0, FlagKind::kSwitch, "", "ask a study of more than ten million points all the same", ""},
    Flag{"--restart", 0, FlagKind::kSwitch, "",
         "forget what an interrupted run of another study left beside the output", ""},
    Flag{"--missing", 0, FlagKind::kSwitch, "", "status: the shards still to run, as job schedulers write arrays", ""},
    Flag{"--clean", 0, FlagKind::kSwitch, "", "merge: remove what workers that were killed left behind", ""},
    Flag{"--fail-if", 0, FlagKind::kRepeatable, "CONDITION",
         "exit 1 if it holds for some row; SQL over the columns of the results", "'mfu < 0.35'"},
    Flag{"--engine", 0, FlagKind::kValue, "slurm|kubernetes|parallel|snakemake", "script: whose job file", "slurm"},
    Flag{"--tolerance", 0, FlagKind::kValue, "SHARE", "diff: numbers may differ by this much (default 0)", "2%"},
    Flag{"--columns", 0, FlagKind::kValue, "NAME[,NAME...]", "diff: compare these columns alone", "mfu,step_time_s"},
};

struct Action {
  std::string_view name;
  ExitCode (*run)(const Arguments&, Environment&);
  std::string_view flags;  ///< its own, with blanks around each
};
constexpr std::array kActions{
    Action{"plan", batch_plan, " --shards --yes --jobs "},
    Action{"run", batch_run, " --shard --shard-env --jobs --strict "},
    Action{"status", batch_status, " --missing "},
    Action{"merge", batch_merge, " --clean --fail-if "},
    Action{"script", batch_script, " --engine --jobs "},
    Action{"diff", batch_diff, " --tolerance --columns "},
};
constexpr Action kStudy{"STUDY.yaml", batch_study, " --jobs --strict --yes --restart --fail-if "};

void check_flags(const Arguments& arguments, const Action& action) {
  FlagReader reader(arguments);
  for (const Flag& flag : kFlags) {
    if (!arguments.has(flag.name) || action.flags.find(fmt::format(" {} ", flag.name)) != std::string_view::npos) {
      continue;
    }
    std::vector<std::string> owners;
    for (const Action& other : kActions) {
      if (other.flags.find(fmt::format(" {} ", flag.name)) != std::string_view::npos) owners.emplace_back(other.name);
    }
    if (kStudy.flags.find(fmt::format(" {} ", flag.name)) != std::string_view::npos) owners.emplace_back(kStudy.name);
    reader.problem(fmt::format("{} has no meaning for batch {}", flag.name, action.name),
                   fmt::format("it belongs to batch {}", join(owners, ", ")));
  }
  reader.finish();
}

ExitCode run_batch(const Arguments& arguments, Environment& env) {
  const std::vector<std::string>& words = arguments.positionals();
  if (words.empty()) {
    throw UserError("which study?",
                    "scalecalc batch STUDY.yaml -o results.jsonl, or batch plan, run, status, merge, "
                    "script or diff");
  }
  const auto named = [&](const Action& action) { return action.name == words.front(); };
  const auto found = std::find_if(kActions.begin(), kActions.end(), named);
  const Action& action = found == kActions.end() ? kStudy : *found;
  check_flags(arguments, action);
  return action.run(arguments, env);
}

constexpr std::string_view kExamples =
    "  scalecalc batch study.yaml -o results.jsonl\n"
    "  scalecalc batch plan study.yaml -o out --shards 64\n"
    "  scalecalc batch run out --shard 3/64\n"
    "  scalecalc batch status out --missing\n"
    "  scalecalc batch merge out -o results.csv -o sqlite=results.db\n"
    "  scalecalc batch script out --engine slurm\n"
    "  scalecalc batch diff old.jsonl new.jsonl --tolerance 2%\n";

constexpr std::string_view kNotes =
    "outputs: -o jsonl, csv or sqlite, each =FILE, or a file that ends in .jsonl, .csv or .db\n"
    "\n"
    "exit status: 0 done (questions without an answer are rows too), 1 --fail-if holds or diff found\n"
    "             differences, 2 the study or the command line is wrong, 3 with --strict: nothing fits,\n"
    "             70 a bug of ours, 74 the output could not be written, 130 interrupted: the same command\n"
    "             goes on\n";

}  // namespace

const Command& batch_command() {
  static const Command kBatch{"batch",
                              "Many questions at once: a grid of any command, resumable, on one machine or many.",
                              "STUDY.yaml -o RESULTS [flags], or batch plan|run|status|merge|script|diff ...",
                              kExamples,
                              kNotes,
                              kFlags,
                              run_batch};
  return kBatch;
}

}  // namespace scalecalc::cli
