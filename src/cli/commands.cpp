#include "cli/commands.h"

#include <fmt/format.h>

#include <array>

namespace scalecalc::cli {

std::span<const Command> commands() {
  static const std::array kCommands{
      train_command(),     serve_command(),       compare_command(), sensitivity_command(), distill_command(),
      rl_command(),        scaling_law_command(), trace_command(),   collective_command(),  matmul_command(),
      roofline_command(),  bounds_command(),      model_command(),   hw_command(),          validate_command(),
      calibrate_command(), batch_command()};
  return kCommands;
}

const Command* find_command(std::string_view name) {
  for (const Command& command : commands()) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

std::vector<Flag> flags_of(const Command& command) {
  std::vector<Flag> out(command.flags.begin(), command.flags.end());
  out.insert(out.end(), common_flags().begin(), common_flags().end());
  return out;
}

namespace {

/// The first of a command's examples; a line that ends in a backslash goes on.
std::string_view first_example(const Command& command) {
  std::size_t end = command.examples.find('\n');
  while (end != std::string_view::npos && end > 0 && command.examples[end - 1] == '\\') {
    end = command.examples.find('\n', end + 1);
  }
  return end == std::string_view::npos ? command.examples : command.examples.substr(0, end + 1);
}

}  // namespace

std::string general_help() {
  std::string out =
      "scalecalc computes how large language models scale on real machines: times, memory, dollars.\n"
      "\n"
      "usage: scalecalc COMMAND [ARGUMENTS]\n"
      "\n"
      "examples:\n";
  for (const Command& command : commands()) out += first_example(command);
  out += "\ncommands:\n";
  for (const Command& command : commands()) out += fmt::format("  {:<12}{}\n", command.name, command.summary);
  return out + "\nscalecalc help COMMAND explains one of them.\n";
}

std::string command_help(const Command& command) {
  return fmt::format(
      "{}\n"
      "\n"
      "usage: scalecalc {} {}\n"
      "\n"
      "examples:\n{}"
      "\n"
      "flags:\n{}"
      "\n"
      "flags of every command:\n{}"
      "\n{}",
      command.summary, command.name, command.usage, command.examples, flag_help(command.flags),
      flag_help(common_flags()), command.notes);
}

}  // namespace scalecalc::cli
