#include "plan/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace scalecalc {
namespace {

TEST(Threads, EachIsDoneOnceByAThreadOfThem) {
  for (const std::size_t count : {1U, 2U, 5U}) {
    Threads threads(count);
    EXPECT_EQ(threads.count(), count);
    for (const std::size_t times : {0U, 1U, 2U, 1000U}) {
      std::vector<std::atomic<int>> done(times);
      threads.run(times, [&](std::size_t thread, std::size_t i) {
        EXPECT_LT(thread, count);
        ++done[i];
      });
      for (const std::atomic<int>& of : done) EXPECT_EQ(of, 1);
    }
  }
}

TEST(Threads, OfALoopOfOthersThereIsOne) {
  EXPECT_EQ(Threads().count(), usable_cores());
  Threads outer(4);
  std::atomic<int> more = 0;
  outer.run(100, [&](std::size_t, std::size_t) { more += Threads().count() == 1 ? 0 : 1; });
  EXPECT_EQ(more, 0);
}

TEST(Threads, AnExceptionOfOneIsThrownAgain) {
  Threads threads(3);
  const auto fails = [](std::size_t, std::size_t i) {
    if (i == 7) throw std::out_of_range("7");
  };
  EXPECT_THROW(threads.run(100, fails), std::out_of_range);
}

}  // namespace
}  // namespace scalecalc
