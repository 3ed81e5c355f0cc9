// The rows of a framework's table that a plan fills, as the file that launches it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/framework.h"
#include "launch/reading.h"
#include "launch/terms.h"

namespace scalecalc {

/// Of an argument that is written: how a file spells the value.
enum class ValueKind : std::uint8_t { kNumber, kText, kTruth, kList, kSwitch, kVariable };

struct LaunchArgument {
  std::string key;  ///< as LaunchRow::key
  std::vector<std::string> values;
  ValueKind kind = ValueKind::kText;
};

/// UserError for a value that is no whole number where the argument takes one, such as expert ranks that do not divide
/// the axis they are taken from.
std::vector<LaunchArgument> arguments_of(const LaunchFramework& framework, const LaunchTerms& terms);

/// As settings, to be read back.
std::vector<LaunchSetting> settings_of(const std::vector<LaunchArgument>& arguments);

/// Above every file, a line each, as comments.
using LaunchStamp = std::vector<std::string>;

/// Whether the framework is started by a script with arguments of its own, its file inside.
bool is_script(const LaunchFramework& framework);

/// The file, or the script that writes it and starts the run. `terms` has the model's name; plain JAX needs the rest.
std::string launch_file(const LaunchFramework& framework, const std::vector<LaunchArgument>& arguments,
                        const LaunchTerms& terms, const LaunchStamp& stamp);

/// A node among those of its run, as a shell finds it in the environment.
inline constexpr std::string_view kNodeRank = "${NODE_RANK:-0}";

/// A script, whatever the framework's file is, in its parts.
struct LaunchScript {
  std::string head;           ///< once for the run: the interpreter, the stamp, files that are written down
  std::string command;        ///< on each node
  bool starts_ranks = false;  ///< on each chip instead, by MPI
  std::int64_t servers = 1;   ///< each started on chips of its own
  std::string file{};         ///< that the head writes down and the command reads, by its name
};
LaunchScript launch_script(const LaunchFramework& framework, const std::vector<LaunchArgument>& arguments,
                           const LaunchTerms& terms, const LaunchStamp& stamp);

/// Those of a file, as a document of YAML.
std::string yaml_of(const std::vector<LaunchArgument>& arguments);

/// A text of JSON, YAML, TOML and Python alike.
std::string quoted_text(std::string_view text);
/// One line of a comment, whatever is in the text.
std::string comment_line(std::string_view text);

}  // namespace scalecalc
