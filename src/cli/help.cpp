// Prints help, man pages and the version from the tables of commands and flags.
#include "cli/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "cli/comma_list.h"
#include "cli/session.h"
#include "config/catalog.h"

namespace scalecalc::cli {
namespace {

constexpr std::size_t kWidth = 96;
/// Where the text of a flag begins.
constexpr std::size_t kColumn = 26;

std::string exit_statuses(const Command& command) {
  std::string out = "0 answered, ";
  out +=
      fmt::format("1 {}{}--fail-if or --expect fails, ", command.check_fails, command.check_fails.empty() ? "" : ", ");
  out += "2 the question is wrong, ";
  if (!command.nothing_fits.empty()) out += fmt::format("3 {}, ", command.nothing_fits);
  return out +
         "70 a bug of ours, 71 short of memory or threads, 74 the output could not be written, 75 a limit ended it, "
         "130 or 143 interrupted";
}

/// The common flags that the command has no flag of its own for.
std::vector<Flag> other_flags(const Command& command) {
  std::vector<Flag> out;
  std::copy_if(common_flags().begin(), common_flags().end(), std::back_inserter(out),
               [&](const Flag& flag) { return find_flag(command.flags, flag.name) == nullptr; });
  return out;
}

std::string left_of(const Flag& flag) {
  std::string out =
      flag.letter != 0 ? fmt::format("  -{}, {}", flag.letter, flag.name) : fmt::format("      {}", flag.name);
  if (const std::string value = value_name(flag); !value.empty()) out += ' ' + value;
  return out;
}

std::string flag_lines(const Flag& flag) {
  const std::string left = left_of(flag);
  std::string right;
  for (const char c : wrap(help_text(flag), kWidth - kColumn, 0)) {
    right += c;
    if (c == '\n') right.append(kColumn, ' ');
  }
  const bool fits = left.size() + 2 <= kColumn;
  return fits ? fmt::format("{:<{}}{}\n", left, kColumn, right)
              : fmt::format("{}\n{:<{}}{}\n", left, "", kColumn, right);
}

/// The title and a line or more for each flag; those of some modes alone behind the others.
std::string flag_help(std::string_view title, std::span<const Flag> flags, std::span<const Mode> modes) {
  const Modes all = (1U << modes.size()) - 1;
  std::vector<std::pair<Modes, std::string>> groups{{all, ""}};  // those of every mode first
  for (const Flag& flag : flags) {
    if (find_flag(flags, flag.name) != &flag) continue;
    const Modes those = modes_of(flags, flag.name) & all;
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == those; });
    if (group == groups.end()) group = groups.insert(groups.end(), {those, ""});
    group->second += flag_lines(flag);
  }
  std::string out = fmt::format("{}:\n{}", title, groups.front().second);
  for (auto group = groups.begin() + 1; group != groups.end(); ++group) {
    std::vector<std::string> names;
    for (std::size_t m = 0; m < modes.size(); ++m) {
      if ((group->first & (1U << m)) != 0) names.emplace_back(modes[m].name);
    }
    out += fmt::format("\nof {}:\n{}", join_and(names), group->second);
  }
  return out;
}

/// As much of the help as fits one line: to the end of its first clause, if that says something.
std::string first_clause(const std::string& help, std::size_t width) {
  if (help.size() <= width) return help;
  constexpr std::size_t kSomething = 20;
  std::size_t comma = 0;
  for (std::size_t at = kSomething; at < width; ++at) {
    const char c = help[at];
    if (c == ';' || c == ':') return help.substr(0, at);
    if (c == ' ' && help[at + 1] == '(') return help.substr(0, at);
    if (c == ',') comma = at;
  }
  return help.substr(0, comma > 0 ? comma : help.rfind(' ', width));
}

/// One line; of a long list of words the flag alone.
std::string short_line(const Flag& flag) {
  std::string left = left_of(flag);
  constexpr std::string_view kMore = " ...";
  if (left.size() + 2 > kColumn) left.resize(left.rfind(' '));
  if (left.size() + kMore.size() + 2 <= kColumn && left.size() < left_of(flag).size()) left += kMore;
  return fmt::format("{:<{}}{}\n", left, kColumn, first_clause(help_text(flag), kWidth - kColumn));
}

std::string group_lines(std::string_view title, std::string_view names, std::span<const Flag> flags) {
  std::string out = fmt::format("\n{}:\n", title);
  for (const std::string& name : parts_between(names, ' ')) {
    const Flag* flag = find_flag(flags, name);
    check(flag != nullptr, "a common flag of a command is one of its flags");
    out += short_line(*flag);
  }
  return out;
}

std::size_t catalog_entries(std::string_view folder, std::string_view but) {
  const auto files = embedded_catalog();
  return static_cast<std::size_t>(std::count_if(files.begin(), files.end(), [&](const EmbeddedFile& file) {
    return file.path.starts_with(folder) && !file.path.starts_with(but);
  }));
}

/// As text of roff: a backslash or a leading dot would be read as its own.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
      out += c;
    }
  }
  return out;
}

std::string roff_flags(std::string_view title, std::span<const Flag> flags) {
  std::string out = fmt::format(".SH {}\n", title);
  for (const Flag& flag : flags) {
    if (find_flag(flags, flag.name) != &flag) continue;
    std::string name = fmt::format("\\fB{}\\fR", roff(flag.name));
    if (flag.letter != 0) name = fmt::format("\\fB\\-{}\\fR, {}", flag.letter, name);
    if (const std::string value = value_name(flag); !value.empty()) name += fmt::format(" \\fI{}\\fR", roff(value));
    out += fmt::format(".TP\n{}\n{}\n", name, roff(help_text(flag)));
  }
  return out;
}

