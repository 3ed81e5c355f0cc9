// Splits and classifies the words of a bash script, for the reader of launch scripts.
#include "launch/shell_words.h"

#include <algorithm>
#include <set>
#include <string_view>

namespace scalecalc {

void append_word(ShellWord& word, const ShellWord& more) {
  const std::size_t before = word.text.chars.size();
  word.text.add(more.text);
  if (!word.open.empty() || more.open.empty()) return;
  const bool wholly = more.open_at == ShellWord::kWholly;
  word.open = more.open;
  word.open_at = !wholly ? before + more.open_at : before == 0 ? ShellWord::kWholly : before;
}

bool append_split(std::vector<ShellWord>& out, const ShellWord& value) {
  const auto leave_open = [&](std::size_t begin) {
    ShellWord& word = out.back();
    if (!word.open.empty()) return;
    word.open = value.open;
    word.open_at = word.text.chars.size();
    if (word.text.chars.empty()) word.begin = begin;
  };
  const std::string& text = value.text.chars;
  const bool wholly = value.open_at == ShellWord::kWholly;
  const std::size_t open_at = wholly ? 0 : value.open_at;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (!value.open.empty() && i == open_at && (!wholly || text.empty())) {
      leave_open(i == 0 ? value.begin : value.text.at[i - 1] + 1);
    }
    if (i == text.size()) break;
    if (is_shell_blank(text[i]) || text[i] == '\n') {
      if (!out.back().text.chars.empty() || !out.back().open.empty()) out.emplace_back();
      continue;
    }
    out.back().text.add(text[i], value.text.at[i]);
    if (wholly && !value.open.empty()) leave_open(value.begin);
  }
  const bool empty = out.back().text.chars.empty() && out.back().open.empty();
  if (empty && out.size() > 1) out.pop_back();
  return !value.open.empty() || text.find_first_not_of(" \t\n") != std::string::npos;
}

bool is_shell_flag(const std::string& word) {
  return word.size() > 1 && word[0] == '-' &&
         (word[1] == '-' || std::isalpha(static_cast<unsigned char>(word[1])) != 0) &&
         word.find(' ') == std::string::npos;
}

bool is_override_key(const std::string& key) {
  return std::all_of(key.begin(), key.end(), [](char c) { return in_shell_name(c) || c == '.' || c == '+'; });
}

bool is_housekeeping(const std::string& name) {
  static const std::set<std::string, std::less<>> kNames{
      "set",   "echo", "cd",  "mkdir",  "rm",   "cp",     "mv",   "cat",   "ls",       "source",     ".",    "module",
      "pip",   "pip3", "git", "printf", "if",   "[",      "[[",   "test",  "sed",      "awk",        "grep", "date",
      "sleep", "wait", "tee", "head",   "tail", "ulimit", "kill", "pkill", "scontrol", "nvidia-smi", "exit", "shift"};
  return kNames.contains(name);
}

bool opens_yaml_map(const std::string& content) {
  std::size_t at = 0;
  while (at < content.size()) {
    const std::size_t end = std::min(content.find('\n', at), content.size());
    const std::string line = content.substr(at, end - at);
    at = end + 1;
    if (line.empty() || line[0] == '#' || is_shell_blank(line[0])) continue;
    std::size_t key = 0;
    while (key < line.size() && in_shell_name(line[key])) ++key;
    return key > 0 && key < line.size() && line[key] == ':' && (key + 1 == line.size() || line[key + 1] == ' ');
  }
  return false;
}

}  // namespace scalecalc
