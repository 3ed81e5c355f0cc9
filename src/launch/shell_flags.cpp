// Finds the arguments of the command that a launch script starts.
#include "launch/shell_flags.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace scalecalc {
namespace {

/// A command in quotes, as for bash -c or eval, is words too.
void split_commands(std::vector<ShellWord>& words) {
  std::vector<ShellWord> out;
  for (ShellWord& word : words) {
    const std::string& text = word.text.chars;
    const bool runs = text.find(" --") != std::string::npos || text.find("python") != std::string::npos;
    const bool command = word.quoted && runs && text.find(' ') != std::string::npos && text[0] != '{';
    if (!command) {
      out.push_back(std::move(word));
      continue;
    }
    std::vector<ShellWord> parts(1);
    append_split(parts, word);
    for (ShellWord& part : parts) out.push_back(std::move(part));
  }
  words = std::move(out);
}

bool is_override(const ShellWord& word) {
  const std::size_t equals = word.text.chars.find('=');
  return equals != std::string::npos && equals > 0 && !word.quoted &&
         is_override_key(word.text.chars.substr(0, equals));
}

/// "$@", "${MORE[@]}", "$EXTRA_ARGS": by its name a variable of whole arguments, not of a value.
bool holds_arguments(std::string_view variable) {
  if (variable.starts_with("$@") || variable.starts_with("$*") || variable.starts_with("${@")) return true;
  const std::string name = lower_case(variable);
  constexpr std::array<std::string_view, 6> kEnds{"[@]}", "args", "opts", "options", "flags", "extra"};
  return std::any_of(kEnds.begin(), kEnds.end(), [&](std::string_view end) { return name.ends_with(end); });
}

}  // namespace

SourceSpan place_of_word(const ShellWord& word, const SourceText& source) {
  const std::size_t begin = word.text.at.empty() ? word.begin : word.text.at.front();
  return source.span(begin, begin + std::max<std::size_t>(1, word.text.chars.size()));
}

std::vector<LaunchSetting> flag_settings(std::vector<ShellWord>& words, const SourceText& source) {
  std::vector<LaunchSetting> out;
  if (!words.empty() && is_housekeeping(words.front().text.chars)) return out;
  split_commands(words);
  const bool has_flags =
      std::any_of(words.begin(), words.end(), [](const ShellWord& word) { return is_shell_flag(word.text.chars); });
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& text = words[i].text.chars;
    const std::size_t equals = text.find('=');
    if (!is_shell_flag(text)) {
      if (words[i].is_only_open() && has_flags && (!out.empty() || holds_arguments(words[i].open))) {
        out.push_back({std::string(kFurtherArguments), {}, place_of_word(words[i], source), words[i].open});
      } else if ((i > 0 || words.size() > 1) && equals != std::string::npos && equals > 0 &&
                 is_override_key(text.substr(0, equals))) {
        const std::string key = text.substr(0, equals);
        const bool variable = key.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == std::string::npos;
        out.push_back(
            {variable ? "env:" + key : key, {text.substr(equals + 1)}, place_of_word(words[i], source), words[i].open});
      }
      continue;
    }
    if (text == "-m" || text == "-u" || text == "-c") continue;  // of python and bash
    LaunchSetting setting{
        .key = text.substr(0, equals), .values = {}, .where = place_of_word(words[i], source), .open = words[i].open};
    if (equals != std::string::npos) setting.values.push_back(text.substr(equals + 1));
    while (equals == std::string::npos && i + 1 < words.size() && !is_shell_flag(words[i + 1].text.chars) &&
           !is_override(words[i + 1])) {
      const ShellWord& next = words[i + 1];
      const bool has_value = !setting.values.empty() && setting.open.empty();
      if (next.is_only_open() && (has_value || holds_arguments(next.open))) break;
      ++i;
      setting.values.push_back(next.text.chars);
      if (setting.open.empty()) setting.open = next.open;
    }
    out.push_back(std::move(setting));
  }
  return out;
}

}  // namespace scalecalc
