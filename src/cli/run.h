// The program: a command line in, results and messages out, the exit status of the contract back.
#pragma once

#include <string>
#include <vector>

#include "cli/environment.h"

namespace scalecalc::cli {

/// `args` without the program's name. Throws nothing.
int run(const std::vector<std::string>& args, Environment& env);

/// Of an exception that is being handled: tells what is wrong, as run() does, and returns the exit status.
int report_failure(const std::vector<std::string>& args, Environment& env);

/// Before anything asks for memory: a process that gets none ends, says so, and leaves no unfinished files.
void begin_process();
/// The same as run() of a whole process, with its signals.
int run_process(const std::vector<std::string>& args, Environment& env);

}  // namespace scalecalc::cli
