// Commands asked in-process, by the code that answers them on the command line.
#pragma once

#include <vector>

#include "batch/study.h"
#include "cli/environment.h"

namespace scalecalc::cli {

/// What a study may ask: every command but batch itself, with its flags.
std::vector<CommandForm> command_forms();

/// Safe to call from several threads. What is read for one question is kept for the others. `config_directories` are
/// those of --config-dir; SCALECALC_CONFIG_PATH is not looked at. Replies have the answer's row, or those of all its
/// records.
Ask ask_commands(const Environment& env, std::vector<std::string> config_directories, bool all_records);

}  // namespace scalecalc::cli
