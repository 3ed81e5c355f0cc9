// What the program says of itself: help, man pages, its version. All of it from the table of commands and their flags.
#pragma once

#include <string>
#include <string_view>

#include "cli/commands.h"

namespace scalecalc::cli {

/// The first of a command's examples, a whole line or several that end in a backslash.
std::string_view first_example(const Command& command);

/// Ten lines for who typed the program's name alone.
std::string opening_help();
/// Every command with an example.
std::string general_help();
/// The common flags of a command on one screen (Command::common).
std::string short_help(const Command& command);
/// Every flag of it.
std::string command_help(const Command& command);

/// roff of scalecalc(1), or of scalecalc-COMMAND(1).
std::string general_man_page();
std::string man_page(const Command& command);

/// "1234abcd of 2026-11-23", or that it was built without a repository.
std::string_view commit_built();
/// Version, commit with its date, and what the catalog has. Lines.
std::string version_text();

}  // namespace scalecalc::cli
