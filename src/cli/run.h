// The program: a command line in, results and messages out, the exit status of the contract back.
#pragma once

#include <string>
#include <vector>

#include "cli/environment.h"

namespace scalecalc::cli {

/// `args` without the program's name. Throws nothing.
int run(const std::vector<std::string>& args, Environment& env);

}  // namespace scalecalc::cli
