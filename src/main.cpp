// The program around the library: real streams, real arguments, real signals.
#include <iostream>
#include <string>
#include <vector>

#include "cli/run.h"
#include "cli/terminal.h"

int main(int argc, char** argv) {
  scalecalc::cli::begin_process();
  const std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
  scalecalc::cli::Environment env = scalecalc::cli::process_environment(std::cout, std::cerr);
  return scalecalc::cli::run_process(args, env);
}
