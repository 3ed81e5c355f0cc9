// Reads the flags that every command has: color, verbosity, sections, limits and checks.
#include "cli/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/text.h"
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

/// Before any work: a misspelt name of --only or --columns. A name that some answer of the command has is left to the
/// answer. Nothing known: a command whose answers nobody listed.
void check_parts(std::string_view flag, const std::vector<std::string>& names, const std::vector<std::string>& known,
                 const Command& command) {
  const auto is = [](const std::string& name) {
    return [&](std::string_view other) {
      return other.ends_with('*') ? name.starts_with(other.substr(0, other.size() - 1)) : name == other;
    };
  };
  for (std::string name : names) {
    const std::string said = in_quotes(name);
    std::replace(name.begin(), name.end(), '.', flag == "--columns" ? '_' : '.');
    if (known.empty() || std::any_of(known.begin(), known.end(), is(name))) continue;
    const std::string hint = did_you_mean(nearest(name, known));
    const std::string all =
        flag == "--columns" ? "names are those of its JSON and CSV" : "sections: " + join(known, ", ");
    throw UserError(fmt::format("{}: no answer of {} has {}", flag, command.name, said),
                    fmt::format("{}{}{}", hint, hint.empty() ? "" : " ", all));
  }
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
    for (AnswerCheck& check : read_expectations(arguments.text_of_file(path), path, names)) {
      out.push_back(std::move(check));
    }
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
  const Budget budget{reader.quantity("--time-limit"), reader.quantity("--memory-limit")};
  reader.finish();
  if (env.on_budget && (budget.seconds || budget.bytes)) env.on_budget(budget);
  const std::string_view asked = arguments.command().name;
  if (!out.only.empty()) check_parts("--only", out.only, answer_sections(asked), arguments.command());
  if (!out.columns.empty()) check_parts("--columns", out.columns, answer_fields(asked), arguments.command());
  // Rows of a study have more names than its command's answers: batch reads its own.
  if (find_flag(arguments.command().flags, "--fail-if") == nullptr) {
    if (arguments.has("--fail-if") || arguments.has("--expect")) {
      out.checks = checks_asked_for(arguments, answer_fields(asked));
    }
  }
  out.perf = arguments.has("--perf");
  out.remembered =
      env.remembered ? env.remembered : std::make_shared<Remembered>();  // rows of one question share chips
  out.config_directories = config_directories(arguments.values("--config-dir"), env);
  return out;
}

}  // namespace scalecalc::cli