std::string roff_head(std::string_view name, std::string_view summary) {
  std::string upper(name);
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](char c) { return static_cast<char>(std::toupper(static_cast<unsigned char>(c))); });
  return fmt::format(".TH {} 1 \"\" \"scalecalc {}\"\n.SH NAME\n{} \\- {}\n", roff(upper), tool_version(), roff(name),
                     roff(summary));
}

std::string roff_lines(std::string_view title, std::string_view text) {
  return text.empty() ? "" : fmt::format(".SH {}\n.nf\n{}.fi\n", title, roff(text));
}

}  // namespace

std::string_view first_example(const Command& command) {
  std::size_t end = command.examples.find('\n');
  while (end != std::string_view::npos && end > 0 && command.examples[end - 1] == '\\') {
    end = command.examples.find('\n', end + 1);
  }
  return end == std::string_view::npos ? command.examples : command.examples.substr(0, end + 1);
}

std::string opening_help() {
  std::string names;
  for (const Command& command : commands()) names += fmt::format("{}{}", names.empty() ? "" : " ", command.name);
  constexpr std::size_t kIndent = 2;
  return fmt::format(
      "scalecalc computes how large language models scale on real machines: times, memory, dollars.\n"
      "\n"
      "{}  scalecalc model list                        and: scalecalc hw list\n"
      "\n"
      "{}\n"
      "scalecalc help: an example of each; scalecalc help COMMAND: one of them and its flags\n",
      [] {
        std::string examples;
        for (const char* name : {"train", "serve", "compare"}) examples += first_example(*find_command(name));
        return examples;
      }(),
      wrap("commands: " + names, kWidth, kIndent));
}

std::string general_help() {
  std::string out =
      "scalecalc computes how large language models scale on real machines: times, memory, dollars.\n"
      "\n"
      "usage: scalecalc COMMAND [ARGUMENTS]\n"
      "\n"
      "examples:\n";
  for (const Command& command : commands()) out += first_example(command);
  out += "\ncommands:\n";
  for (const Command& command : commands()) out += fmt::format("  {:<12}{}\n", command.name, command.summary);
  return out +
         "\nscalecalc help COMMAND explains one of them, help COMMAND all every flag of it.\n"
         "scalecalc completion bash|zsh|fish and scalecalc man [COMMAND] print what shells and man read.\n";
}

std::string short_help(const Command& command) {
  if (command.common.empty()) return command_help(command);
  const std::vector<Flag> flags = flags_of(command);
  std::string out = fmt::format("{}\n\nusage: scalecalc {} {}\n\nexamples:\n{}", command.summary, command.name,
                                command.usage, command.examples);
  std::size_t shown = 0;
  for (const FlagGroup& group : command.common) {
    out += group_lines(group.title, group.flags, flags);
    shown += parts_between(group.flags, ' ').size();
  }
  std::string_view answer = "--explain --output --fail-if --quiet --verbose";
  if (find_flag(flags, "--explain") == nullptr) answer.remove_prefix(answer.find(' ') + 1);
  out += group_lines("the answer", answer, flags);
  shown += parts_between(answer, ' ').size();
  return out + fmt::format("\n{} more flags: scalecalc {} --help all; docs/manual/{}.md\n", flags.size() - shown,
                           command.name, command.name);
}

std::string command_help(const Command& command) {
  std::string out = fmt::format(
      "{}\n"
      "\n"
      "usage: scalecalc {} {}\n"
      "\n"
      "examples:\n{}"
      "\n{}"
      "\n{}",
      command.summary, command.name, command.usage, command.examples, flag_help("flags", command.flags, command.modes),
      flag_help("flags of every command", other_flags(command), {}));
  if (!command.notes.empty()) out += fmt::format("\n{}", command.notes);
  const std::vector<std::string> pictures = drawings(command);
  if (!pictures.empty())
    out += fmt::format("\n{}\n", wrap(fmt::format("--plot draws {}.", join(pictures, "; ")), kWidth));
  constexpr std::size_t kIndent = 13;
  if (!command.own_exits) out += fmt::format("\n{}\n", wrap("exit status: " + exit_statuses(command), kWidth, kIndent));
  return out;
}

std::string general_man_page() {
  std::string out = roff_head("scalecalc", "how large language models scale on real machines: times, memory, dollars");
  out += ".SH SYNOPSIS\n\\fBscalecalc\\fR \\fICOMMAND\\fR [\\fIARGUMENTS\\fR]\n.SH COMMANDS\n";
  for (const Command& command : commands()) {
    out += fmt::format(".TP\n\\fBscalecalc\\-{}\\fR(1)\n{}\n", roff(command.name), roff(command.summary));
  }
  return out + roff_flags("FLAGS OF EVERY COMMAND", common_flags());
}

std::string man_page(const Command& command) {
  std::string out = roff_head(fmt::format("scalecalc-{}", command.name), command.summary);
  out += fmt::format(".SH SYNOPSIS\n\\fBscalecalc {}\\fR {}\n", roff(command.name), roff(command.usage));
  out += roff_flags("FLAGS", command.flags) + roff_flags("FLAGS OF EVERY COMMAND", other_flags(command));
  out += roff_lines("EXAMPLES", command.examples) + roff_lines("NOTES", command.notes);
  if (!command.own_exits) out += fmt::format(".SH EXIT STATUS\n{}\n", roff(exit_statuses(command)));
  return out + ".SH SEE ALSO\n\\fBscalecalc\\fR(1)\n";
}

std::string version_text() {
  return fmt::format("scalecalc {}\ncommit {}\ncatalog: {} chips and systems, {} models\n", tool_version(),
                     commit_built(), catalog_entries("hardware/", "hardware/book/"), catalog_entries("models/", "-"));
}

}  // namespace scalecalc::cli
