// A launch file as settings with their places, and what they say of a plan: the rows of the framework's table as
// equations, solved for what is not known.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "launch/framework.h"
#include "launch/terms.h"

namespace scalecalc {

/// One argument as a file gives it. A switch has no value.
struct LaunchSetting {
  std::string key;
  std::vector<std::string> values;
  SourceSpan where;
  std::string open;  ///< why the value is not in the file: "$NNODES"; empty: it is
};

/// The key of arguments that a variable holds which the file does not set: of no one setting, perhaps of any.
inline constexpr std::string_view kFurtherArguments = "further arguments";
/// Why the file that an argument names is open.
inline constexpr std::string_view kUnreadFile = "a file of its own that was not read";

/// What a file holds: arguments in their order, whichever way it writes them.
struct LaunchText {
  LaunchFormat format = LaunchFormat::kShell;
  std::vector<LaunchSetting> settings;
  std::optional<std::int64_t> chips{};  ///< of the machine it is for, where what surrounds the command says so
  std::vector<std::string> written{};   ///< names of files that a script writes
};

/// By what the text looks like. UserError with its place for one that cannot be read.
LaunchText read_launch_text(std::string_view text, const std::string& file);
LaunchText read_shell(std::string_view text, const std::string& file);
LaunchText read_toml(std::string_view text, const std::string& file);

/// The one of `known` whose arguments most of these are. UserError if they are nobody's.
const LaunchFramework& framework_of(const LaunchText& file, std::string_view text, const std::string& name,
                                    const LaunchFrameworks& known = launch_frameworks());

struct LaunchReading {
  LaunchTerms terms;
  std::map<std::string, SourceSpan, std::less<>> places;  ///< of terms: what said them
  std::vector<LaunchSetting> unread;                      ///< of no row, and not known to change no figure
  std::vector<LaunchSetting> open;                        ///< of a row, and the value is not in the file
  std::vector<std::string> defaults;                      ///< "mb 8": above 1, by the framework's default
  std::size_t neutral = 0;                                ///< known to change no figure
  bool names_unread_file = false;                         ///< whose settings nobody knows: of those no default holds
};

/// Puts the settings of files that arguments name, and that lie beside the file at `path`, before its own; marks those
/// that are not there.
void read_named_files(LaunchText& read, const LaunchFramework& framework, const std::string& path);
/// Whether an argument names a file of the framework's settings.
bool names_settings(const LaunchFramework& framework, const LaunchSetting& setting);

/// "--tp is $TP, which the file does not set": why a setting that is open is so.
std::string open_text(const LaunchSetting& setting);

/// `known` is so whatever the file says (the model's shape), and a file that contradicts it is wrong; `otherwise` holds
/// of what the file leaves open (the question's chips), in this order. UserError with all contradictions.
LaunchReading solve(const LaunchFramework& framework, const std::vector<LaunchSetting>& settings,
                    const LaunchTerms& known, const std::vector<std::pair<std::string, std::int64_t>>& otherwise);

/// Whether a value says no: "false", "no", "off", "0".
bool is_off(std::string_view value);

/// Whether a key is one a row has: script arguments with '-' for '_', without what says where they stand.
bool is_key(std::string_view row_key, std::string_view key);

}  // namespace scalecalc
