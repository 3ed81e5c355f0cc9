// One bound of an answer, by its name.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "bounds/bounds.h"

namespace scalecalc::test {

inline const Bound* find(const BoundsAnswer& answer, const std::string& name) {
  const auto at =
      std::find_if(answer.bounds.begin(), answer.bounds.end(), [&](const Bound& b) { return b.name == name; });
  return at == answer.bounds.end() ? nullptr : &*at;
}

inline double value(const BoundsAnswer& answer, const std::string& name) {
  const Bound* bound = find(answer, name);
  EXPECT_NE(bound, nullptr) << name;
  return bound == nullptr ? std::nan("") : bound->value.value();
}

inline std::optional<bool> holds(const BoundsAnswer& answer, const std::string& name) {
  const Bound* bound = find(answer, name);
  EXPECT_NE(bound, nullptr) << name;
  return bound == nullptr ? std::nullopt : bound->holds;
}

}  // namespace scalecalc::test
