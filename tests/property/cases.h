// How many random cases a property is asked (tests/CMakeLists.txt).
#pragma once

#include <cstdlib>
#include <string_view>

namespace scalecalc::test {

/// Whether all of them: then what is rare has been met too. Sanitizers and a contributor's quick run ask fewer.
inline bool all_cases() {
  const char* asked = std::getenv("RC_PARAMS");
  return asked == nullptr || std::string_view(asked).find("max_success") == std::string_view::npos;
}

}  // namespace scalecalc::test
