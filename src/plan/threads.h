// Threads of searches: how many there are to take, and loops over them.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace scalecalc {

/// Cores that the process may use.
unsigned usable_cores();
/// Whether other threads may be used: not in a process that was forked off one that did, which has none of them.
bool threads_are_here();

class Threads {
 public:
  /// 0: all usable cores; where the caller is itself one of many in a loop, of questions of a study say, that keep them
  /// busy, itself alone.
  explicit Threads(std::size_t count = 0);
  ~Threads();

  std::size_t count() const { return count_; }
  /// Calls `work(thread, i)` once for each i below `times`, on threads that are numbered from 0.
  /// An exception of one is thrown again here. Threads that wait keep a core busy for some 40 us: for what takes less,
  /// a loop of one's own is cheaper.
  void run(std::size_t times, const std::function<void(std::size_t, std::size_t)>& work);

 private:
  struct Arena;
  std::size_t count_;
  std::unique_ptr<Arena> arena_;  ///< null of one thread
};

}  // namespace scalecalc
