// The command line as flags and texts. What a text means is for the command to say (train_options.h).
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace scalecalc::cli {

enum class FlagKind {
  kSwitch,         ///< takes no value
  kValue,          ///< takes one
  kRepeatable,     ///< takes one each time
  kOptionalCount,  ///< may take a number
};

struct Flag {
  std::string_view name;  ///< "--chips"
  char letter = 0;        ///< 'o' for -o
  FlagKind kind = FlagKind::kValue;
  std::string_view value;  ///< what help calls the value: "N"
  std::string_view help;
  std::string_view example;  ///< a value, for the message that one is missing
};

/// Flags of every command.
std::span<const Flag> common_flags();

class Arguments {
 public:
  bool has(std::string_view flag) const { return values_.contains(flag); }
  /// The value of a flag given once; nothing if it was not given.
  std::optional<std::string> value(std::string_view flag) const;
  std::vector<std::string> values(std::string_view flag) const;
  const std::vector<std::string>& positionals() const { return positionals_; }

  using Values = std::map<std::string, std::vector<std::string>, std::less<>>;
  /// Without a command line: flags by name, each of which the command has; a switch has no values.
  static Arguments of(std::vector<std::string> positionals, Values values);

 private:
  friend Arguments parse_arguments(const std::vector<std::string>&, std::span<const Flag>, std::string_view);
  Values values_;
  std::vector<std::string> positionals_;
};

/// UserError for unknown flags (with the nearest), a missing value, and flags given twice.
Arguments parse_arguments(const std::vector<std::string>& args, std::span<const Flag> flags, std::string_view command);

/// The flag a word stands for ("--chips", "--chips=4", "-ojson"); nullptr if none.
const Flag* find_flag(std::string_view word, std::span<const Flag> flags);
/// The word after this one is the flag's value.
bool takes_next(std::string_view word, const Flag& flag);
/// Looks like a flag: starts with a dash, but is no number and not the name of standard input.
bool looks_like_flag(std::string_view word);

/// "  --chips N   how many chips", wrapped.
std::string flag_help(std::span<const Flag> flags);

}  // namespace scalecalc::cli
