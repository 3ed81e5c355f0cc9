#include "config/remembered.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace scalecalc {
namespace {

TEST(Remembered, MakesAValueOnce) {
  Remembered remembered;
  int made = 0;
  const auto make = [&] { return ++made; };
  EXPECT_EQ(*remembered.get<int>("a", make), 1);
  EXPECT_EQ(*remembered.get<int>("a", make), 1);
  EXPECT_EQ(*remembered.get<int>("b", make), 2);
}

TEST(Remembered, WhatFailsIsTriedAgain) {
  Remembered remembered;
  EXPECT_THROW(remembered.get<int>("a", []() -> int { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_EQ(*remembered.get<int>("a", [] { return 5; }), 5);
}

TEST(Remembered, DoesNotGrowWithoutEnd) {
  Remembered remembered;
  const auto first = remembered.get<int>("0", [] { return 0; });
  for (int i = 1; i < 10'000; ++i) remembered.get<int>(std::to_string(i), [&] { return i; });
  EXPECT_EQ(first.use_count(), 1);  // forgotten, and whole for who has it
  EXPECT_EQ(*first, 0);
}

}  // namespace
}  // namespace scalecalc
