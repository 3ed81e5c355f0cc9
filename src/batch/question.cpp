#include "batch/question.h"

#include <algorithm>

namespace scalecalc {
namespace {

std::string shell_word(std::string_view word) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_./=:,+%@").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return std::string(word);
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

}  // namespace

std::string command_line(const StudyQuestion& question) {
  std::string out = "scalecalc " + question.command;
  for (const std::string& word : question.positionals) out += ' ' + shell_word(word);
  for (const auto& [flag, values] : question.flags) {
    if (values.empty()) out += ' ' + flag;
    for (const std::string& value : values) out += ' ' + flag + ' ' + shell_word(value);
  }
  return out;
}

}  // namespace scalecalc
