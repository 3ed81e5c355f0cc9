// Runs the actions of `batch` that compute nothing: plan, status, job files for schedulers, and diff.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/text.h"
#include "batch/batch_actions_command.h"
#include "batch/cases.h"
#include "batch/diff.h"
#include "batch/files.h"
#include "batch/job_script.h"
#include "batch/merge.h"
#include "cli/comma_list.h"
#include "cli/flag_reader.h"
#include "cli/output_command.h"
#include "cli/outputs.h"

namespace scalecalc::cli {
namespace {

/// Four parts for each of eight workers: few enough for a scheduler, many enough that none waits long for the last.
constexpr std::int64_t kUsualShards = 32;

/// Writes the output as every small command does.
ExitCode write_output(Output of_answer, const Arguments& arguments, const Session& session, Environment& env,
                      const std::vector<std::string>& outputs_asked) {
  OutputTargets outputs(outputs_asked, arguments.has("--json"));
  refuse_parts_of_files(session, outputs);
  write_formats(with_query(std::move(of_answer), arguments), session, outputs, false, env);
  return ExitCode::kAnswered;
}

double number(std::uint64_t n) { return static_cast<double>(n); }

}  // namespace

ExitCode batch_plan(const Arguments& arguments, Environment& env) {
  const Session session = read_session(arguments, env);
  const std::string path = only_positional(arguments, "STUDY.yaml", 1);
  FlagReader reader(arguments);
  const auto shards = reader.count("--shards");
  reader.finish();
  const std::vector<std::string> places = arguments.values("--output");
  if (places.size() != 1) {
    throw UserError("-o DIR says where the plan and its results go, once", "scalecalc batch plan STUDY.yaml -o out");
  }
  const std::string& directory = places.front();
  std::optional<DirectoryLock> lock;  // a sample's question that the program dies in is noted there
  if (!has_manifest(directory)) lock.emplace(directory);
  const PlannedStudy planned = planned_study(path, directory, arguments, session, env,
                                             static_cast<std::uint64_t>(shards.value_or(kUsualShards)));
  const StudyManifest& manifest = planned.manifest;
  const unsigned jobs = jobs_of(arguments);
  Output output{.command = "batch-plan", .title = fmt::format("Study of {}", manifest.study.command)};
  Record record;
  record.figures.push_back(figure("directory", "directory", Format::kText, Cell(directory)));
  record.figures.push_back(figure("cases", "points", Format::kInteger, Cell(number(manifest.cases))));
  record.figures.push_back(figure("shards", "shards", Format::kInteger, Cell(number(manifest.shards))));
  Cell seconds;
  if (planned.sample) seconds = estimated_seconds(*planned.sample, manifest.cases, jobs);
  record.figures.push_back(figure("estimated_time_s", fmt::format("time, {} threads (sampled)", jobs), Format::kSeconds,
                                  std::move(seconds)));
  record.figures.push_back(figure("manifest_sha256", "manifest", Format::kText, Cell(manifest.hash)));
  output.blocks.push_back({.title = "Plan", .is_list = false, .records = {std::move(record)}});
  output.notes.push_back(
      fmt::format("scalecalc batch run {} --shard I/{} computes a shard, --shard-env the one a job "
                  "array names; batch script writes job files.",
                  directory, manifest.shards));
  return write_output(output, arguments, session, env, {});
}

ExitCode batch_status(const Arguments& arguments, Environment& env) {
  const Session session = read_session(arguments, env);
  const std::string directory = only_positional(arguments, "DIR", 1);
  const StudyManifest manifest = read_manifest(directory, tool_version());
  const ShardStates states = shard_states(manifest, directory);
  std::vector<std::uint64_t> todo = states.missing;
  todo.insert(todo.end(), states.foreign.begin(), states.foreign.end());
  todo.insert(todo.end(), states.damaged.begin(), states.damaged.end());
  std::sort(todo.begin(), todo.end());
  if (arguments.has("--missing")) {
    write_result(env.out, todo.empty() ? "" : index_list(todo) + "\n");
    return ExitCode::kAnswered;
  }
  Output output{.command = "batch-status",
                .title = fmt::format("Study of {} in {}", manifest.study.command, directory)};
  Record record;
  const auto add = [&](std::string_view key, std::string_view label, std::uint64_t value) {
    record.figures.push_back(figure(key, label, Format::kInteger, Cell(number(value))));
  };
  add("cases", "points", manifest.cases);
  add("shards", "shards", manifest.shards);
  add("shards_done", "shards done", manifest.shards - todo.size());
  add("shards_missing", "shards missing", states.missing.size());
  add("shards_foreign", "shards of another study", states.foreign.size());
  add("shards_damaged", "shards damaged", states.damaged.size());
  add("rows", "rows", states.rows);
  for (std::size_t i = 0; i < kRowStatuses; ++i) {
    const std::string name(status_name(static_cast<RowStatus>(i)));
    add("statuses." + name, "rows " + name, states.statuses[i]);
  }
  record.figures.push_back(figure("missing", "to run", Format::kText, Cell(index_list(todo))));
  output.blocks.push_back({.title = "Shards and rows", .is_list = false, .records = {std::move(record)}});
  return write_output(output, arguments, session, env, arguments.values("--output"));
}

ExitCode batch_script(const Arguments& arguments, Environment& env) {
  const std::string directory = only_positional(arguments, "DIR", 1);
  const StudyManifest manifest = manifest_to_run(directory, tool_version());
  FlagReader reader(arguments);
  const auto engine = reader.word("--engine");
  if (!arguments.has("--engine")) {
    reader.problem("--engine is missing: whose job file?", fmt::format("one of {}", fmt::join(kJobEngines, ", ")));
  }
  reader.finish();
  const unsigned jobs = arguments.has("--jobs") ? jobs_of(arguments) : 1;
  write_result(env.out, job_script(static_cast<JobEngine>(*engine), {directory, manifest.shards, jobs}));
  return ExitCode::kAnswered;
}

ExitCode batch_diff(const Arguments& arguments, Environment& env) {
  const Session session = read_session(arguments, env);
  const std::vector<std::string>& words = arguments.positionals();
  if (words.size() != 3) {
    throw UserError("batch diff compares two files of results", "scalecalc batch diff old.jsonl new.jsonl");
  }
  FlagReader reader(arguments);
  DiffOptions options{.tolerance = reader.quantity("--tolerance").value_or(0)};
  reader.finish();
  if (const auto columns = arguments.value("--columns")) options.columns = comma_parts(*columns);
  options.worse = arguments.has("--worse");
  const ResultDiff diff = diff_results(words[1], words[2], options);
  write_output(diff_output(diff, options), arguments, session, env, arguments.values("--output"));
  return diff.differences.empty() ? ExitCode::kAnswered : ExitCode::kCheckFailed;
}

}  // namespace scalecalc::cli
