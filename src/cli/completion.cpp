// Completes words of a command line from the table of flags and the catalog, and prints the shells' scripts.
#include "cli/completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/diagnostic.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/outputs.h"
#include "spec/kernel_spec.h"

namespace scalecalc::cli {
namespace {

struct Shell {
  std::string_view name;
  std::string_view script;
};

constexpr std::array kShells{Shell{"bash", R"sh(# In ~/.bashrc: eval "$(scalecalc completion bash)"
_scalecalc() {
  local IFS=$'\n'
  COMPREPLY=($(scalecalc complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _scalecalc scalecalc
)sh"},
                             Shell{"zsh", R"sh(# In ~/.zshrc, behind compinit: eval "$(scalecalc completion zsh)"
_scalecalc() {
  local found=$(scalecalc complete "${(@)words[2,CURRENT]}" 2>/dev/null)
  if [[ -n $found ]]; then compadd -- "${(@f)found}"; else _files; fi
}
compdef _scalecalc scalecalc
)sh"},
                             Shell{"fish", R"sh(# scalecalc completion fish > ~/.config/fish/completions/scalecalc.fish
function __scalecalc_complete
  set -l words (commandline -opc)
  set -e words[1]
  set -l current (commandline -ct)
  scalecalc complete $words "$current" 2>/dev/null
end
complete -c scalecalc -a '(__scalecalc_complete)'
)sh"}};

using Names = std::vector<std::string>;

Names names_of(LegalWords words) { return {words.begin(), words.end()}; }

Names command_names() {
  Names out;
  for (const Command& command : commands()) out.emplace_back(command.name);
  return out;
}

/// Help's word for a value says what it names.
Names names_for(std::string_view placeholder, const Catalog& catalog) {
  const auto has = [&](std::string_view word) { return placeholder.find(word) != std::string_view::npos; };
  if (has("FILE") && !has("FORMAT")) return {};
  if (has("HW") || has("SYSTEMS")) return catalog.names(CatalogKind::kHardware);
  if (has("MODEL") || has("STUDENT") || has("TEACHER")) return catalog.names(CatalogKind::kModel);
  if (has("KERNEL")) {
    Names out = catalog.names(CatalogKind::kKernel);
    out.insert(out.end(), {std::string(kFusedWord), std::string(kUnfusedWord)});
    return out;
  }
  if (has("[@VERSION]")) return catalog.names(CatalogKind::kStack);
  if (has("FORMAT[=FILE]")) return names_of(output_format_names());
  return {};
}

Names values_of(const Flag& flag, const Catalog& catalog) {
  return flag.words.empty() ? names_for(value_name(flag), catalog) : names_of(flag.words);
}

/// Those that begin as what was typed does; of a list with commas behind the last of them.
std::string matching(const Names& names, const std::string& typed) {
  const std::size_t comma = typed.rfind(',');
  const std::string before = comma == std::string::npos ? "" : typed.substr(0, comma + 1);
  std::string out;
  for (const std::string& name : names) {
    if (name.starts_with(typed.substr(before.size()))) out += before + name + '\n';
  }
  return out;
}

/// "--hw", "-o"
const Flag* flag_called(const std::string& word, const std::vector<Flag>& flags) {
  const bool letter = word.size() == 2 && word[0] == '-';
  const auto it = std::find_if(flags.begin(), flags.end(),
                               [&](const Flag& f) { return letter ? f.letter == word[1] : f.name == word; });
  return it == flags.end() ? nullptr : &*it;
}

bool takes_next_word(const Flag* flag) {
  return flag != nullptr && (flag->kind == FlagKind::kValue || flag->kind == FlagKind::kRepeatable);
}

}  // namespace

std::string completion_script(const std::vector<std::string>& words) {
  for (const Shell& shell : kShells) {
    if (words.size() == 1 && words.front() == shell.name) return std::string(shell.script);
  }
  throw UserError(words.empty() ? "completion: of which shell?" : fmt::format("no script for {}", in_quotes(words[0])),
                  "scalecalc completion bash, zsh or fish");
}

std::string completions(const std::vector<std::string>& words, const Catalog& catalog) {
  if (words.size() <= 1) {
    Names names = command_names();
    names.insert(names.end(), {"help", "man", "completion"});
    return matching(names, words.empty() ? "" : words.front());
  }
  const std::string& typed = words.back();
  if (words[0] == "completion") return matching({"bash", "zsh", "fish"}, typed);
  const Command* command = find_command(words[0]);
  if (command == nullptr) return words[0] == "help" || words[0] == "man" ? matching(command_names(), typed) : "";
  const std::vector<Flag> flags = flags_of(*command);
  // bash makes three words of --hw=h100
  const bool equals = typed == "=" || words[words.size() - 2] == "=";
  const std::size_t back = typed == "=" ? 2 : equals ? 3 : 2;
  const Flag* flag = words.size() >= back ? flag_called(words[words.size() - back], flags) : nullptr;
  if (takes_next_word(flag)) return matching(values_of(*flag, catalog), typed == "=" ? "" : typed);
  if (!typed.starts_with('-')) {
    Names names = command->names ? catalog.names(*command->names) : Names{};
    for (const Mode& mode : command->modes) {  // "model list"
      const std::size_t blank = mode.name.find(' ');
      const std::string_view word = blank == std::string_view::npos ? "" : mode.name.substr(blank + 1);
      const bool is_word =
          !word.empty() && std::all_of(word.begin(), word.end(), [](char c) { return c >= 'a' && c <= 'z'; });
      if (is_word && words.size() == 2) names.emplace_back(word);
    }
    return matching(names, typed);
  }
  Names names;
  for (const Flag& each : flags) names.emplace_back(each.name);
  return matching(names, typed);
}

}  // namespace scalecalc::cli
