// Counts how far a long loop has come, for the thread that shows the progress line.
#include "base/progress.h"

#include <chrono>
#include <mutex>

namespace scalecalc {
namespace {

using ProgressClock = std::chrono::steady_clock;

/// Never destroyed: a thread may still show it while the process ends.
struct Told {
  std::atomic<bool> taken = false;
  std::atomic<std::uint64_t> done = 0, before = 0;
  std::mutex mutex;  ///< of what follows
  std::optional<Progress::State> state;
  ProgressClock::time_point start;
};

Told& told() {
  static Told* const kTold = new Told;
  return *kTold;
}

}  // namespace

Progress::Progress(std::string_view what, std::uint64_t total, Pace pace) : told_(!told().taken.exchange(true)) {
  if (!told_) return;
  Told& t = told();
  const std::lock_guard lock(t.mutex);
  t.done = t.before = 0;
  t.start = ProgressClock::now();
  t.state = State{.what = what, .total = total, .pace = pace};
}

Progress::~Progress() {
  if (!told_) return;
  Told& t = told();
  {
    const std::lock_guard lock(t.mutex);
    t.state.reset();
  }
  t.taken = false;
}

void Progress::add(std::uint64_t count) {
  if (told_) told().done += count;
}

void Progress::found_done(std::uint64_t count) {
  if (told_) told().before += count;
  add(count);
}

std::optional<Progress::State> Progress::now() {
  Told& t = told();
  const std::lock_guard lock(t.mutex);
  if (!t.state) return std::nullopt;
  State out = *t.state;
  out.done = t.done;
  out.before = t.before;
  out.seconds = std::chrono::duration<double>(ProgressClock::now() - t.start).count();
  return out;
}

}  // namespace scalecalc
