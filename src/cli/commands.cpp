#include "cli/commands.h"

#include <array>

namespace scalecalc::cli {

std::span<const Command> commands() {
  static const std::array kCommands{
      train_command(),    serve_command(),       compare_command(), sensitivity_command(), distill_command(),
      rl_command(),       scaling_law_command(), trace_command(),   profile_command(),     collective_command(),
      matmul_command(),   roofline_command(),    bounds_command(),  model_command(),       hw_command(),
      validate_command(), calibrate_command(),   batch_command(),   export_command(),      lint_command(),
      book_command()};
  return kCommands;
}

const Command* find_command(std::string_view name) {
  for (const Command& command : commands()) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

std::vector<Flag> flags_of(const Command& command) {
  std::vector<Flag> out;
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
