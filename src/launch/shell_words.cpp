#include "launch/shell_words.h"

#include <algorithm>
#include <set>
#include <string_view>

namespace scalecalc {

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
