// Runs the program on a command line: finds the command, asks it and reports errors with their exit status.
#include "cli/run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <new>

#include "base/check.h"
#include "base/diagnostic.h"
#include "base/heap.h"
#include "base/io.h"
#include "base/run_files.h"
#include "base/shortage.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/help.h"
#include "cli/outputs.h"
#include "cli/read_names.h"
#include "cli/session.h"
#include "cli/set_effect.h"
#include "cli/user_defaults.h"
#include "cli/watch.h"
#include "report/json_text.h"

namespace scalecalc::cli {
namespace {

/// Every flag of every command, to tell values from the command while it is not known yet.
std::vector<Flag> flags_of_all() {
  std::vector<Flag> out;
  for (const Command& command : commands()) out.insert(out.end(), command.flags.begin(), command.flags.end());
  return out;
}

bool contains(const std::vector<std::string>& args, std::string_view word, std::string_view letter) {
  const auto end = std::find(args.begin(), args.end(), "--");
  return std::any_of(args.begin(), end, [&](const std::string& arg) { return arg == word || arg == letter; });
}

[[noreturn]] void unknown_command(const std::string& word) {
  std::vector<std::string> known;
  for (const Command& command : commands()) known.emplace_back(command.name);
  std::string hint = did_you_mean(nearest(word, known));
  if (!hint.empty()) hint += ' ';
  throw UserError(fmt::format("unknown command {}", in_quotes(word)),
                  fmt::format("{}commands: {}", hint, join(known, ", ")));
}

int print(Environment& env, const std::string& text) {
  write_result(env.out, text);
  return static_cast<int>(ExitCode::kAnswered);
}

bool asks_for_all(const std::vector<std::string>& words) {
  return std::find(words.begin(), words.end(), "all") != words.end();
}

const Command& known_command(const std::string& name) {
  const Command* command = find_command(name);
  if (command == nullptr) unknown_command(name);
  return *command;
}

/// `scalecalc help`, `scalecalc help COMMAND` and `scalecalc help COMMAND all`.
int help(const std::vector<std::string>& words, Environment& env) {
  if (words.empty()) return print(env, general_help());
  const Command& command = known_command(words.front());
  return print(env, asks_for_all(words) ? command_help(command) : short_help(command));
}

/// Completion says nothing of a config.yaml that is wrong: the command will.
Catalog catalog_to_complete(const Environment& env) {
  try {
    return Catalog(config_directories({}, env));
  } catch (const UserError&) {
    return Catalog();
  }
}

/// What a program about programs asks: no questions of the catalog, so no rows of the table of commands.
std::optional<int> about_itself(const std::string& name, const std::vector<std::string>& words, Environment& env) {
  if (name == "help") return help(words, env);
  if (name == "man") return print(env, words.empty() ? general_man_page() : man_page(known_command(words.front())));
  if (name == "completion") return print(env, completion_script(words));
  if (name == "complete") return print(env, completions(words, catalog_to_complete(env)));
  return std::nullopt;
}

/// A session or a directory that is wrong is left to the command, which says it among its other problems.
std::optional<Catalog> catalog_for(const Arguments& arguments, const Environment& env) {
  try {
    const Session session = read_session(arguments, env);
    return Catalog(session.config_directories, session.remembered);
  } catch (const UserError&) {
    return std::nullopt;
  }
}

Arguments understood(const std::vector<std::string>& args, const Command& command, const Environment& env) {
  Arguments out = parse_arguments(args, command);
  if (const auto catalog = catalog_for(out, env)) {
    read_names(out, *catalog);
    take_user_defaults(out, *catalog, env);
  }
  return out;
}

int dispatch(std::vector<std::string> args, Environment& env) {
  // Which flags take a value is asked of all commands, and only where a flag stands before the command.
  if (args.size() == 1 && contains(args, "--version", "-V")) return print(env, version_text());
  const bool leads = !args.empty() && !args.front().starts_with('-');
  const std::vector<Flag> own = leads ? std::vector<Flag>{} : flags_of_all();
  const Command any{.name = "train", .flags = own};
  const std::size_t at = leads ? 0 : first_word(args, flags_of(any));
  if (at == args.size()) {
    if (contains(args, "--help", "-h")) return help({}, env);
    if (contains(args, "--version", "-V")) return print(env, version_text());
    parse_arguments(args, any);  // a mistyped flag is the better complaint
    if (!args.empty()) throw UserError("no command is given", "for example: scalecalc train --help");
    env.err << opening_help();
    return static_cast<int>(ExitCode::kQuestionWrong);
  }
  const std::string name = args[at];
  args.erase(args.begin() + static_cast<std::ptrdiff_t>(at));
  if (const auto status = about_itself(name, args, env)) return *status;
  const Command* command = &known_command(name);
  if (contains(args, "--help", "-h")) {
    return print(env, asks_for_all(args) ? command_help(*command) : short_help(*command));
  }
  if (contains(args, "--version", "-V")) return print(env, version_text());
  const Arguments question = understood(args, *command, env);
  refuse_sets_without_effect(question, env);
  return static_cast<int>(command->run(question, env));
}

/// Problems for people on standard error and, where JSON was asked for, as a document on standard output.
int report_problems(const std::vector<Diagnostic>& problems, ExitCode code, bool json, Environment& env) {
  env.begin_answer();
  const bool colour = wants_colour(env, ColorMode::kAuto, env.err_is_tty);
  for (std::size_t i = 0; i < problems.size(); ++i) {
    Diagnostic problem = problems[i];
    // One hint below several problems that share it.
    if (i + 1 < problems.size() && problems[i + 1].hint == problem.hint) problem.hint.clear();
    std::string text = render(problem);
    if (const std::size_t at = text.find("error:"); colour && at != std::string::npos) {
      text.replace(at, 6, "\x1b[31merror:\x1b[0m");
    }
    env.err << text;
  }
  env.err.flush();
  // What could not be written once will not be tried again.
  const int status = env.exit_status_of(static_cast<int>(code));
  if (json && code != ExitCode::kOutputFailed) env.out << error_json(status, problems) << std::flush;
  return json && !env.out ? static_cast<int>(ExitCode::kOutputFailed) : status;
}

int report_bug(const std::string& what, const std::vector<std::string>& args, bool json, Environment& env) {
  std::string line = "scalecalc";
  for (const std::string& arg : args) line += " " + arg;
  const Diagnostic bug{
      SourceSpan{}, fmt::format("internal error: {}", what),
      fmt::format("this is a bug of scalecalc {}; please report it with the command line: {}", tool_version(), line)};
  return report_problems({bug}, ExitCode::kBug, json, env);
}

/// Of the process; read where no memory is left to ask for.
std::atomic<bool> json_asked = false;

void write_to(int fd, std::string_view text) {
  // Whoever does not read this is told by the exit status.
  if (::write(fd, text.data(), text.size()) < 0) return;
}

/// What operator new calls when the system has no more: an exception would end many a function that may not throw, and
/// the process with it, leaving unfinished files.
[[noreturn]] void end_without_memory() {
  constexpr int kCode = static_cast<int>(kShortOfResources);
  static std::atomic<bool> again = false;
  if (again.exchange(true)) ::_exit(kCode);
  discard_unfinished();
  const std::bad_alloc error;
  write_to(STDERR_FILENO, "error: memory ran out\n");
  const Diagnostic problem = shortage_of(error).value_or(Diagnostic{});
  write_to(STDERR_FILENO, "hint: " + problem.hint + "\n");
  if (json_asked) write_to(STDOUT_FILENO, error_json(kCode, std::vector{problem}));
  ::_exit(kCode);
}

}  // namespace

int report_failure(const std::vector<std::string>& args, Environment& env) {
  const bool json = asks_for_json(args);
  try {
    throw;
  } catch (const UserError& error) {
    return report_problems(error.diagnostics(), error.exit_code(), json, env);
  } catch (const Stopped&) {
    return report_problems({{SourceSpan{}, std::string(kNothingKnown), ""}}, ExitCode::kInterrupted, json, env);
  } catch (const std::exception& error) {
    if (const auto shortage = shortage_of(error)) {
      return report_problems({*shortage}, kShortOfResources, json, env);
    }
    return report_bug(error.what(), args, json, env);
  } catch (...) {
    return report_bug("an exception that is no std::exception", args, json, env);
  }
}

int run(const std::vector<std::string>& args, Environment& env) {
  const RunFiles files;
  try {
    return dispatch(args, env);
  } catch (...) {
    return report_failure(args, env);
  }
}

void begin_process() {
  use_huge_pages();
  std::set_new_handler(end_without_memory);
}

int run_process(const std::vector<std::string>& args, Environment& env) {
  json_asked = asks_for_json(args);
  try {
    const Watch watch(args, env);
    env.words_of_process = args;
    return env.exit_status_of(run(args, env));
  } catch (...) {  // the thread that waits for signals could not be started
    return report_failure(args, env);
  }
}

}  // namespace scalecalc::cli
