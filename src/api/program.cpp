#include "api/program.h"

#include <iostream>
#include <string>
#include <vector>

#include "cli/run.h"
#include "cli/terminal.h"

int scalecalc_program(int argc, char** argv) {
  scalecalc::cli::begin_process();
  const std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
  scalecalc::cli::Environment env = scalecalc::cli::process_environment(std::cout, std::cerr);
  return scalecalc::cli::run_process(args, env);
}
