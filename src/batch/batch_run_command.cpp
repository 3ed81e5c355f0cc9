// Runs a whole study, or shards of one that was planned, for `scalecalc batch`.
#include <fmt/format.h>
#include <stdlib.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <numeric>
#include <optional>

#include "base/io.h"
#include "base/text.h"
#include "base/units.h"
#include "batch/batch_actions_command.h"
#include "batch/files.h"
#include "batch/merge.h"

namespace scalecalc::cli {
namespace {

namespace fs = std::filesystem;

/// A directory of its own, for results that go to standard output only.
std::string temporary_directory() {
  std::string path = (fs::temp_directory_path() / "scalecalc-batch-XXXXXX").string();
  if (::mkdtemp(path.data()) != nullptr) return path;
  throw UserError(fmt::format("cannot make a directory in {}", fs::temp_directory_path().string()),
                  "name an output: -o results.jsonl", ExitCode::kOutputFailed);
}

/// Beside the first file of results; empty if there is none.
std::string work_directory(const std::vector<ResultTarget>& targets) {
  for (const ResultTarget& target : targets) {
    if (!target.path.empty()) return target.path + ".batch";
  }
  return "";
}

void say_summary(const StudyManifest& manifest, const std::string& directory, const Session& session,
                 Environment& env) {
  if (session.verbosity == Verbosity::kQuiet) return;
  const ShardStates states = shard_states(manifest, directory);
  std::string text;
  for (std::size_t i = 0; i < kRowStatuses; ++i) {
    if (states.statuses[i] == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", grouped(states.statuses[i]),
                        status_name(static_cast<RowStatus>(i)));
  }
  env.err << fmt::format("{} rows: {}\n", grouped(states.rows), text.empty() ? "none" : text);
}

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return out;
}

/// "3/64". The count must be the plan's: what a scheduler says of it can be the size of a re-submitted array.
std::uint64_t shard_of(const std::string& text, const StudyManifest& manifest) {
  const std::size_t slash = text.find('/');
  const auto shard = number_of(std::string_view(text).substr(0, slash));
  const auto shards =
      slash == std::string::npos ? std::optional(manifest.shards) : number_of(std::string_view(text).substr(slash + 1));
  if (!shard || !shards) {
    throw UserError(fmt::format("--shard {} is not I/N", in_quotes(text)),
                    fmt::format("a number from 0 to {}, then /{}", manifest.shards - 1, manifest.shards));
  }
  if (*shards != manifest.shards) {
    throw UserError(
        fmt::format("--shard {} counts {} shards, and the study was planned with {}", text, *shards, manifest.shards),
        fmt::format("--shard {}/{}", *shard, manifest.shards));
  }
  if (*shard >= manifest.shards) {
    throw UserError(fmt::format("--shard {} is out of range", in_quotes(text)),
                    fmt::format("a number from 0 to {}, then /{}", manifest.shards - 1, manifest.shards));
  }
  return *shard;
}

struct IndexVariable {
  const char* name;
  std::uint64_t first;  ///< what it calls the first shard
};
constexpr std::array kIndexVariables{IndexVariable{"SCALECALC_SHARD", 0}, IndexVariable{"SLURM_ARRAY_TASK_ID", 0},
                                     IndexVariable{"JOB_COMPLETION_INDEX", 0},
                                     IndexVariable{"AWS_BATCH_JOB_ARRAY_INDEX", 0}, IndexVariable{"SGE_TASK_ID", 1}};

std::uint64_t shard_of_environment(const Environment& env, const StudyManifest& manifest) {
  for (const IndexVariable& variable : kIndexVariables) {
    const auto value = env.get(variable.name);
    if (!value || value->empty() || *value == "undefined") continue;  // SGE outside of an array
    const auto number = number_of(*value);
    if (!number || *number < variable.first || *number - variable.first >= manifest.shards) {
      throw UserError(fmt::format("{} is {}, which is no shard", variable.name, in_quotes(*value)),
                      fmt::format("a number from {} to {}", variable.first, manifest.shards - 1 + variable.first));
    }
    return *number - variable.first;
  }
  std::vector<std::string> names;
  names.reserve(kIndexVariables.size());
  for (const IndexVariable& variable : kIndexVariables) names.emplace_back(variable.name);
  throw UserError("--shard-env: no variable says which shard", fmt::format("looked for {}", join(names, ", ")));
}

std::string goes_on_from(const std::string& directory) {
  return fmt::format("the same command goes on from {}", directory);
}

UserError interrupted(std::string hint) { return {"interrupted", std::move(hint), ExitCode::kInterrupted}; }

}  // namespace

ExitCode batch_study(const Arguments& arguments, Environment& env) {
  const Session session = read_session(arguments, env);
  const std::string path = only_positional(arguments, "STUDY.yaml", 0);
  std::string directory = work_directory(result_targets(arguments));
  // By this process, which died in a question and started again.
  const std::optional<std::string> left = handed_on_directory(env.variable);
  std::optional<Unfinished> temporary;
  if (directory.empty()) {
    directory = temporary.emplace([&] { return left ? *left : temporary_directory(); }).path();
  }
  const DirectoryLock lock(directory);
  if (arguments.has("--restart") && !left) lock.clear();
  const PlannedStudy planned = planned_study(path, directory, arguments, session, env, 0);
  const StudyManifest& manifest = planned.manifest;
  std::vector<std::uint64_t> shards(manifest.shards);
  std::iota(shards.begin(), shards.end(), 0);
  const ExitCode ran = run_shards(planned, directory, shards, arguments, env);
  if (ran == ExitCode::kInterrupted) {
    throw interrupted(temporary ? "with -o FILE the rows that landed would stay" : goes_on_from(directory));
  }
  const ExitCode judged = merge_results(manifest, directory, arguments, session, env);
  say_summary(manifest, directory, session, env);
  lock.clear();
  return ran != ExitCode::kAnswered ? ran : judged;
}

ExitCode batch_run(const Arguments& arguments, Environment& env) {
  read_session(arguments, env);
  const std::string directory = only_positional(arguments, "DIR", 1);
  const StudyManifest manifest = manifest_to_run(directory, tool_version());
  if (arguments.has("--shard") && arguments.has("--shard-env")) {
    throw UserError("--shard and --shard-env both say which shard", "give one of them");
  }
  std::vector<std::uint64_t> shards;
  if (const auto text = arguments.value("--shard")) {
    shards = {shard_of(*text, manifest)};
  } else if (arguments.has("--shard-env")) {
    shards = {shard_of_environment(env, manifest)};
  } else {
    shards.resize(manifest.shards);
    std::iota(shards.begin(), shards.end(), 0);
  }
  const ExitCode ran = run_shards(prepared_study(manifest, directory, env), directory, shards, arguments, env);
  if (ran == ExitCode::kInterrupted) throw interrupted(goes_on_from(directory));
  return ran;
}

ExitCode batch_merge(const Arguments& arguments, Environment& env) {
  const Session session = read_session(arguments, env);
  const std::string directory = only_positional(arguments, "DIR", 1);
  const StudyManifest manifest = read_manifest(directory, tool_version());
  if (find_command(manifest.study.command) == nullptr) {
    throw UserError(fmt::format("{} holds rows of {}, which this release does not know", directory,
                                in_quotes(manifest.study.command)),
                    fmt::format("merge them with scalecalc {}, which planned the study", manifest.tool_version));
  }
  const ExitCode judged = merge_results(manifest, directory, arguments, session, env);
  if (arguments.has("--clean")) clean_directory(directory);
  say_summary(manifest, directory, session, env);
  return judged;
}

}  // namespace scalecalc::cli
