// In a build of mutants: which mutant this process is, and which of them its code has come by.
#pragma once

#include <type_traits>

// Changed code compares what is the same and drops what it computed.
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wtype-limits"
#pragma GCC diagnostic ignored "-Wparentheses"
#pragma GCC diagnostic ignored "-Wbool-compare"
#pragma GCC diagnostic ignored "-Wbool-operation"
#pragma GCC diagnostic ignored "-Wint-in-bool-context"
#pragma GCC diagnostic ignored "-Wunused-value"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wdangling-else"
#pragma GCC diagnostic ignored "-Wdiv-by-zero"
#pragma GCC diagnostic ignored "-Wdouble-promotion"

namespace scalecalc::mutation {

inline constexpr int kMost = 65536;
extern int active;                    // 0: the program as it is
extern unsigned char reached[kMost];  // by id, since it was last cleared

inline bool reach(int id) {
  reached[id] = 1;
  return active == id;
}
/// Constants that the compiler computes have no mutants.
constexpr bool on(int id) { return !std::is_constant_evaluated() && reach(id); }

}  // namespace scalecalc::mutation
