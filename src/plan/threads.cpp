// Runs loops of a search on all usable cores with oneTBB, and limits threads where questions share the cores.
#include "plan/threads.h"

#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task.h>
#include <tbb/task_arena.h>
#include <unistd.h>

#include <atomic>

#include "base/heap.h"

namespace scalecalc {

struct Threads::Arena {
  explicit Arena(std::size_t threads) : arena(static_cast<int>(threads)) {}
  tbb::task_arena arena;
};

unsigned usable_cores() { return static_cast<unsigned>(tbb::info::default_concurrency()); }

bool threads_are_here() {
  static std::atomic<pid_t> owner = 0;
  const pid_t self = ::getpid();
  pid_t found = 0;
  return owner.compare_exchange_strong(found, self) || found == self;
}

Threads::Threads(std::size_t count)
    : count_(!threads_are_here()                       ? 1
             : count > 0                               ? count
             : tbb::task::current_context() != nullptr ? 1
                                                       : usable_cores()) {
  if (count_ > 1) arena_ = std::make_unique<Arena>(count_);
}
Threads::~Threads() = default;

void Threads::run(std::size_t times, const std::function<void(std::size_t, std::size_t)>& work) {
  if (times < 2 || !arena_) {
    for (std::size_t i = 0; i < times; ++i) work(0, i);
    return;
  }
  arena_->arena.execute([&] {
    tbb::parallel_for(std::size_t{0}, times, [&](std::size_t i) {
      use_huge_pages();
      work(static_cast<std::size_t>(tbb::this_task_arena::current_thread_index()), i);
    });
  });
}

}  // namespace scalecalc
