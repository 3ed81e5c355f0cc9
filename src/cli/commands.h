// The table of commands: adding one is one file and one row in commands.cpp.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "cli/environment.h"
#include "cli/options.h"

namespace scalecalc::cli {

struct Command {
  std::string_view name;
  std::string_view summary;   ///< one line
  std::string_view usage;     ///< "MODEL --hw HW --chips N [flags]"
  std::string_view examples;  ///< whole lines
  std::string_view notes;     ///< below the flags; whole lines
  std::span<const Flag> flags;
  ExitCode (*run)(const Arguments&, Environment&);
};

std::span<const Command> commands();
const Command* find_command(std::string_view name);

/// The command's own flags, then the common ones.
std::vector<Flag> flags_of(const Command& command);

/// Help of the program, or of one command.
std::string general_help();
std::string command_help(const Command& command);

/// One definition per command, in cmd_<name>.cpp.
const Command& train_command();
const Command& serve_command();
const Command& compare_command();
const Command& distill_command();
const Command& rl_command();
const Command& trace_command();
const Command& collective_command();
const Command& matmul_command();
const Command& roofline_command();
const Command& bounds_command();
const Command& model_command();
const Command& scaling_law_command();
const Command& hw_command();
const Command& validate_command();
const Command& calibrate_command();
const Command& batch_command();
const Command& sensitivity_command();

}  // namespace scalecalc::cli
