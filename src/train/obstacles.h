// Why a question has no legal layout at all, in words: which pinned dimension meets which rule.
#pragma once

#include <string>
#include <vector>

#include "plan/request.h"

namespace scalecalc {

/// One sentence per obstacle found; empty if the pins alone do not explain it (the counted reasons then do).
std::vector<std::string> obstacles(const PlanRequest& request);

/// What the stack cannot run of the layouts that the search cut, where no pin explains it: the most frequent facts.
std::vector<std::string> stack_obstacles(const SearchStats& stats);

}  // namespace scalecalc
