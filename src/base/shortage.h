// What the machine has too little of: no bug of ours and no wrong question.
#pragma once

#include <exception>
#include <optional>

#include "base/diagnostic.h"

namespace scalecalc {

// Exit statuses of what is neither an answer nor wrong.
inline constexpr auto kShortOfResources = static_cast<ExitCode>(71);  ///< of memory, threads or open files
inline constexpr auto kBudgetSpent = static_cast<ExitCode>(75);       ///< by --time-limit or --memory-limit

/// Of a failure for want of memory, threads or open files: what is short and what to do; nothing of any other.
std::optional<Diagnostic> shortage_of(const std::exception& error);

}  // namespace scalecalc
