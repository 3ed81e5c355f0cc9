#include "cli/commands.h"

#include <fmt/format.h>

#include <array>

#include "base/text.h"

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
  std::vector<Flag> out;
  for (const Flag& flag : command.flags) {
    if (find_flag(command.flags, flag.name) == &flag) out.push_back(flag);
  }
  out.insert(out.end(), common_flags().begin(), common_flags().end());
  return out;
}

std::string_view first_example(const Command& command) {
  std::size_t end = command.examples.find('\n');
  while (end != std::string_view::npos && end > 0 && command.examples[end - 1] == '\\') {
    end = command.examples.find('\n', end + 1);
  }
  return end == std::string_view::npos ? command.examples : command.examples.substr(0, end + 1);
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

namespace {

std::string exit_statuses(const Command& command) {
  std::string out = "exit status: 0 answered, ";
  if (!command.check_fails.empty()) out += fmt::format("1 {}, ", command.check_fails);
  out += "2 the question is wrong, ";
  if (!command.nothing_fits.empty()) out += fmt::format("3 {}, ", command.nothing_fits);
  out += "70 a bug of ours, 74 the output could not be written";
  if (command.interruptible) out += ", 130 interrupted";
  constexpr std::size_t kWidth = 96;
  constexpr std::size_t kIndent = 13;
  return wrap(out, kWidth, kIndent) + '\n';
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
  std::string out = fmt::format(
      "{}\n"
      "\n"
      "usage: scalecalc {} {}\n"
      "\n"
      "examples:\n{}"
      "\n{}"
      "\n{}",
      command.summary, command.name, command.usage, command.examples, flag_help("flags", command.flags, command.modes),
      flag_help("flags of every command", common_flags(), {}));
  if (!command.notes.empty()) out += fmt::format("\n{}", command.notes);
  const std::vector<std::string> pictures = drawings(command);
  if (!pictures.empty()) out += fmt::format("\n--plot draws {}.\n", join(pictures, "; "));
  if (!command.own_exits) out += '\n' + exit_statuses(command);
  return out;
}

}  // namespace scalecalc::cli
