// The actions of `scalecalc batch`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "base/units.h"
#include "batch/deaths.h"
#include "batch/manifest.h"
#include "batch/results.h"
#include "batch/run_shard.h"
#include "cli/environment.h"
#include "cli/options.h"
#include "cli/session.h"

namespace scalecalc::cli {

ExitCode batch_study(const Arguments& arguments, Environment& env);
ExitCode batch_plan(const Arguments& arguments, Environment& env);
ExitCode batch_run(const Arguments& arguments, Environment& env);
ExitCode batch_status(const Arguments& arguments, Environment& env);
ExitCode batch_merge(const Arguments& arguments, Environment& env);
ExitCode batch_script(const Arguments& arguments, Environment& env);
ExitCode batch_diff(const Arguments& arguments, Environment& env);

// What several actions share.

inline std::string grouped(std::uint64_t n) { return group_thousands(static_cast<long long>(n)); }

/// The one positional behind the action's name. UserError if there is none or more.
std::string only_positional(const Arguments& arguments, std::string_view what, std::size_t skip);

/// Where results go: jsonl, csv or sqlite, as FORMAT=FILE or by the file's ending. UserError for other forms
/// and (exit 74) for places that cannot be written.
std::vector<ResultTarget> result_targets(const Arguments& arguments);

struct PlannedStudy {
  StudyManifest manifest;
  std::optional<StudySample> sample;   ///< nothing if it was planned before
  Ask ask;                             ///< knows what the sample's questions read
  Deaths deaths;                       ///< of earlier processes
  KnownReplies known;                  ///< of the sample and of cases that a process died in: they are not asked
  std::unique_ptr<FaultWatch> faults;  ///< null in a process that is not the program's own
};
/// Returns what answers the study's questions with its results in this directory. `starts_again`: the program may, with
/// the same words, after it died in a question.
PlannedStudy prepared_study(StudyManifest manifest, const std::string& directory, const Environment& env,
                            bool starts_again = true);
/// Reads the study file, asks a sample of it and writes its manifest into the directory, unless it is there already.
/// UserError if the study is wrong, if it is very large and --yes is missing, or if the directory holds another one.
/// `shards` of 0 takes what suits its size.
PlannedStudy planned_study(const std::string& path, const std::string& directory, const Arguments& arguments,
                           const Session& session, Environment& env, std::uint64_t shards);

/// Of the whole study, on this machine.
double estimated_seconds(const StudySample& sample, std::uint64_t cases, unsigned jobs);

/// Threads asked for with --jobs, or all cores.
unsigned jobs_of(const Arguments& arguments);

/// Runs the shards; a note on standard error says how it ended if it did not end well.
ExitCode run_shards(const PlannedStudy& planned, const std::string& directory, const std::vector<std::uint64_t>& shards,
                    const Arguments& arguments, Environment& env);

/// Merges into the targets and judges --fail-if.
ExitCode merge_results(const StudyManifest& manifest, const std::string& directory, const Arguments& arguments,
                       const Session& session, Environment& env);

}  // namespace scalecalc::cli
