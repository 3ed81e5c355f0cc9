#include "base/shortage.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <system_error>

namespace scalecalc {
namespace {

TEST(Shortage, IsOfMemoryAndThreads) {
  EXPECT_EQ(shortage_of(std::bad_alloc()).value().message, "memory ran out");
  const std::system_error thread(std::make_error_code(std::errc::resource_unavailable_try_again));
  EXPECT_EQ(shortage_of(thread).value().message.find("a thread could not be started: "), 0U);
  const std::runtime_error worker("pthread_create has failed: Resource temporarily unavailable");
  EXPECT_EQ(shortage_of(worker).value().message, "a thread could not be started: Resource temporarily unavailable");
}

TEST(Shortage, IsNothingElse) {
  EXPECT_FALSE(shortage_of(std::runtime_error("no")));
  EXPECT_FALSE(shortage_of(std::system_error(std::make_error_code(std::errc::permission_denied))));
}

}  // namespace
}  // namespace scalecalc
