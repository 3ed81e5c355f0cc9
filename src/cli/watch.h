// What runs beside a command: SIGINT and SIGTERM, and the line on a terminal that says how far it is.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cli/environment.h"

namespace scalecalc::cli {

/// From its making on, SIGINT and SIGTERM ask the command to end with what is known (`Environment::interrupted`). If
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
  void answering();
  void clear_line();
  void show_line(Clock::time_point now);
  bool line_due(Clock::time_point now) const;
  [[noreturn]] void end_process();

  const bool json_;
  const bool shows_progress_;
  const Clock::time_point start_ = Clock::now();
  int signals_ = -1;  ///< a descriptor to read them from
  int wake_ = -1;

  std::mutex mutex_;  ///< of what follows
  std::atomic<int> seen_ = 0;
  Clock::time_point seen_at_, shown_at_;
  bool answering_ = false;
  bool done_ = false;
  bool line_shown_ = false;
  std::thread thread_;
};

}  // namespace scalecalc::cli
