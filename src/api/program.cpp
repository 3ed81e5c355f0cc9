// Runs the program as a function of the library, with the process's arguments and streams, on a stack that is large
// enough.
#include "api/program.h"

#include <pthread.h>
#include <sys/resource.h>

#include <csignal>
#include <iostream>
#include <string>
#include <vector>

#include "base/shortage.h"
#include "cli/run.h"
#include "cli/terminal.h"

namespace {

constexpr std::size_t kStack = std::size_t{8} << 20U;  // what Linux gives where nobody says otherwise

struct Asked {
  int argc;
  char** argv;
  sigset_t signals;  ///< blocked before
  int status = 0;
};

int ask(int argc, char** argv) {
  scalecalc::cli::begin_process();
  const std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
  scalecalc::cli::Environment env = scalecalc::cli::process_environment(std::cout, std::cerr);
  return scalecalc::cli::run_process(args, env);
}

void* ask_on_thread(void* given) {
  Asked& asked = *static_cast<Asked*>(given);
  ::pthread_sigmask(SIG_SETMASK, &asked.signals, nullptr);
  asked.status = ask(asked.argc, asked.argv);
  return nullptr;
}

bool stack_is_small() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < kStack;
}

}  // namespace

int scalecalc_program(int argc, char** argv) {
  if (!stack_is_small()) return ask(argc, argv);
  // The limit is that of the first thread, and the size of every other's stack that does not ask for its own.
  pthread_attr_t large;
  ::pthread_attr_init(&large);
  ::pthread_attr_setstacksize(&large, kStack);
  ::pthread_setattr_default_np(&large);
  Asked asked{argc, argv, {}};
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &asked.signals);  // those that are to come are the other thread's
  pthread_t thread{};
  if (::pthread_create(&thread, &large, ask_on_thread, &asked) != 0) {
    std::cerr << "error: no memory for a stack of 8 MB, and the limit of the first one is smaller\n"
                 "hint: raise the limit: ulimit -s 8192\n";
    return static_cast<int>(scalecalc::kShortOfResources);
  }
  ::pthread_join(thread, nullptr);
  return asked.status;
}
