// What runs beside a command: signals that end it (SIGINT, SIGTERM, SIGHUP, SIGXCPU), its budget, and the line on a
// terminal that says how far it is.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cli/environment.h"

namespace scalecalc::cli {

/// Where the time or memory that a question may take is spent: what becomes of a command's own exit status, as what was
/// whole before is answered like any other, and the line that says so.
int status_where_spent(int own);
std::string time_limit_reached(double seconds);

/// From its making on, these signals ask the command to end with what is known (`Environment::interrupted`). If
/// nothing is written soon after, nothing is known: a line says so, unfinished files are removed and the process ends;
/// so it does on a second signal. One of them in a process, made before any thread; it fills in the environment.
class Watch {
 public:
  Watch(const std::vector<std::string>& args, Environment& env);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  /// No signal ends the process any more.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;

  void run();
  void take(int signal);
  /// From now on; what it is of is said when it is spent.
  void limit(const Budget& budget);
  void look_at_budget(Clock::time_point now);
  /// What becomes of a command's own exit status.
  int exit_status(int own) const;
  void answering();
  /// False if it cannot be told.
  bool wake() const;
  void clear_line();
  void show_line(Clock::time_point now);
  bool line_due(Clock::time_point now) const;
  [[noreturn]] void end_process();

  const bool json_;
  const bool shows_progress_;
  const Clock::time_point start_ = Clock::now();
  int signals_ = -1;  ///< a descriptor to read them from
  int wake_ = -1;

  std::mutex mutex_;                 ///< of what follows
  std::atomic<int> seen_ = 0;        ///< a signal
  std::atomic<bool> spent_ = false;  ///< the budget
  std::atomic<bool> limited_ = false;
  std::atomic<bool> ends_ = false;  ///< the thread
  Budget budget_;
  Clock::time_point seen_at_, shown_at_;
  bool answering_ = false;
  bool done_ = false;
  bool line_shown_ = false;
  std::thread thread_;
};

}  // namespace scalecalc::cli
