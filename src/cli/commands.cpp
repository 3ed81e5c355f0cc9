// Lists all commands and finds one by its name, for the command line, help, completion and studies.
#include "cli/commands.h"

#include <algorithm>
#include <array>

namespace scalecalc::cli {
namespace {

/// By name, so that one command is found without the flags of all.
struct CommandRow {
  std::string_view name;
  const Command& (*command)();
};

constexpr std::array kCommandRows{CommandRow{"train", train_command},
                                  CommandRow{"serve", serve_command},
                                  CommandRow{"compare", compare_command},
                                  CommandRow{"sensitivity", sensitivity_command},
                                  CommandRow{"distill", distill_command},
                                  CommandRow{"rl", rl_command},
                                  CommandRow{"scaling-law", scaling_law_command},
                                  CommandRow{"trace", trace_command},
                                  CommandRow{"profile", profile_command},
                                  CommandRow{"collective", collective_command},
                                  CommandRow{"matmul", matmul_command},
                                  CommandRow{"roofline", roofline_command},
                                  CommandRow{"bounds", bounds_command},
                                  CommandRow{"model", model_command},
                                  CommandRow{"hw", hw_command},
                                  CommandRow{"validate", validate_command},
                                  CommandRow{"calibrate", calibrate_command},
                                  CommandRow{"batch", batch_command},
                                  CommandRow{"export", export_command},
                                  CommandRow{"lint", lint_command},
                                  CommandRow{"book", book_command}};

}  // namespace

std::span<const Command> commands() {
  static const std::vector<Command> kCommands = [] {
    std::vector<Command> out;
    for (const CommandRow& row : kCommandRows) out.push_back(row.command());
    return out;
  }();
  return kCommands;
}

const Command* find_command(std::string_view name) {
  const auto row =
      std::find_if(kCommandRows.begin(), kCommandRows.end(), [&](const CommandRow& r) { return r.name == name; });
  return row == kCommandRows.end() ? nullptr : &row->command();
}

std::vector<Flag> flags_of(const Command& command) {
  std::vector<Flag> out;
  out.reserve(command.flags.size() + common_flags().size());
  for (const Flag& flag : command.flags) {
    if (find_flag(command.flags, flag.name) == &flag) out.push_back(flag);
  }
  for (const Flag& flag : common_flags()) {
    if (find_flag(command.flags, flag.name) == nullptr) out.push_back(flag);
  }
  return out;
}

std::optional<std::size_t> mode_of(const Arguments& arguments) {
  const Command& command = arguments.command();
  return command.mode_of == nullptr ? std::nullopt : command.mode_of(arguments);
}

std::string_view drawn(const Arguments& arguments) {
  const Command& command = arguments.command();
  const auto mode = mode_of(arguments);
  const std::string_view own = mode ? command.modes[*mode].draws : std::string_view();
  return own.empty() ? command.draws : own;
}

std::vector<std::string> drawings(const Command& command) {
  std::vector<std::string> out;
  if (!command.draws.empty()) out.emplace_back(command.draws);
  for (const Mode& mode : command.modes) {
    if (!mode.draws.empty()) out.push_back(fmt::format("{}: {}", mode.name, mode.draws));
  }
  return out;
}

}  // namespace scalecalc::cli
