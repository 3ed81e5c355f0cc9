// What the common flags ask for, ready to use by a command.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "batch/answer_check.h"
#include "cli/environment.h"
#include "cli/log.h"
#include "cli/options.h"
#include "cli/terminal.h"
#include "config/remembered.h"

namespace scalecalc::cli {

struct Session {
  ColorMode color = ColorMode::kAuto;
  Verbosity verbosity = Verbosity::kNormal;
  std::vector<std::string> only;                ///< sections of the text; empty: all
  std::vector<std::string> columns;             ///< of its main table; empty: the usual ones
  std::vector<AnswerCheck> checks;              ///< of --fail-if and --expect; of names that its answers can have
  bool perf = false;                            ///< says how long answering took
  std::vector<std::string> config_directories;  ///< config_directories()
  std::shared_ptr<Remembered> remembered;       ///< the environment's, or its own
};

/// These first, then those of SCALECALC_CONFIG_PATH, then the user's own, ~/.config/scalecalc.
std::vector<std::string> config_directories(std::vector<std::string> first, const Environment& env);

/// UserError for names that no answer of the command has.
Session read_session(const Arguments& arguments, const Environment& env);

/// Of --fail-if and --expect, whose files have no "=" in their name; what an answer may have are these names.
std::vector<AnswerCheck> checks_asked_for(const Arguments& arguments, const std::vector<std::string>& names);

std::string_view tool_version();

}  // namespace scalecalc::cli
