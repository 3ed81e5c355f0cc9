// A question asked in the process of another program, which goes on whatever becomes of it.
#pragma once

#include <string>
#include <vector>

namespace scalecalc::cli {

/// What the program would have written, and the exit status it would have had.
struct GuestAnswer {
  int status = 0;
  std::string output, messages;
};

/// Answers `args`, without the program's name, on a thread of its own: the caller's stack may be small, and signals of
/// the caller are not handled on it. --time-limit ends the question where it next looks; --memory-limit is refused.
/// Throws std::bad_alloc and nothing else. Any threads may ask at the same time. A process that was forked off while
/// others asked is refused, as their locks are never released there; one that was forked off between questions
/// answers, on one core.
GuestAnswer run_as_guest(const std::vector<std::string>& args);

}  // namespace scalecalc::cli
