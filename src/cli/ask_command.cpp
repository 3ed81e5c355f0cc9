// Asks a command in the same process and returns its rows, for studies.
#include "cli/ask_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <sstream>
#include <unordered_map>

#include "base/diagnostic.h"
#include "base/shortage.h"
#include "cli/commands.h"
#include "cli/foreign_words.h"
#include "cli/read_names.h"
#include "cli/set_effect.h"

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
                    std::ostringstream& err, bool refuses_idle_sets) {
  StudyReply reply;
  try {
    read_names(arguments, Catalog(env.config_directories, env.remembered));
    if (refuses_idle_sets) refuse_sets_without_effect(arguments, env);
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

/// Of the rows of a reply without the question that each ends with; nothing where there is no answer.
std::optional<std::size_t> hash_of(const StudyReply& reply) {
  if (reply.exit != 0) return std::nullopt;
  std::string figures;
  std::istringstream rows(reply.records);
  for (std::string row; std::getline(rows, row);) figures += row.substr(0, row.rfind("\"question\":")) + '\n';
  return std::hash<std::string>()(figures);
}

class StudyAsker {
 public:
  StudyAsker(const Environment& env, std::vector<std::string> config_directories, bool all_records)
      : interrupted_(env.interrupted), directories_(std::move(config_directories)), all_records_(all_records) {}

  /// As the command line does, where a --set without effect is refused too.
  StudyReply ask(const StudyQuestion& question) const {
    StudyReply reply = answer(question, false);
    return reply.exit == 0 && seems_idle(question, hash_of(reply)) ? answer(question, true) : reply;
  }

 private:
  StudyReply answer(const StudyQuestion& question, bool refuses_idle_sets) const {
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
    flags["--output"] = {all_records_ ? "rows" : "row"};
    std::ostringstream out;
    std::ostringstream err;
    Environment inner{.out = out,
                      .err = err,
                      .interrupted = interrupted_,
                      .remembered = remembered_,
                      .config_directories = directories_};
    return reply_to(*command, Arguments::of(*command, question.positionals, std::move(flags)), inner, out, err,
                    refuses_idle_sets);
  }

  /// Whether one of the --set changes no row, neither as it stands nor with another number. Neighbours, which often
  /// differ in its value alone, share the rows without it, so that most questions are asked once.
  bool seems_idle(const StudyQuestion& question, std::optional<std::size_t> rows) const {
    const auto sets = question.flags.find("--set");
    if (sets == question.flags.end()) return false;
    for (std::size_t i = 0; i < sets->second.size(); ++i) {
      const auto rows_with = [&](const std::string* value) {
        StudyQuestion other = question;
        std::vector<std::string>& its = other.flags["--set"];
        if (value != nullptr) {
          its[i] = *value;
        } else {
          its.erase(its.begin() + static_cast<std::ptrdiff_t>(i));
        }
        if (its.empty()) other.flags.erase("--set");
        return rows_of(other);
      };
      if (rows_with(nullptr) != rows) continue;
      const std::vector<std::string> others = other_values(sets->second[i]);
      const bool changes = std::ranges::any_of(others, [&](const std::string& other) {
        const std::optional<std::size_t> changed = rows_with(&other);
        return changed && changed != rows;
      });
      if (!changes) return true;
    }
    return false;
  }

  /// What hash_of says of a question, asked once.
  std::optional<std::size_t> rows_of(const StudyQuestion& question) const {
    const std::string key = command_line(question);
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = known_.find(key); found != known_.end()) return found->second;
    }
    const std::optional<std::size_t> rows = hash_of(answer(question, false));
    constexpr std::size_t kMost = 65'536;  // a study may have a million
    const std::lock_guard lock(mutex_);
    if (known_.size() >= kMost) known_.clear();
    known_[key] = rows;
    return rows;
  }

  Stop interrupted_;
  std::vector<std::string> directories_;
  bool all_records_;
  std::shared_ptr<Remembered> remembered_ = std::make_shared<Remembered>();
  mutable std::mutex mutex_;
  mutable std::unordered_map<std::string, std::optional<std::size_t>> known_;  ///< of rows_of
};

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
  const auto asker = std::make_shared<StudyAsker>(env, std::move(config_directories), all_records);
  return [asker](const StudyQuestion& question) { return asker->ask(question); };
}

}  // namespace scalecalc::cli
