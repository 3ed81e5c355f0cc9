#include "cli/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "batch/condition.h"
#include "cli/comma_list.h"
#include "cli/commands.h"
#include "cli/flag_reader.h"
#include "cli/user_defaults.h"
#include "report/answer_fields.h"

namespace scalecalc::cli {

std::string_view tool_version() { return SCALECALC_VERSION; }

namespace {

/// The names of a common flag; of a flag of the command's own that it shares those that are no KEY=NAME, where the
/// values of its own are.
std::vector<std::string> names_of(const Arguments& arguments, std::string_view flag) {
  std::vector<std::string> out;
  for (const std::string& value : arguments.values(flag)) {
    if (value.find('=') != std::string::npos) continue;
    for (std::string& name : comma_parts(value)) {
      if (!name.empty()) out.push_back(std::move(name));
    }
  }
  return out;
}

}  // namespace

std::vector<std::string> config_directories(std::vector<std::string> first, const Environment& env) {
  first.insert(first.end(), env.config_directories.begin(), env.config_directories.end());
  const std::string path = env.get("SCALECALC_CONFIG_PATH").value_or("");
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find(':', at), path.size());
    if (end > at) first.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  for (std::string& directory : user_config_directories(env)) first.push_back(std::move(directory));
  if (std::string own = user_directory(env); !own.empty()) first.push_back(std::move(own));
  return first;
}

std::vector<AnswerCheck> checks_asked_for(const Arguments& arguments, const std::vector<std::string>& names) {
  std::vector<AnswerCheck> out;
  check_names(arguments.values("--fail-if"), names);
  for (const std::string& condition : arguments.values("--fail-if")) out.push_back(failing_if(condition));
  const Flag* own = find_flag(arguments.command().flags, "--expect");
  const bool of_systems = own != nullptr && own->store != nullptr;  // compare's cheapest=tpu-v5p, which it reads itself
  for (const std::string& path : arguments.values("--expect")) {
    const bool condition = path.find('=') != std::string::npos;
    if (condition && of_systems) continue;
    if (std::error_code none; condition && !std::filesystem::exists(path, none)) {
      throw UserError(fmt::format("--expect {} is no file", in_quotes(path)),
                      "a file of names and values, such as mfu: {least: 0.4}; one condition is --fail-if 'mfu < 0.4'");
    }
    for (AnswerCheck& check : read_expectations(path, names)) out.push_back(std::move(check));
  }
  return out;
}

Session read_session(const Arguments& arguments, const Environment& env) {
  Session out;
  FlagReader reader(arguments, common_flags());
  if (const auto word = reader.word("--color")) out.color = static_cast<ColorMode>(*word);
  if (arguments.has("--verbose")) out.verbosity = Verbosity::kVerbose;
  if (arguments.has("--quiet")) out.verbosity = Verbosity::kQuiet;
  if (arguments.has("--quiet") && arguments.has("--verbose")) {
    reader.problem("--quiet and --verbose contradict each other", "give one of them");
  }
  out.only = names_of(arguments, "--only");
  // The columns that batch diff compares are those of files.
  if (find_flag(arguments.command().flags, "--columns") == nullptr) out.columns = names_of(arguments, "--columns");
  if (arguments.has("--quiet") && !(out.only.empty() && out.columns.empty())) {
    reader.problem(
        fmt::format("--quiet shows the headline alone, {} more of the text", out.only.empty() ? "--columns" : "--only"),
        "give one of them");
  }
  reader.finish();
  // Rows of a study have more names than its command's answers: batch reads its own.
  if (find_flag(arguments.command().flags, "--fail-if") == nullptr) {
    out.checks = checks_asked_for(arguments, answer_fields(arguments.command().name));
  }
  out.perf = arguments.has("--perf");
  out.remembered =
      env.remembered ? env.remembered : std::make_shared<Remembered>();  // rows of one question share chips
  out.config_directories = config_directories(arguments.values("--config-dir"), env);
  return out;
}

}  // namespace scalecalc::cli
