#include "base/divisors.h"

#include <gtest/gtest.h>

#include "base/check.h"

namespace scalecalc {
namespace {

using List = std::vector<std::int64_t>;

TEST(Divisors, AreCompleteAndAscending) {
  EXPECT_EQ(divisors(1), (List{1}));
  EXPECT_EQ(divisors(7), (List{1, 7}));
  EXPECT_EQ(divisors(36), (List{1, 2, 3, 4, 6, 9, 12, 18, 36}));
  EXPECT_EQ(divisors(8960).size(), 36U);
  EXPECT_EQ(divisors(1'000'000'007), (List{1, 1'000'000'007}));
}

TEST(Divisors, RefusesWhatHasNone) {
  EXPECT_THROW(divisors(0), InternalError);
  EXPECT_THROW(divisors(-4), InternalError);
}

}  // namespace
}  // namespace scalecalc
