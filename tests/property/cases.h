// How many random cases a property is asked (tests/CMakeLists.txt).
#pragma once

#include <cstddef>
#include <cstdlib>
#include <string_view>

namespace scalecalc::test {

/// Whether all of them: then what is rare has been met too. Sanitizers and a contributor's quick run ask fewer.
inline bool all_cases() {
  const char* asked = std::getenv("RC_PARAMS");
  return asked == nullptr || std::string_view(asked).find("max_success") == std::string_view::npos;
}

/// Whether a run of those that a property is asked for takes place: of all cases the first few, of fewer the first,
/// which sanitizers slow tenfold; with SCALECALC_EVERY_PROBLEM=1 any.
inline bool asked_of_run(std::size_t run, std::size_t few) {
  return std::getenv("SCALECALC_EVERY_PROBLEM") != nullptr || run < (all_cases() ? few : 1);
}

}  // namespace scalecalc::test
