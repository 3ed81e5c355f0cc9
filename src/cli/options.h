// The command line as flags and texts. What a text means is for the reader to say (flag_reader.h).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/explained.h"
#include "cli/flag.h"

namespace scalecalc::cli {

struct Command;

/// Flags of every command.
std::span<const Flag> common_flags();

class Arguments {
 public:
  bool has(std::string_view flag) const { return values_.contains(flag); }
  /// Whether one of these is given: "--mtbf --mtbf-node".
  bool has_one_of(std::string_view flags) const;
  /// The value of a flag given once; nothing if it was not given.
  std::optional<std::string> value(std::string_view flag) const;
  std::vector<std::string> values(std::string_view flag) const;
  const std::vector<std::string>& positionals() const { return positionals_; }
  const Command& command() const { return *command_; }
  /// How words were read that are none of ours: assumptions of every answer (query.h).
  const std::vector<Assumption>& readings() const { return readings_; }
  /// Another value for a flag or a word; none: the flag is taken away.
  void replace(std::string_view flag, std::vector<std::string> values);
  void replace_word(std::size_t at, std::string word) { positionals_[at] = std::move(word); }
  void note(Assumption reading) { readings_.push_back(std::move(reading)); }
  /// Values that nobody typed, for a flag that is not given (user_defaults.h).
  void suppose(std::string_view flag, std::vector<std::string> values);
  /// Given on the command line, not supposed.
  bool typed(std::string_view flag) const { return has(flag) && !supposed_.contains(flag); }

  /// The text of a file that a flag names. Read once, also of copies made later: a pipe has no second time.
  const std::string& text_of_file(const std::string& path) const;

  /// All that is said but the values of one flag: a key that two lines share if they differ in that alone.
  std::string said_but(std::string_view flag) const;

  using Values = std::map<std::string, std::vector<std::string>, std::less<>>;
  /// Without a command line: flags by name, each of which the command has; a switch has no values.
  static Arguments of(const Command& command, std::vector<std::string> positionals, Values values);

 private:
  friend Arguments parse_arguments(const std::vector<std::string>&, const Command&);
  const Command* command_ = nullptr;
  Values values_;
  std::vector<std::string> positionals_;
  std::vector<Assumption> readings_;
  std::set<std::string, std::less<>> supposed_;
  mutable std::shared_ptr<std::map<std::string, std::string>> texts_;  ///< by path; none before the first
};

/// Flags and words of other tools are read as ours (foreign_words.h). UserError for unknown flags (with the nearest), a
/// missing value, and flags given twice. The command outlives the result.
Arguments parse_arguments(const std::vector<std::string>& args, const Command& command);

/// Position of the first word that is neither a flag nor the value of one of `flags`; the number of words if none is.
std::size_t first_word(const std::vector<std::string>& args, std::span<const Flag> flags);

}  // namespace scalecalc::cli
