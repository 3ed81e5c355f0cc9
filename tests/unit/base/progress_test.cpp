#include "base/progress.h"

#include <gtest/gtest.h>

namespace scalecalc {
namespace {

TEST(Progress, TheOutermostLoopIsTold) {
  EXPECT_FALSE(Progress::now());
  {
    Progress outer("systems", 3);
    outer.add();
    {
      Progress inner("families", 1000);
      inner.add(500);
    }
    ASSERT_TRUE(Progress::now());
    EXPECT_EQ(Progress::now()->what, "systems");
    EXPECT_EQ(Progress::now()->done, 1U);
    EXPECT_EQ(Progress::now()->total, 3U);
  }
  EXPECT_FALSE(Progress::now());
  const Progress next("splits", 2);
  EXPECT_EQ(Progress::now()->done, 0U);
}

TEST(Progress, WhatAnEarlierProcessDidIsDone) {
  Progress study("questions", 10, Progress::Pace::kEven);
  study.found_done(4);
  study.add(2);
  EXPECT_EQ(Progress::now()->done, 6U);
  EXPECT_EQ(Progress::now()->before, 4U);
}

}  // namespace
}  // namespace scalecalc
