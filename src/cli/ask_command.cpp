// Asks a command in the same process and returns its rows, for studies.
#include "cli/ask_command.h"

#include <fmt/format.h>

#include <sstream>

#include "base/diagnostic.h"
#include "base/shortage.h"
#include "cli/commands.h"
#include "cli/foreign_words.h"
#include "cli/read_names.h"

namespace scalecalc::cli {
namespace {

/// Messages of several lines on one.
std::string one_line(std::string text) {
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

/// What was said on standard error, without the word that opens each line.
std::string warnings_of(const std::string& err) {
  constexpr std::string_view kWord = "warning: ";
  std::string out;
  std::istringstream lines(err);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    const bool starts = line.starts_with(kWord);
    out += out.empty() ? "" : starts ? "; " : " ";
    out += starts ? line.substr(kWord.size()) : line;
  }
  return out;
}

std::string reason_of(const UserError& error) {
  std::string out;
  for (const Diagnostic& problem : error.diagnostics()) {
    const SourceSpan& at = problem.where;
    out += out.empty() ? "" : "; ";
    // A place on a command line that nobody typed says nothing; the question stands in the row.
    if (at.line > 0) out += fmt::format("{}:{}:{}: ", at.file.str(), at.line, at.column);
    out += problem.message;
    if (!problem.hint.empty()) out += fmt::format(" ({})", problem.hint);
  }
  return one_line(out);
}

StudyReply reply_to(const Command& command, Arguments arguments, Environment& env, std::ostringstream& out,
                    std::ostringstream& err) {
  StudyReply reply;
  try {
    read_names(arguments, Catalog(env.config_directories, env.remembered));
    reply.exit = static_cast<int>(command.run(arguments, env));
    reply.records = std::move(out).str();
    (reply.exit == 0 ? reply.warnings : reply.reason) = warnings_of(err.str());
  } catch (const UserError& error) {
    reply.exit = static_cast<int>(error.exit_code());
    reply.reason = reason_of(error);
  } catch (const Stopped& error) {
    reply.exit = static_cast<int>(ExitCode::kInterrupted);
    reply.reason = error.what();
  } catch (const std::exception& error) {
    if (shortage_of(error)) throw;  // the study ends: the next question would be short of it too
    reply.exit = static_cast<int>(ExitCode::kBug);
    reply.reason = one_line(error.what());
  }
  return reply;
}

}  // namespace

std::vector<CommandForm> command_forms() {
  std::vector<CommandForm> out;
  for (const Command& command : commands()) {
    if (command.name == "batch") continue;
    CommandForm form{std::string(command.name), {}, [&command](const std::string& flag) {
                       return meaning_of(flag, flags_of(command));
                     }};
    for (const Flag& flag : flags_of(command)) {
      form.options.push_back(
          {std::string(flag.name), flag.kind != FlagKind::kSwitch, flag.kind == FlagKind::kRepeatable, flag.writes});
    }
    out.push_back(std::move(form));
  }
  return out;
}

Ask ask_commands(const Environment& env, std::vector<std::string> config_directories, bool all_records) {
  const auto remembered = std::make_shared<Remembered>();
  return [remembered, all_records, interrupted = env.interrupted,
          directories = std::move(config_directories)](const StudyQuestion& question) -> StudyReply {
    const Command* command = find_command(question.command);
    if (command == nullptr) return {.exit = static_cast<int>(ExitCode::kBug), .reason = "there is no such command"};
    // A manifest is a file too, and may say what no study may.
    for (const auto& [name, values] : question.flags) {
      const Flag* flag = find_flag(command->flags, name);
      if (flag == nullptr || !flag->writes) continue;
      return {.exit = static_cast<int>(ExitCode::kQuestionWrong),
              .reason = fmt::format("{} is no part of a study's question", name)};
    }
    Arguments::Values flags = question.flags;
    flags["--output"] = {all_records ? "rows" : "row"};
    std::ostringstream out;
    std::ostringstream err;
    Environment inner{.out = out,
                      .err = err,
                      .interrupted = interrupted,
                      .remembered = remembered,
                      .config_directories = directories};
    return reply_to(*command, Arguments::of(*command, question.positionals, std::move(flags)), inner, out, err);
  };
}

}  // namespace scalecalc::cli
