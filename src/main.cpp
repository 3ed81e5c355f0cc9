// The program around the library: real streams, real arguments, real signals.
#include <iostream>
#include <string>
#include <vector>

#include "cli/run.h"
#include "cli/terminal.h"
#include "cli/watch.h"

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
  scalecalc::cli::Environment env = scalecalc::cli::process_environment(std::cout, std::cerr);
  const scalecalc::cli::Watch watch(args, env);
  return env.exit_status_of(scalecalc::cli::run(args, env));
}
