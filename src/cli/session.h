// What the common flags ask for, ready to use by a command.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

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
  std::vector<std::string> fail_if;             ///< conditions whose names answers of the command can have
  std::vector<std::string> config_directories;  ///< config_directories()
  std::shared_ptr<Remembered> remembered;       ///< the environment's, or its own
};

/// These first, then those of SCALECALC_CONFIG_PATH, then the user's own, ~/.config/scalecalc.
std::vector<std::string> config_directories(std::vector<std::string> first, const Environment& env);

Session read_session(const Arguments& arguments, const Environment& env);

std::string_view tool_version();

}  // namespace scalecalc::cli
