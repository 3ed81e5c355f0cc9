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
  std::string open;     ///< a variable in it that the script does not set
  bool quoted = false;  ///< some of it stands in quotes
};

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
