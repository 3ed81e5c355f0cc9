// Answers questions asked through the library: changes nothing of the host process, and ends nothing in it.
#include "cli/guest.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <functional>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>

#include "base/diagnostic.h"
#include "base/shortage.h"
#include "cli/environment.h"
#include "cli/run.h"
#include "cli/watch.h"

namespace scalecalc::cli {
namespace {

using GuestClock = std::chrono::steady_clock;

/// What a main thread usually has.
constexpr std::size_t kGuestStack = std::size_t{8} << 20;

std::atomic<int> guests = 0;
std::atomic<bool> cut_off = false;  // by a fork beside one of them

struct Guest {
  Guest() { ++guests; }
  ~Guest() { --guests; }
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;
};

/// The thread that forks does not ask, so those that do are threads that the child does not have.
void note_fork() {
  if (guests.exchange(0) > 0) cut_off = true;
}
const bool kForksAreNoted = ::pthread_atfork(nullptr, nullptr, note_fork) == 0;

void require_whole_process() {
  if (!cut_off && kForksAreNoted) return;
  throw UserError("this process was forked while another of its threads asked, and what that thread held stays held",
                  "start processes before the first question, or by exec: in Python "
                  "multiprocessing.set_start_method(\"spawn\")",
                  kShortOfResources);
}

/// Signals are the host's, but for those that tell of what this thread does; a closed pipe then is an error of write().
sigset_t signals_of_the_host() {
  sigset_t out;
  sigfillset(&out);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) sigdelset(&out, own);
  return out;
}

/// Returns when `work` is done; it throws nothing. std::system_error where no thread is to be had.
void on_own_thread(const std::function<void()>& work) {
  int before = 0;
  ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);  // this stack is in use until the other thread ends
  const sigset_t blocked = signals_of_the_host();
  sigset_t mask;
  ::pthread_sigmask(SIG_BLOCK, &blocked, &mask);
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, kGuestStack);
  pthread_t thread{};
  const auto begin = [](void* given) -> void* {
    (*static_cast<const std::function<void()>*>(given))();
    return nullptr;
  };
  const int failed = ::pthread_create(&thread, &attributes, begin, const_cast<std::function<void()>*>(&work));
  ::pthread_attr_destroy(&attributes);
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  if (failed == 0) ::pthread_join(thread, nullptr);
  ::pthread_setcancelstate(before, nullptr);
  if (failed != 0) throw std::system_error(failed, std::generic_category());
}

/// --time-limit of one question.
class Deadline {
 public:
  void limit(const Budget& budget) {
    if (budget.bytes) {
      throw UserError("--memory-limit counts what the whole process uses, and this one is not scalecalc's alone",
                      "limit the process: ulimit -v, memory.max of its container; or start the program scalecalc");
    }
    seconds_ = budget.seconds;
  }
  bool passed() {
    if (!seconds_) return false;
    if (!spent_ && std::chrono::duration<double>(GuestClock::now() - start_).count() >= *seconds_) spent_ = true;
    return spent_;
  }
  int status(int own) const { return spent_ ? status_where_spent(own) : own; }
  std::string warning() const { return spent_ ? time_limit_reached(*seconds_) : ""; }

 private:
  const GuestClock::time_point start_ = GuestClock::now();
  std::optional<double> seconds_;
  std::atomic<bool> spent_ = false;
};

std::optional<std::string> variable_of_host(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

}  // namespace

GuestAnswer run_as_guest(const std::vector<std::string>& args) {
  GuestAnswer out;
  std::ostringstream output, messages;
  Environment env{.out = output, .err = messages, .variable = variable_of_host};
  Deadline deadline;
  env.on_budget = [&](const Budget& budget) { deadline.limit(budget); };
  env.interrupted = [&] { return deadline.passed(); };
  env.exit_status = [&](int own) { return deadline.status(own); };
  std::exception_ptr failed;
  try {
    require_whole_process();
    const Guest guest;
    on_own_thread([&] {
      try {
        out.status = env.exit_status_of(run(args, env));
        out.output = std::move(output).str();
        out.messages = deadline.warning() + std::move(messages).str();
      } catch (...) {
        failed = std::current_exception();
      }
    });
  } catch (...) {
    out.status = report_failure(args, env);
    out.output = std::move(output).str();
    out.messages = std::move(messages).str();
  }
  if (failed) std::rethrow_exception(failed);
  return out;
}

}  // namespace scalecalc::cli
