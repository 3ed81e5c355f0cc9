// Broken invariants are bugs of ours: they end in exit status 70 with the place, in every build type.
#pragma once

#include <stdexcept>
#include <string>

namespace scalecalc {

class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// The builtins give the caller's place as std::source_location would, which clang 14 with GCC 12's library lacks.
[[noreturn]] inline void internal_error(const std::string& what, const char* file = __builtin_FILE(),
                                        int line = __builtin_LINE()) {
  throw InternalError(what + " (" + file + ":" + std::to_string(line) + ")");
}

inline void check(bool holds, const char* what, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if (!holds) internal_error(what, file, line);
}

}  // namespace scalecalc
