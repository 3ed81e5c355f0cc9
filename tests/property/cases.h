// How many random cases a property is asked (tests/CMakeLists.txt).
#pragma once

#include <cstddef>
#include <cstdlib>
#include <string_view>

namespace scalecalc::test {

/// Whether all of them, or more: then what is rare has been met too. Sanitizers and a contributor's quick run ask
/// fewer.
inline bool all_cases() {
  constexpr int kAll = 100;  // rapidcheck's
  constexpr std::string_view kMost = "max_success=";
  const char* asked = std::getenv("RC_PARAMS");
  const std::size_t at = asked == nullptr ? std::string_view::npos : std::string_view(asked).find(kMost);
  return at == std::string_view::npos || std::atoi(asked + at + kMost.size()) >= kAll;
}

/// Runs of a property, each of all cases: where few are asked (sanitizers slow a search tenfold), the first alone.
inline std::size_t runs(std::size_t all) { return all_cases() ? all : 1; }

}  // namespace scalecalc::test
