// Waits for signals and limits in a thread of its own, and shows the progress line. All other threads block the
// signals: what is to be done then may lock, allocate and write.
#include "cli/watch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>

#include "base/check.h"
#include "base/diagnostic.h"
#include "base/io.h"
#include "base/progress.h"
#include "base/shortage.h"
#include "base/units.h"
#include "cli/outputs.h"
#include "cli/terminal.h"
#include "report/json_text.h"

namespace scalecalc::cli {
namespace {

using std::chrono::milliseconds;

/// Half a second is promised from signal to end: this long to find a stopping point, and until then to write.
constexpr milliseconds kToAnswer{350};
constexpr milliseconds kToWrite{470};

constexpr milliseconds kSilent{1000};     ///< no line before
constexpr milliseconds kSilentEven{200};  ///< nor here, where it says how much is left
constexpr milliseconds kBetweenLines{200};

constexpr int kSignalled = 128;  ///< and the signal's number, as shells count

constexpr std::string_view kClearLine = "\r\x1b[K";

/// Past the streams, which another thread may hold.
void write_now(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = ::write(fd, text.data(), text.size());
    if (put <= 0) return;  // the process ends either way
    text.remove_prefix(static_cast<std::size_t>(put));
  }
}

sigset_t ending_signals() {
  sigset_t out;
  sigemptyset(&out);
  for (const int signal : {SIGINT, SIGTERM, SIGXCPU}) sigaddset(&out, signal);
  struct sigaction hangup {};
  // nohup's programs are not to hear of it.
  if (::sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN) sigaddset(&out, SIGHUP);
  return out;
}

/// A process that must end now ends without what it was told, but never with half a file.
void ignore_signals_of_writing() {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that goes away is no failure
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on the size of files: write() says so
}

bool asks_for_quiet(const std::vector<std::string>& args) {
  return std::any_of(args.begin(), args.end(), [](const std::string& a) { return a == "-q" || a == "--quiet"; });
}

/// Of this process, not swapped out; 0 where /proc is not.
double memory_in_use() {
  std::array<char, 128> text{};
  const int fd = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t got = ::read(fd, text.data(), text.size() - 1);
  ::close(fd);
  unsigned long long all = 0;
  unsigned long long resident = 0;
  if (got <= 0 || std::sscanf(text.data(), "%llu %llu", &all, &resident) != 2) return 0;
  return static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

std::string progress_line(double seconds) {
  const auto time = [](double s) { return format_quantity(s, UnitKind::kSeconds, 2); };
  const auto grouped = [](std::uint64_t n) { return group_thousands(static_cast<long long>(n)); };
  const std::optional<Progress::State> at = Progress::now();
  if (!at) return fmt::format("{:.0f} s", seconds);
  if (at->total == 0) return fmt::format("{} {}, {:.0f} s", grouped(at->done), at->what, seconds);
  const double share = static_cast<double>(at->done) / static_cast<double>(at->total);
  std::string out =
      fmt::format("{} of {} {} ({:.0f} %), ", grouped(at->done), grouped(at->total), at->what, 100 * share);
  const double rate = static_cast<double>(at->done - at->before) / at->seconds;
  if (at->pace == Progress::Pace::kUneven || rate <= 0) return out + fmt::format("{:.0f} s", seconds);
  const double left = static_cast<double>(at->total - at->done) / rate;
  return out + fmt::format("{:.3g} a second, {} left", rate, time(left));
}

}  // namespace

int status_where_spent(int own) {
  return static_cast<ExitCode>(own) == ExitCode::kInterrupted ? static_cast<int>(kBudgetSpent) : own;
}

std::string time_limit_reached(double seconds) {
  return fmt::format("warning: --time-limit {} is reached\n", format_quantity(seconds, UnitKind::kSeconds, 3));
}

Watch::Watch(const std::vector<std::string>& args, Environment& env)
    : json_(asks_for_json(args)), shows_progress_(env.err_is_tty && !asks_for_quiet(args)) {
  const sigset_t ending = ending_signals();
  check(::pthread_sigmask(SIG_BLOCK, &ending, nullptr) == 0, "signals can be blocked");
  ignore_signals_of_writing();
  signals_ = ::signalfd(-1, &ending, SFD_CLOEXEC);
  wake_ = ::eventfd(0, EFD_CLOEXEC);
  check(signals_ >= 0 && wake_ >= 0, "signals can be read");
  thread_ = std::thread([this] { run(); });
  env.interrupted = [this] { return seen_ != 0 || spent_; };
  env.exit_status = [this](int own) { return exit_status(own); };
  env.on_answer = [this] { answering(); };
  env.on_line = [this] {
    const std::lock_guard lock(mutex_);
    clear_line();
  };
  env.on_budget = [this](const Budget& budget) { limit(budget); };
}

int Watch::exit_status(int own) const {
  if (seen_ != 0) return kSignalled + seen_;
  return spent_ ? status_where_spent(own) : own;
}

void Watch::limit(const Budget& budget) {
  const std::lock_guard lock(mutex_);
  budget_ = budget;
  limited_ = true;
  wake();
}

void Watch::look_at_budget(Clock::time_point now) {
  if (spent_ || seen_ != 0 || answering_) return;
  const bool late = budget_.seconds && std::chrono::duration<double>(now - start_).count() >= *budget_.seconds;
  const bool large = budget_.bytes && memory_in_use() >= *budget_.bytes;
  if (!late && !large) return;
  spent_ = true;
  seen_at_ = now;
  clear_line();
  write_now(STDERR_FILENO, late ? time_limit_reached(*budget_.seconds)
                                : fmt::format("warning: --memory-limit {} is reached\n",
                                              format_quantity(*budget_.bytes, UnitKind::kBytes, 3)));
}

Watch::~Watch() {
  finish();
  ends_ = true;
  if (!wake()) {
    thread_.detach();  // it waits for signals until the process ends, soon
    return;
  }
  thread_.join();
  ::close(signals_);
  ::close(wake_);
}

bool Watch::wake() const {
  const std::uint64_t one = 1;
  return ::write(wake_, &one, sizeof one) == sizeof one;
}

void Watch::finish() {
  const std::lock_guard lock(mutex_);
  done_ = true;
  clear_line();
}

void Watch::answering() {
  const std::lock_guard lock(mutex_);
  answering_ = true;
  clear_line();
}

void Watch::run() {
  pollfd wait[2] = {{.fd = signals_, .events = POLLIN, .revents = 0}, {.fd = wake_, .events = POLLIN, .revents = 0}};
  constexpr int kTick = 50;
  for (;;) {
    const bool ticks = shows_progress_ || seen_ != 0 || limited_;
    if (::poll(wait, 2, ticks ? kTick : -1) < 0) continue;
    if (wait[1].revents != 0) {
      std::uint64_t count = 0;
      if (ends_ || ::read(wake_, &count, sizeof count) != sizeof count) return;
    }
    signalfd_siginfo came{};
    const bool signalled = wait[0].revents != 0 && ::read(signals_, &came, sizeof came) == sizeof came;
    const std::lock_guard lock(mutex_);
    if (done_) continue;
    if (signalled) take(static_cast<int>(came.ssi_signo));
    const Clock::time_point now = Clock::now();
    if (limited_) look_at_budget(now);
    if ((seen_ != 0 || spent_) && now - seen_at_ >= (answering_ ? kToWrite : kToAnswer)) end_process();
    if (line_due(now)) show_line(now);
  }
}

void Watch::take(int signal) {
  if (seen_ != 0) end_process();
  seen_at_ = Clock::now();
  seen_ = signal;
}

/// The lock is never given back, so nobody begins to answer any more.
void Watch::end_process() {
  clear_line();
  discard_unfinished();
  const Diagnostic problem{
      SourceSpan{}, answering_ ? "interrupted while the answer was written: it is cut off" : std::string(kNothingKnown),
      ""};
  const int code = exit_status(static_cast<int>(ExitCode::kInterrupted));
  write_now(STDERR_FILENO, render(problem));
  if (json_ && !answering_) write_now(STDOUT_FILENO, error_json(code, std::vector{problem}));
  ::_exit(code);
}

void Watch::clear_line() {
  if (line_shown_) write_now(STDERR_FILENO, kClearLine);
  line_shown_ = false;
}

bool Watch::line_due(Clock::time_point now) const {
  if (!shows_progress_ || answering_ || now - shown_at_ < kBetweenLines) return false;
  const std::optional<Progress::State> at = Progress::now();
  const bool even = at && at->pace == Progress::Pace::kEven && at->done > 0;
  return now - start_ >= (even ? kSilentEven : kSilent);
}

void Watch::show_line(Clock::time_point now) {
  shown_at_ = now;
  line_shown_ = true;
  write_now(STDERR_FILENO,
            fmt::format("{}{}", kClearLine, progress_line(std::chrono::duration<double>(now - start_).count())));
}

}  // namespace scalecalc::cli
