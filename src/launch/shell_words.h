// Words of a script, and what they look like.
#pragma once

#include <cctype>
#include <cstddef>
#include <string>
#include <vector>

namespace scalecalc {

/// Characters that know where they stand in the script.
struct ShellPiece {
  std::string chars;
  std::vector<std::size_t> at;

  void add(char c, std::size_t offset) {
    chars += c;
    at.push_back(offset);
  }
  void add(const ShellPiece& other) {
    chars += other.chars;
    at.insert(at.end(), other.at.begin(), other.at.end());
  }
};

struct ShellWord {
  ShellPiece text;
  std::size_t begin = 0;
  std::string open;         ///< a variable in it that the script does not set
  std::size_t open_at = 0;  ///< how much of the text stands before that variable; kWholly: all of it is open
  bool quoted = false;      ///< some of it stands in quotes

  static constexpr std::size_t kWholly = static_cast<std::size_t>(-1);
  /// Nothing but a variable that the script does not set.
  bool is_only_open() const { return text.chars.empty() && !open.empty(); }
};

/// Puts one behind another, as in quotes.
void append_word(ShellWord& word, const ShellWord& more);
/// The same without quotes: split at blanks into further words. Whether something was put there.
bool append_split(std::vector<ShellWord>& out, const ShellWord& value);

inline bool in_shell_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
inline bool is_shell_blank(char c) { return c == ' ' || c == '\t'; }

/// "--flag", "-f"
bool is_shell_flag(const std::string& word);
/// A key of "key=value".
bool is_override_key(const std::string& key);
/// Commands whose flags are of no launch.
bool is_housekeeping(const std::string& name);
/// Whether the first line that says something is a key of YAML.
bool opens_yaml_map(const std::string& content);

}  // namespace scalecalc
